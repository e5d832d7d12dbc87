"""One frame of a batch: read, estimated and written, here or in a worker.

Every format that can hold the depth map is written, and the others are named.
"""

import errno
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from d3s.batch.job import CAMERA, DISPARITIES, FIGURE, PREVIEW, STORE, ZARR, DepthJob
from d3s.batch.table import Done
from d3s.batch.zarr_store import DepthStore
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate import DepthMap
from d3s.estimate.drift_watch import drift_sample
from d3s.estimate.plot.preview import write_plain_preview, write_preview
from d3s.estimate.summary import summarise
from d3s.files.depth_files import MILLIMETRE_M, write_disparity
from d3s.files.depth_png import fitting_unit_m
from d3s.files.raw import path_text
from d3s.frames import (
    FileSource,
    Frame,
    FrameFiles,
    Refused,
    Source,
    SourceOptions,
    open_source,
)

Read = tuple[Frame | Refused, float]
"""A frame, or why there is none, and the time of reading it in seconds."""


class FrameJob(NamedTuple):
    """A frame to make, and its place in the array of all frames, if there is one."""

    frame: FrameFiles
    place: int | None = None


class FrameMaker:
    """Reads, estimates and writes frames of one job into a folder; closed afterwards.

    What holds many frames, such as a recording, stays open between them. `overwrite` says whether
    earlier results in the folder may be replaced.
    """

    def __init__(self, job: DepthJob, folder: Path, overwrite: bool) -> None:
        self.job, self.folder, self.overwrite = job, folder, overwrite
        self.store = DepthStore(folder / STORE) if ZARR in job.formats else None
        self._source: Source | None = None
        self._path = Path()
        self._next: Iterator[Frame | Refused] = iter(())
        self._place = 0

    def close(self) -> None:
        """Close what is open."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def read(self, frame: FrameFiles) -> Read:
        """Read a frame."""
        started = time.perf_counter()
        if frame.place is None:
            outcome = self._of_files(frame)
        else:
            outcome = self._of_source(frame.left, frame.place)
        return outcome, time.perf_counter() - started

    def make(self, given: FrameJob, read: Read) -> Done:
        """Estimate and write a frame that was read.

        An `OutputError`: its results cannot be written, as those of the next frames. Any other
        `D3SError`: the frame cannot be used.
        """
        outcome, read_s = read
        if isinstance(outcome, Refused):
            raise InputError(outcome.reason)
        found, time_s = _depth_map(outcome, self.job)
        started = time.perf_counter()
        targets = self.job.targets(given.frame.name, self.folder)
        unit_m, remarks = _png_unit(found, self.job, targets)
        try:
            left_out = self._write(found, given, targets, unit_m)
        except OutputError as error:
            if getattr(error.__cause__, "errno", None) != errno.ENAMETOOLONG:
                raise
            raise InputError(f"{error} Give the input a shorter one.") from error
        files = [path.name for path in targets.values() if os.path.lexists(path)]
        has_png = "png" in targets and targets["png"].name not in left_out
        return Done(
            name=given.frame.name,
            folder=self.folder,
            file_names=(*files, *([STORE] if self.store is not None else [])),
            **summarise(found)._asdict(),
            read_s=read_s,
            time_s=time_s,
            write_s=time.perf_counter() - started,
            png_unit_m=unit_m if has_png else None,
            left_out=left_out,
            remarks=(*remarks, *outcome.remarks),
            warnings=tuple(found.warnings),
            drift=drift_sample(found),
        )

    def _write(
        self, found: DepthMap, given: FrameJob, targets: dict[str, Path], unit_m: float
    ) -> dict[str, str]:
        """Write all formats of a frame; the array of all frames comes last."""
        title = path_text(given.frame.name or given.frame.left.name)
        # Without times: the same input gives the same bytes, after any interruption.
        plain = replace(found, timings_s={})
        left_out = _write_files(plain, title, targets, unit_m, self.overwrite)
        if self.store is not None and given.place is not None:
            self.store.write(given.place, plain)
        return left_out

    def _of_files(self, frame: FrameFiles) -> Frame | Refused:
        job = self.job
        source = FileSource(
            [frame],
            rig=job.rig,
            side_by_side=job.side_by_side,
            linear=job.linear,
            max_pixels=job.max_pixels,
            bayer=job.bayer,
            keep_colour=job.needs_colour,
        )
        (outcome,) = source
        return outcome

    def _of_source(self, path: Path, place: int) -> Frame | Refused:
        try:
            if self._source is None or path != self._path:
                self._open(path)
            by_place = getattr(self._source, "frame", None)
            if by_place is not None:
                found: Frame = by_place(place)
                return found
            if place < self._place:  # a source without places goes on, or begins again
                self._open(path)
            for outcome in self._next:
                self._place += 1
                if self._place > place:
                    return outcome
        except D3SError as error:
            return Refused(os.fspath(path), str(error))
        return Refused(os.fspath(path), f"ends before frame {place}, though it said to have it.")

    def _open(self, path: Path) -> None:
        self.close()
        job = self.job
        options = SourceOptions(side_by_side=job.side_by_side, linear=job.linear)
        self._source = open_source(os.fspath(path), job.rig, options)
        self._path, self._place, self._next = path, 0, iter(self._source)


_makers: list[FrameMaker] = []  # the latest one of this worker, whose recording stays open


def make_frame(job: DepthJob, folder: Path, overwrite: bool, given: FrameJob) -> Done:
    """Read, estimate and write a frame in a worker."""
    if not _makers or (_makers[0].job, _makers[0].folder) != (job, folder):
        _makers[:] = [FrameMaker(job, folder, overwrite)]
    _makers[0].overwrite = overwrite
    return _makers[0].make(given, _makers[0].read(given.frame))


def read_ahead(
    frames: Iterable[Read], *, meanwhile: Callable[[], None]
) -> Generator[Read, None, None]:
    """Yield frames in order; the next one is read meanwhile, in a thread of its own.

    Reading begins with the first call of `next`; `meanwhile` is called once, while the first frame
    is read. Close the generator: otherwise it waits for its thread when it is collected as garbage,
    and the code that is interrupted then may hold a lock which that thread needs to end.
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
    started = time.perf_counter()
    found = job.estimate(left, right)
    time_s = time.perf_counter() - started
    swapped = next((words for words in found.warnings if words.startswith(Cause.SWAPPED)), None)
    if swapped is not None:
        raise InputError(swapped)
    found = replace(found, warnings=(*frame.warnings, *found.warnings), colour=frame.colour)
    return found.filter(min_confidence=job.min_confidence, max_sigma_m=job.max_sigma_m), time_s


def _png_unit(
    found: DepthMap, job: DepthJob, targets: dict[str, Path]
) -> tuple[float, tuple[str, ...]]:
    """Unit of the PNG in metres; another one than millimetres is remarked, unless it was asked."""
    if job.unit_m is not None or "png" not in targets:
        return job.unit_m or MILLIMETRE_M, ()
    chosen = fitting_unit_m(found.depth_m) or MILLIMETRE_M
    if chosen == MILLIMETRE_M:
        return chosen, ()
    return chosen, (
        f"{path_text(targets['png'].name)} has units of {1e3 * chosen:g} mm, since 16 bit of "
        "1 mm do not hold its depths. --unit sets one unit for all frames.",
    )


def _write_files(
    found: DepthMap, title: str, targets: dict[str, Path], unit_m: float, overwrite: bool
) -> dict[str, str]:
    """Write files by format, and return why some cannot hold the depths, by their names.

    If a place cannot be written, no new file of the frame stays, and an `OutputError` is raised.
    """
    new = [path for path in targets.values() if not os.path.lexists(path)]
    save = partial(_save, found, title, unit_m, overwrite)
    pictures = [kind for kind in targets if kind in (PREVIEW, FIGURE)]
    left_out = {}
    try:
        # Pictures are made while another thread compresses: zlib runs without Python's lock.
        with ThreadPoolExecutor(1) as pool:
            waiting = {
                path: pool.submit(save, kind, path)
                for kind, path in targets.items()
                if kind not in (*pictures, CAMERA)  # written with the file that it is for
            }
            for kind in pictures:
                save(kind, targets[kind])
            for path, one in waiting.items():
                try:
                    one.result()
                except InputError as error:
                    left_out[path.name] = str(error).removeprefix(f"{path_text(path)}: ")
                    if overwrite:  # an earlier result would be taken for the new one
                        with suppress(OSError):
                            path.unlink()
    except D3SError:
        for path in new:
            with suppress(OSError):
                path.unlink()
        raise
    return left_out


def _save(
    found: DepthMap, title: str, unit_m: float, overwrite: bool, kind: str, path: Path
) -> None:
    """Write one file of a frame."""
    if kind == PREVIEW:
        write_plain_preview(path, found.depth_m, overwrite=overwrite)
    elif kind == FIGURE:
        words = f"{title}: {found.density:.0%} have a depth"
        write_preview(path, found.depth_m, title=words, overwrite=overwrite)
    elif kind in DISPARITIES:
        write_disparity(path, found.disparity_px, overwrite=overwrite)
    else:
        found.save(path, overwrite=overwrite, unit_m=unit_m)
