"""Outcomes of a batch, and its manifest: a line of JSON for each run and each frame, and a table.

Lines are only added, each by one write: a run that is killed leaves whole lines, and at most one
torn line at the end, which is passed over. A frame that is done again has another line; the table
has the last one of each, by name.
"""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from d3s.atomic import write_text
from d3s.batch.job import DepthJob
from d3s.errors import InputError, OutputError
from d3s.estimate.drift_watch import Drift
from d3s.frames import Refused
from d3s.record import short_repr
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions

LINES, TABLE = "manifest.jsonl", "manifest.csv"
"""Names of the files of a manifest."""

FOUND = "found"
"""Outcome of a frame whose results were whole before it had a line."""

WHOLE = ("done", FOUND)
"""Outcomes of frames of which all results were written that can be written."""

FIGURES = (
    "density",
    "nearest_m",
    "farthest_m",
    "median_sigma_m",
    "read_s",
    "time_s",
    "write_s",
)
"""Numbers of a frame, in the order of tables."""

_COLUMNS = ("frame", "outcome", *FIGURES, "tries", "run", "inputs", "files", "reason")


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """Summary of one depth map that was written; NaN where no pixel has a depth."""

    name: str
    folder: Path
    file_names: tuple[str, ...]  # in the folder
    density: float  # share of the pixels that have a depth, 0 to 1
    nearest_m: float  # first percentile of the depths
    farthest_m: float  # 99th percentile of the depths
    median_sigma_m: float
    read_s: float  # time of reading, splitting and rectifying
    time_s: float  # time of the estimate, without reading and writing
    write_s: float
    png_unit_m: float | None  # unit of the PNG, if one was written
    left_out: dict[str, str]  # files that could not hold the depths: the reason, by name
    remarks: tuple[str, ...]  # on what was done to the images, and on the files
    warnings: tuple[str, ...]  # of the estimate: likely causes of a poor depth map

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that were written."""
        return tuple(self.folder / name for name in self.file_names)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], folder: Path) -> "Done":
        """Summary of the record that `d3s.batch.frame_maker` makes of a frame."""
        figures = {name: record[name] for name in FIGURES}
        return cls(
            name=record["name"],
            folder=folder,
            file_names=tuple(record["files"]),
            **figures,
            png_unit_m=record["png_unit_m"],
            left_out=dict(record["left_out"]),
            remarks=tuple(record["remarks"]),
            warnings=tuple(record["warnings"]),
        )


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Outcomes of all frames."""

    done: tuple[Done, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()  # names of frames whose results were there
    drift: Drift | None = None  # of the camera, if all frames together show one
    remarks: tuple[str, ...] = ()  # on the run as a whole
    manifest: Path | None = None  # record of all frames, if one was written

    @cached_property
    def empty(self) -> tuple[Done, ...]:
        """Depth maps in which no pixel has a depth."""
        return tuple(one for one in self.done if one.density == 0)

    @cached_property
    def incomplete(self) -> tuple[Done, ...]:
        """Depth maps of which a file is left out, since its format cannot hold them."""
        return tuple(one for one in self.done if one.left_out)


class Manifest:
    """Manifest of a folder, open for lines; the first is preceded by a line of this run.

    Parameters
    ----------
    folder
        Folder of the results.
    job
        Rig, method, options and formats of this run.
    """

    def __init__(self, folder: Path, job: DepthJob) -> None:
        self.path = folder / LINES
        self.earlier: dict[str, dict[str, Any]] = {}  # last line of each frame of earlier runs
        self._job = job
        self._run = os.urandom(4).hex()
        self._file = -1
        self._started: dict[str, Any] = {}  # where and when this run began
        self._settings: dict[str, Any] = {}
        self._digest = ""
        for line in lines_of(self.path):
            if line["type"] == "run":
                self._settings, self._digest = line["settings"], line["digest"]
            elif line["type"] == "frame":
                self.earlier[line["frame"]] = line

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
        """Note where this run is, in words, and how many frames it is to do."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._started = {"started": started, "place": place, "frames": frames}

    def add(self, frame: str, inputs: list[str], outcome: str, values: Mapping[str, Any]) -> None:
        """Add the line of a frame: what it was read from, its outcome, figures, files, reasons."""
        if self._file < 0:
            self._open()
        plain = {name: _plain(value) for name, value in values.items()}
        line = {"type": "frame", "run": self._run, "frame": frame, "inputs": inputs}
        self._add({**line, "outcome": outcome, **plain})

    def close(self) -> None:
        """Write the table, and close the manifest."""
        if self._file < 0:
            return
        os.close(self._file)
        self._file = -1
        lines = {line["frame"]: line for line in lines_of(self.path) if line["type"] == "frame"}
        table = _table(lines[name] for name in sorted(lines))
        write_text(self.path.with_name(TABLE), table, overwrite=True)

    def _open(self) -> None:
        """Open the file for lines at its end, and add the line of this run."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":  # torn by a kill
                os.write(self._file, b"\n")
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}.") from error
        self._add(
            {
                "type": "run",
                "run": self._run,
                **self._started,
                "versions": versions(),
                "digest": package_digest(),
                "settings": self._job.as_json(),
            }
        )

    def _add(self, line: Mapping[str, Any]) -> None:
        raw = json.dumps(line, allow_nan=False).encode() + b"\n"
        try:
            is_whole = os.write(self._file, raw) == len(raw)
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}.") from error
        if not is_whole:
            raise OutputError(f"{self.path} cannot be written: no space is left for a line.")


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a manifest, in their order; none if there is no such file.

    Raises
    ------
    InputError
        When the file is no manifest, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file):
                line = _parsed(raw)
                if "type" in line:
                    yield line
                elif number == 0 and raw.endswith(b"\n"):
                    raise InputError(f"{path} is no manifest of d3s. Choose another folder.")
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


def _plain(value: Any) -> Any:
    """Value for JSON, which has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(lines: Iterable[dict[str, Any]]) -> str:
    """Lines of frames as a CSV file."""
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for line in lines:
        joined = {name: " ".join(line.get(name) or ()) for name in ("inputs", "files")}
        writer.writerow([_cell({**line, **joined}.get(name)) for name in _COLUMNS])
    return table.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):  # names of files may hold bytes that are no text
        return value.encode("utf-8", "backslashreplace").decode()
    return "" if value is None else value
