"""One frame of a batch: read, estimated and written, here or in a worker."""

import errno
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from d3s.atomic import clear_leftovers, write_text
from d3s.batch.ahead import Timed
from d3s.batch.inputs import AnyFrame, SourceFrame
from d3s.batch.job import STORE, ZARR, DepthJob
from d3s.batch.reading import Reader
from d3s.batch.writing import Written, write_frame
from d3s.batch.zarr_store import DepthStore
from d3s.errors import InputError, OutputError
from d3s.estimate import DepthMap
from d3s.estimate.drift_watch import drift_sample
from d3s.estimate.summary import summarise
from d3s.files.raw import path_text
from d3s.frames import Frame, Refused

_WARM_UP_ROWS = 64
_PASSING = re.compile(r"\.d3s-(plan|seen|note)-.*")  # files of a run that are no results
_warm: set[str] = set()  # methods whose loops this process has loaded


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Common part of all frames of a batch: the job, and where its results go."""

    job: DepthJob
    folder: Path
    overwrite: bool

    @cached_property
    def store(self) -> DepthStore | None:
        """Array of all frames, if it is among the formats."""
        return DepthStore(self.folder / STORE) if ZARR in self.job.formats else None

    @cached_property
    def reader(self) -> Reader:
        """Reader of the frames, in this process."""
        return Reader(self.job)

    def save(self) -> Path:
        """Write the plan into the folder of the results, for workers; returns the file."""
        folder = os.path.abspath(self.folder)  # noqa: PTH100 - links stay as they are
        path = Path(folder, f".d3s-plan-{self.job.digest()}-{int(self.overwrite)}.json")
        fields = {"job": self.job.as_json(), "folder": folder, "overwrite": self.overwrite}
        write_text(path, json.dumps(fields), overwrite=True)
        return path

    def clear_leftovers(self) -> None:
        """Remove what this run needed beside results, and what killed workers have left."""
        clear_leftovers(self.folder)
        for name in os.listdir(self.folder):  # noqa: PTH208 - names only, for many frames
            if _PASSING.fullmatch(name):
                (self.folder / name).unlink(missing_ok=True)
        if self.store is not None:
            self.store.clear_leftovers()


@cache
def load_plan(path: str) -> Plan:
    """Plan that `Plan.save` has written; once in a process."""
    fields = json.loads(Path(path).read_text())
    return Plan(
        job=DepthJob.from_json(fields["job"]),
        folder=Path(fields["folder"]),
        overwrite=fields["overwrite"],
    )


def make_frame(plan: str, frame: Mapping[str, Any]) -> dict[str, Any]:
    """Read, estimate and write a frame in a worker, and return its record.

    Parameters
    ----------
    plan
        File of the plan.
    frame
        Name of the frame, its files, and its place in the array of all frames.
    """
    loaded = load_plan(plan)
    return record_of(loaded, loaded.reader.read(frame), frame)


def described(frame: AnyFrame, places: Mapping[str, int]) -> dict[str, Any]:
    """Description of a frame, as JSON holds it.

    Parameters
    ----------
    frame
        Name and files of the frame.
    places
        Places in the array of all frames, by name.
    """
    return {
        "name": frame.name,
        "left": text_of(frame.left),
        "right": None if frame.right is None else text_of(frame.right),
        "number": frame.place if isinstance(frame, SourceFrame) else None,
        "place": places.get(frame.name),
    }


def text_of(path: Path) -> str:
    """Text of a path, by a copy: a path keeps its text once it was asked for."""
    return os.fspath(Path(path))


def record_of(plan: Plan, read: Timed, frame: Mapping[str, Any]) -> dict[str, Any]:
    """Estimate and write a frame that was read, and return its record: figures and files.

    Parameters
    ----------
    plan
        Job and folder.
    read
        The frame, or why there is none.
    frame
        Name of the frame, its files, and its place in the array of all frames.

    Raises
    ------
    D3SError
        When the frame cannot be used.
    OutputError
        When its results cannot be written, as those of the next frames.
    """
    if isinstance(read.outcome, Refused):
        raise InputError(read.outcome.reason)
    found, time_s = _depth_map(read.outcome, plan.job)
    started = time.perf_counter()
    title = path_text(frame["name"] or Path(frame["left"]).name)
    try:
        written = _written(plan, found, frame, title)
    except OutputError as error:
        if getattr(error.__cause__, "errno", None) != errno.ENAMETOOLONG:
            raise
        raise InputError(f"{error} Give the input a shorter one.") from error
    sample = drift_sample(found)
    return {
        "name": frame["name"],
        "files": [path.name for path in written.files],
        **summarise(found)._asdict(),
        "read_s": read.read_s,
        "time_s": time_s,
        "write_s": time.perf_counter() - started,
        "png_unit_m": written.png_unit_m,
        "left_out": written.left_out,
        "remarks": [*written.remarks, *read.outcome.remarks],
        "warnings": list(found.warnings),
        "drift": None if sample is None else list(sample),
    }


def _written(plan: Plan, found: DepthMap, frame: Mapping[str, Any], title: str) -> Written:
    """Write all formats of a frame; the array of all frames comes last."""
    targets = plan.job.targets(frame["name"], plan.folder)
    # Without times: the same input gives the same bytes, after any interruption.
    plain = replace(found, timings_s={})
    written = write_frame(plain, title, targets, unit_m=plan.job.unit_m, overwrite=plan.overwrite)
    if plan.store is not None:
        plan.store.write(frame["place"], plain)
        written.files = (*written.files, plan.store.path)
    return written


def _depth_map(frame: Frame, job: DepthJob) -> tuple[DepthMap, float]:
    """Filtered depth map of a frame, and the time of the estimate in seconds."""
    from d3s.estimate.diagnosis import Cause  # compiled loops: slow to import

    left, right = frame.pair(job.rig)
    if job.method not in _warm:  # loops are loaded, or compiled: no part of the time of a frame
        job.estimate(left[:_WARM_UP_ROWS], right[:_WARM_UP_ROWS])
        _warm.add(job.method)
    started = time.perf_counter()
    found = job.estimate(left, right)
    time_s = time.perf_counter() - started
    swapped = next((words for words in found.warnings if words.startswith(Cause.SWAPPED)), None)
    if swapped is not None:
        raise InputError(swapped)
    found = replace(found, warnings=(*frame.warnings, *found.warnings), colour=frame.colour)
    return found.filter(min_confidence=job.min_confidence, max_sigma_m=job.max_sigma_m), time_s
