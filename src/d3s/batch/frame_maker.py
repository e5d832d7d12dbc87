"""One frame of a batch: read, estimated and written, here or in a worker."""

import errno
import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from d3s.atomic import clear_leftovers, write_text
from d3s.batch.inputs import AnyFrame, SourceFrame, open_frames
from d3s.batch.job import STORE, ZARR, DepthJob
from d3s.batch.writing import Written, write_frame
from d3s.batch.zarr_store import DepthStore
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate import DepthMap
from d3s.estimate.drift_watch import drift_sample
from d3s.estimate.summary import summarise
from d3s.files.raw import path_text
from d3s.frames import FileSource, Frame, FrameFiles, Refused, Source

_WARM_UP_ROWS = 64
_PASSING = re.compile(r"\.d3s-(frames|seen)-.*")  # files of a run that are no results
_warm: set[str] = set()  # methods whose loops this process has loaded

Read = tuple[Frame | Refused, float]
"""A frame, or why there is none, and the time of reading it in seconds."""


class FrameMaker:
    """Reads, estimates and writes frames of one job into a folder; closed afterwards.

    What holds many frames, such as a recording, stays open between them. Frames are given as
    `described` has them: as JSON holds them.

    Parameters
    ----------
    job
        Rig, method, options and formats.
    folder
        Folder of the results.
    overwrite
        Whether earlier results may be replaced.
    """

    def __init__(self, job: DepthJob, folder: Path, overwrite: bool) -> None:
        self.job, self.folder, self.overwrite = job, folder, overwrite
        self.store = DepthStore(folder / STORE) if ZARR in job.formats else None
        self._path = ""
        self._source: Source | None = None
        self._next: Iterator[Frame | Refused] = iter(())
        self._place = 0

    def save(self) -> Path:
        """Write this maker into the folder of the results, for workers; returns the file."""
        folder = os.path.abspath(self.folder)  # noqa: PTH100 - links stay as they are
        path = Path(folder, f".d3s-frames-{self.job.digest()}-{int(self.overwrite)}.json")
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

    def close(self) -> None:
        """Close what is open."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def read(self, frame: Mapping[str, Any]) -> Read:
        """Read a frame."""
        started = time.perf_counter()
        outcome = self._of_source(frame) if frame["number"] is not None else self._of_files(frame)
        return outcome, time.perf_counter() - started

    def make(self, frame: Mapping[str, Any], read: Read) -> dict[str, Any]:
        """Estimate and write a frame that was read, and return its record: figures and files.

        Raises
        ------
        D3SError
            When the frame cannot be used.
        OutputError
            When its results cannot be written, as those of the next frames.
        """
        outcome, read_s = read
        if isinstance(outcome, Refused):
            raise InputError(outcome.reason)
        found, time_s = _depth_map(outcome, self.job)
        started = time.perf_counter()
        title = path_text(frame["name"] or Path(frame["left"]).name)
        try:
            written = self._written(found, frame, title)
        except OutputError as error:
            if getattr(error.__cause__, "errno", None) != errno.ENAMETOOLONG:
                raise
            raise InputError(f"{error} Give the input a shorter one.") from error
        sample = drift_sample(found)
        return {
            "name": frame["name"],
            "files": [path.name for path in written.files],
            **summarise(found)._asdict(),
            "read_s": read_s,
            "time_s": time_s,
            "write_s": time.perf_counter() - started,
            "png_unit_m": written.png_unit_m,
            "left_out": written.left_out,
            "remarks": [*written.remarks, *outcome.remarks],
            "warnings": list(found.warnings),
            "drift": None if sample is None else list(sample),
        }

    def _written(self, found: DepthMap, frame: Mapping[str, Any], title: str) -> Written:
        """Write all formats of a frame; the array of all frames comes last."""
        targets = self.job.targets(frame["name"], self.folder)
        # Without times: the same input gives the same bytes, after any interruption.
        plain = replace(found, timings_s={})
        unit_m, overwrite = self.job.unit_m, self.overwrite
        written = write_frame(plain, title, targets, unit_m=unit_m, overwrite=overwrite)
        if self.store is not None:
            self.store.write(frame["place"], plain)
            written.files = (*written.files, self.store.path)
        return written

    def _of_files(self, frame: Mapping[str, Any]) -> Frame | Refused:
        right = None if frame["right"] is None else Path(frame["right"])
        files = FrameFiles(frame["name"], Path(frame["left"]), right)
        job = self.job
        source = FileSource(
            [files],
            rig=job.rig,
            side_by_side=job.side_by_side,
            linear=job.linear,
            max_pixels=job.max_pixels,
            bayer=job.bayer,
            keep_colour=job.needs_colour,
        )
        (outcome,) = source
        return outcome

    def _of_source(self, frame: Mapping[str, Any]) -> Frame | Refused:
        path, place = frame["left"], frame["number"]
        try:
            if self._source is None or path != self._path:
                self._open(path)
            by_place = getattr(self._source, "frame", None)
            if by_place is not None:
                found: Frame = by_place(place)
                return found
            return self._forward(path, place)
        except D3SError as error:
            return Refused(os.fspath(path), str(error))

    def _open(self, path: str) -> None:
        self.close()
        job = self.job
        self._source = open_frames(
            path, rig=job.rig, side_by_side=job.side_by_side, linear=job.linear
        )
        self._path, self._place, self._next = path, 0, iter(self._source)

    def _forward(self, path: str, place: int) -> Frame | Refused:
        """Frame of a source without places: by going on, or from the start if it has passed."""
        if place < self._place:
            self._open(path)
        for outcome in self._next:
            self._place += 1
            if self._place > place:
                return outcome
        return Refused(path, f"ends before frame {place}, though it said to have it.")


@cache
def _loaded(path: str) -> FrameMaker:
    """Maker that `FrameMaker.save` has written; once in a process."""
    fields = json.loads(Path(path).read_text())
    return FrameMaker(
        DepthJob.from_json(fields["job"]), Path(fields["folder"]), fields["overwrite"]
    )


def make_frame(maker: str, frame: Mapping[str, Any]) -> dict[str, Any]:
    """Read, estimate and write a frame in a worker, by the file of a maker; returns its record."""
    loaded = _loaded(maker)
    return loaded.make(frame, loaded.read(frame))


def described(frame: AnyFrame, places: Mapping[str, int]) -> dict[str, Any]:
    """Description of a frame, as JSON holds it; `places` are those in the array of all frames."""
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


def read_ahead(
    frames: Iterable[Read], *, meanwhile: Callable[[], None]
) -> Generator[Read, None, None]:
    """Yield frames in order; the next one is read meanwhile, in a thread of its own.

    Reading begins with the first call of `next`; `meanwhile` is called once, while the first frame
    is read. One frame more than without is in memory. Close the generator: otherwise it waits for
    its thread when it is collected as garbage, and the code that is interrupted then may hold a
    lock which that thread needs to end.
    """
    reading = iter(frames)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, reading, None)
        meanwhile()
        while (one := waiting.result()) is not None:
            waiting = pool.submit(next, reading, None)
            yield one


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
