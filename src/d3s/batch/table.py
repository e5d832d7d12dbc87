"""Outcomes of a batch, and its table: frames.csv, with a row for each frame as it is finished.

Rows are added by one write each: a run that is killed leaves whole rows and at most one torn at the
end, which is passed over. Beside it, job.json has the settings that made the results.
"""

import csv
import errno
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from d3s.atomic import write_bytes, write_text
from d3s.batch.job import DepthJob
from d3s.errors import InputError, OutputError
from d3s.estimate.drift_watch import Drift, DriftSample
from d3s.frames import FrameFiles, Refused
from d3s.record import short_repr
from d3s.runtime.digest import package_digest

TABLE, JOB = "frames.csv", "job.json"
"""Names of the files in the folder of the results."""

FIGURES = ("density", "nearest_m", "farthest_m", "median_sigma_m", "read_s", "time_s", "write_s")
"""Numbers of a frame, in the order of the table."""

_TEXTS = ("code", "inputs", "files", "left_out", "reason", "drift", "trace")
_COLUMNS = ("frame", "outcome", *FIGURES, *_TEXTS)
_DONE, _REFUSED = "done", "refused"  # outcomes
_BETWEEN = "; "  # names of files


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
    drift: DriftSample | None = None  # part of this frame in the search for a drift

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that were written."""
        return tuple(self.folder / name for name in self.file_names)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Outcomes of all frames."""

    done: tuple[Done, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()  # names of frames whose results were there
    drift: Drift | None = None  # of the camera, if all frames together show one
    remarks: tuple[str, ...] = ()  # on the run as a whole
    table: Path | None = None  # frames.csv, if there are several frames

    @cached_property
    def empty(self) -> tuple[Done, ...]:
        """Depth maps in which no pixel has a depth."""
        return tuple(one for one in self.done if one.density == 0)

    @cached_property
    def incomplete(self) -> tuple[Done, ...]:
        """Depth maps of which a file is left out, since its format cannot hold them."""
        return tuple(one for one in self.done if one.left_out)


def check_settings(folder: Path, job: DepthJob) -> None:
    """Refuse to go on in a folder whose results were made with other settings."""
    path = folder / JOB
    try:
        earlier = json.loads(path.read_text())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}. Do all again with --force.") from error
    for name, now in json.loads(json.dumps(job.as_json())).items():
        before = earlier.get(name)
        if before != now:
            is_record = isinstance(now, dict) or isinstance(before, dict)
            words = "" if is_record else f": {short_repr(before)}, and now {short_repr(now)}"
            raise OutputError(
                f"{path} has results with other {name}{words}. Only the same work can go on. "
                "Choose another folder for results, or do all again with --force."
            )


class FrameTable:
    """Table of a folder of results; as a context it is open for rows, and put in order at the end.

    The settings of the job go to job.json beside it.
    """

    def __init__(self, folder: Path, job: DepthJob) -> None:
        self.path = folder / TABLE
        self._rows = _rows_of(self.path)
        self._job = job
        self._code = package_digest()[:12]
        self._file = -1

    def note(self) -> str:
        """Remark if earlier rows are of other code; empty if not."""
        if all(row["code"] == self._code for row in self._rows.values()):
            return ""
        return (
            "some results were made by other files of d3s: their bytes may differ from those of "
            f"this run. The column code of {TABLE} says which."
        )

    def files_of(self, frame: str) -> set[str] | None:
        """Return the names of all files of a frame that was done in an earlier run."""
        row = self._rows.get(frame)
        return set(row["files"].split(_BETWEEN)) if row and row["outcome"] == _DONE else None

    def drift_of(self, frame: str) -> DriftSample | None:
        """Return the part of a frame of an earlier run in the search for a drift."""
        numbers = [float(word) for word in self._rows[frame]["drift"].split()]
        return DriftSample(numbers[:4], numbers[4:8], numbers[8]) if len(numbers) == 9 else None

    def add_done(self, frame: FrameFiles, done: Done) -> None:
        """Add the row of a frame with its figures and files."""
        figures = {name: getattr(done, name) for name in (*FIGURES, "left_out", "drift")}
        self._add(frame, outcome=_DONE, files=done.file_names, **figures)

    def add_refused(self, frame: FrameFiles, refused: Refused, trace: Sequence[str]) -> None:
        """Add the row of a frame with the reason."""
        self._add(frame, outcome=_REFUSED, reason=refused.reason, trace=trace)

    def _add(self, frame: FrameFiles, **values: Any) -> None:
        values |= {"frame": frame.name, "inputs": frame.absolute, "code": self._code}
        row = {name: _cell(values.get(name)) for name in _COLUMNS}
        self._rows[frame.name] = row
        raw = _csv_text([row])
        try:
            if os.write(self._file, raw) != len(raw):
                raise OSError(errno.ENOSPC, "no space is left for a row")
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}.") from error

    def __enter__(self) -> Self:
        settings = json.dumps(self._job.as_json(), indent=1) + "\n"
        write_text(self.path.with_name(JOB), settings, overwrite=True)
        self._write_all()
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._file)
        if kind is None:
            self._write_all()

    def _write_all(self) -> None:
        head = {name: name for name in _COLUMNS}
        rows = (self._rows[name] for name in sorted(self._rows))
        write_bytes(self.path, _csv_text([head, *rows]), overwrite=True)


def _rows_of(path: Path) -> dict[str, dict[str, str]]:
    """Last row of each frame in a table; none if there is no such file."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    head, _, body = text.partition("\n")
    if head != ",".join(_COLUMNS):
        raise InputError(f"{path} is no table of d3s. Choose another folder.")
    whole = body[: body.rfind("\n") + 1]  # not a last row that a kill has torn
    found = csv.reader(io.StringIO(whole, newline=""))
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in found if len(row) == len(_COLUMNS)]
    return {row["frame"]: row for row in rows}


def _csv_text(rows: Sequence[Mapping[str, str]]) -> bytes:
    """Lines of a CSV file; names of files may hold bytes that are no text."""
    table = io.StringIO(newline="")
    csv.DictWriter(table, _COLUMNS, lineterminator="\n").writerows(rows)
    return table.getvalue().encode("utf-8", "surrogateescape")


def _cell(value: Any) -> str:
    if isinstance(value, DriftSample):
        return " ".join(map(repr, (*value.values, *value.sigmas, value.held_px)))
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return str(value) if isinstance(value, str | float | int) else _BETWEEN.join(value)
