"""Manifest of a folder of results: a line of JSON for each run and for each frame, and a table.

Lines are only added, each by one write: a run that is killed leaves whole lines, and at most one
torn line at the end, which is passed over. A frame that is done again has another line; the table
has the last one of each, by name. Memory holds the place of that line in the file, and nothing else
of a frame: a manifest may have a million.
"""

import csv
import io
import json
import math
import os
import weakref
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, overload

from d3s.atomic import write_pieces
from d3s.batch.job import DepthJob
from d3s.batch.results import FIGURES, Done
from d3s.errors import InputError, OutputError
from d3s.record import short_repr
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions

LINES, TABLE = "manifest.jsonl", "manifest.csv"
"""Names of the files of a manifest."""

FOUND = "found"
"""Outcome of a frame whose results were whole before it had a line."""

_WHOLE = ("done", FOUND)
_COLUMNS = ("frame", "outcome", *FIGURES, "tries", "run", "inputs", "files", "reason")
_PIECE_BYTES = 1 << 12  # of a file, read at once: more than most lines have


class Earlier(NamedTuple):
    """Last line of a frame in a manifest, in short."""

    outcome: str
    files: tuple[str, ...]
    drift: list[Any] | None

    @property
    def is_whole(self) -> bool:
        """Whether all results were written that can be written."""
        return self.outcome in _WHOLE


class Manifest:
    """Manifest of a folder, open for lines.

    Parameters
    ----------
    folder
        Folder of the results.
    job
        Rig, method, options and formats of this run.
    """

    def __init__(self, folder: Path, job: DepthJob) -> None:
        self.path = folder / LINES
        self._job = job
        self._run = os.urandom(4).hex()
        self._file: int | None = None
        self._places: dict[str, int] = {}  # in the file, of the last line of each frame
        self._settings: dict[str, Any] = {}
        self._digest = ""
        self._is_changed = False  # whether this run has added a line
        self._read()

    def check_settings(self) -> str:
        """Refuse to go on with other settings; returns a remark if the program is another one.

        Raises
        ------
        OutputError
            Naming the first setting that differs from that of the last run.
        """
        now = self._job.as_json()
        differing = [name for name in now if self._settings and now[name] != self._settings[name]]
        if differing:
            name = differing[0]
            found = f": {short_repr(self._settings[name])}, and now {short_repr(now[name])}"
            words = "" if isinstance(now[name], dict) else found
            raise OutputError(
                f"{self.path} has results with other {name}{words}. Only the same work can go on. "
                "Choose another folder for results, or do all again with --force."
            )
        if self._digest and self._digest != package_digest():
            return (
                "the results so far were made by other files of d3s: their bytes may differ from "
                f"those of this run. {self.path.name} says which frame is of which run."
            )
        return ""

    def begin(self, place: str, frames: int) -> None:
        """Add the line of this run.

        Parameters
        ----------
        place
            Where it runs, in words.
        frames
            Number of frames to do.
        """
        self._add(
            {
                "type": "run",
                "run": self._run,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "place": place,
                "frames": frames,
                "versions": versions(),
                "digest": package_digest(),
                "settings": self._job.as_json(),
            }
        )

    def last(self, frame: str) -> Earlier | None:
        """Last line of a frame so far, None if it has none."""
        place = self._places.get(frame)
        if place is None:
            return None
        line = _line_at(self._opened(), place)
        return Earlier(line["outcome"], tuple(line.get("files") or ()), line.get("drift"))

    def add(self, frame: str, inputs: list[str], outcome: str, values: Mapping[str, Any]) -> int:
        """Add the line of a frame; returns its place in the file.

        Parameters
        ----------
        frame, inputs
            Name of the frame, and what it was read from.
        outcome
            "done", or another outcome of a task.
        values
            Figures, names of files and reasons.
        """
        plain = {name: _plain(value) for name, value in values.items()}
        line = {"type": "frame", "run": self._run, "frame": frame, "inputs": inputs}
        self._places[frame] = self._add({**line, "outcome": outcome, **plain})
        return self._places[frame]

    def done(self, places: "array[int]") -> "DoneLines":
        """Summaries of frames that are done, by the places of their lines."""
        return DoneLines(os.open(self.path, os.O_RDONLY), self.path.parent, places)

    def close(self) -> None:
        """Write the table, and close the manifest; a folder without a frame keeps no manifest."""
        if self._file is None:
            return
        try:
            if not self._places and self._is_alone:
                self.path.unlink(missing_ok=True)
            elif self._is_changed:
                file, places = self._file, self._places
                lines = (_line_at(file, places[name]) for name in sorted(places))
                write_pieces(self.path.with_name(TABLE), _table(lines), overwrite=True)
        finally:
            os.close(self._file)
            self._file = None

    @property
    def _is_alone(self) -> bool:
        """Whether the folder has no other file: a cluster that is not there leaves nothing."""
        return os.listdir(self.path.parent) == [LINES]  # noqa: PTH208 - names only

    def _read(self) -> None:
        """Places of the lines of frames, and settings, of earlier runs."""
        for place, line in _placed_lines(self.path):
            if line["type"] == "run":
                self._settings, self._digest = line["settings"], line["digest"]
            elif line["type"] == "frame":
                self._places[line["frame"]] = place

    def _opened(self) -> int:
        """File, open for reading and for lines at its end."""
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        return self._file

    def _add(self, line: Mapping[str, Any]) -> int:
        """Add a line; returns its place in the file."""
        raw = json.dumps(line, allow_nan=False).encode() + b"\n"
        try:
            file = self._opened()
            if not self._is_changed:
                _end_torn_line(file)
                self._is_changed = True
            if os.write(file, raw) < len(raw):
                raise OutputError(f"{self.path} cannot be written: no space is left for a line.")
            return os.lseek(file, 0, os.SEEK_CUR) - len(raw)
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}.") from error


class DoneLines(Sequence[Done]):
    """Summaries of frames, each read from its line in a manifest when it is asked for.

    Parameters
    ----------
    file
        The manifest, open for reading; closed with this object, so that the summaries are there
        even if the folder is removed.
    folder
        Folder of the results.
    places
        Places of the lines in the file.
    """

    def __init__(self, file: int, folder: Path, places: "array[int]") -> None:
        self._file, self._folder, self._places = file, folder, places
        weakref.finalize(self, os.close, file)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Done: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Done, ...]: ...

    def __getitem__(self, place: int | slice) -> Done | tuple[Done, ...]:
        """Return the summary of one frame, or of several."""
        if isinstance(place, slice):
            return tuple(map(self._done, self._places[place]))
        return self._done(self._places[place])

    def __eq__(self, other: object) -> bool:
        """Whether another sequence has the same summaries."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def _done(self, place: int) -> Done:
        line = _line_at(self._file, place)
        missing = {name: math.nan for name in FIGURES if line[name] is None}  # JSON has no NaN
        return Done.from_record({**line, "name": line["frame"], **missing}, self._folder)


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a manifest, in their order; none if there is no such file.

    Raises
    ------
    InputError
        When the file is no manifest, or cannot be read.
    """
    return (line for _, line in _placed_lines(path))


def _placed_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines of a manifest, each with its place in the file."""
    place = 0
    try:
        with path.open("rb") as file:
            for raw in file:
                line = _parsed(raw)
                if "type" in line:
                    yield place, line
                elif place == 0 and raw.endswith(b"\n"):
                    raise InputError(f"{path} is no manifest of d3s. Choose another folder.")
                place += len(raw)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _line_at(file: int, place: int) -> dict[str, Any]:
    """Line that begins at a place of a file."""
    raw = b""
    while b"\n" not in raw:
        piece = os.pread(file, _PIECE_BYTES, place + len(raw))
        if not piece:
            break
        raw += piece
    return _parsed(raw.partition(b"\n")[0])


def _end_torn_line(file: int) -> None:
    """Give the last line of a file its end, if it was torn."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")


def _plain(value: Any) -> Any:
    """Value for JSON, which has no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _table(lines: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Lines of frames as those of a CSV file."""
    row = io.StringIO(newline="")
    writer = csv.writer(row, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for line in lines:
        line["inputs"] = " ".join(line["inputs"])
        line["files"] = " ".join(line.get("files") or ())
        writer.writerow([_cell(line.get(name)) for name in _COLUMNS])
        if row.tell() > _PIECE_BYTES:
            yield row.getvalue().encode()
            row.seek(0)
            row.truncate()
    yield row.getvalue().encode()


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


def _cell(value: Any) -> Any:
    if isinstance(value, str):  # names of files may hold bytes that are no text
        return value.encode("utf-8", "backslashreplace").decode()
    return "" if value is None else value
