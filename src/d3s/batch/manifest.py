"""Manifest of a folder of results: a line of JSON for each run and for each frame, and a table.

Lines are only added, each by one write: a run that is killed leaves whole lines, and at most one
torn line at the end, which is passed over. A frame that is done again has another line; the table
has the last one of each.
"""

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from d3s.atomic import write_text
from d3s.batch.job import DepthJob
from d3s.batch.results import FIGURES
from d3s.errors import InputError, OutputError
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions

LINES, TABLE = "manifest.jsonl", "manifest.csv"
"""Names of the files of a manifest."""

FOUND = "found"
"""Outcome of a frame whose results were whole before it had a line."""

_WHOLE = ("done", FOUND)
_COLUMNS = ("frame", "outcome", *FIGURES, "tries", "run", "inputs", "files", "reason")


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
        self.earlier: dict[str, Earlier] = {}
        self._settings: dict[str, Any] = {}
        self._digest = ""
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
            raise OutputError(
                f"{self.path} has results of another {differing[0]}, and only the same work can go "
                "on. Choose another folder for results, or do all again with --force."
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

    def add(self, frame: str, inputs: list[str], outcome: str, values: Mapping[str, Any]) -> None:
        """Add the line of a frame.

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
        self._add({**line, "outcome": outcome, **plain})

    def close(self) -> None:
        """Write the table, and close the manifest; a run without a line leaves no manifest."""
        if self._file is None:
            return
        os.close(self._file)
        self._file = None
        write_text(self.path.with_name(TABLE), _table(self.path), overwrite=True)

    def _read(self) -> None:
        """Frames and settings of earlier runs."""
        for line in lines_of(self.path):
            if line["type"] == "run":
                self._settings, self._digest = line["settings"], line["digest"]
            elif line["type"] == "frame":
                files = tuple(line.get("files") or ())
                self.earlier[line["frame"]] = Earlier(line["outcome"], files, line.get("drift"))

    def _add(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, allow_nan=False) + "\n"
        try:
            if self._file is None:
                self._file = _opened(self.path)
            os.write(self._file, text.encode())
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}.") from error


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a manifest, in their order; none if there is no such file.

    Raises
    ------
    InputError
        When the file is no manifest, or cannot be read.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file):
                try:
                    line = json.loads(text)
                except ValueError:
                    line = None
                if isinstance(line, dict) and "type" in line:
                    yield line
                elif number == 0 and text.endswith("\n"):
                    raise InputError(f"{path} is no manifest of d3s. Choose another folder.")
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _opened(path: Path) -> int:
    """Open the file for lines; a torn one at the end gets its end of line."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")
    return file


def _plain(value: Any) -> Any:
    """Value for JSON, which has no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _table(path: Path) -> str:
    """Last line of each frame, as CSV; memory holds one place in the file for each frame."""
    places: dict[str, int] = {}
    with path.open("rb") as file:
        place = 0
        for raw in file:
            line = _parsed(raw)
            if line.get("type") == "frame":
                places[line["frame"]] = place
            place += len(raw)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for place in places.values():
            file.seek(place)
            line = _parsed(file.readline())
            line["inputs"] = " ".join(line["inputs"])
            line["files"] = " ".join(line.get("files") or ())
            writer.writerow([_cell(line.get(name)) for name in _COLUMNS])
    return text.getvalue()


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
