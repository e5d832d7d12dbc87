"""Depth maps of many frames, written to a folder: here, in processes, or on a cluster."""

import os
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from d3s.atomic import make_folder
from d3s.batch.ahead import read_ahead
from d3s.batch.done_before import DoneBefore, check_targets, found_record, places_of
from d3s.batch.frame import Plan, described, make_frame, record_of, text_of
from d3s.batch.inputs import AnyFrame, SourceFrame
from d3s.batch.job import DepthJob
from d3s.batch.manifest import FOUND, Manifest
from d3s.batch.results import Batch, Done
from d3s.errors import OutputError
from d3s.estimate.drift_watch import Drift, DriftSample, DriftWatch
from d3s.files.raw import path_text
from d3s.frames import Refused
from d3s.tasks import Cluster, Here, Kind, Limits, Outcome, Task, Where, Workers, place_of, run
from d3s.types import FloatArray, Progress

_NO_LIMITS = Limits()
_NO_LINE = -1  # a frame that is not done in this run


def estimate_files(
    frames: Sequence[AnyFrame],
    job: DepthJob,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    skip_done: bool = False,
    workers: Workers = 1,
    limits: Limits = _NO_LIMITS,
    progress: Progress | None = None,
    on_refused: Callable[[Refused], None] | None = None,
) -> Batch:
    """Estimate the depth of many frames, and write each depth map as soon as it is made.

    A frame that cannot be read, or whose views are swapped, is refused, and the next one begun. A
    frame that dies with its worker three times, or takes too long, is refused as well. Results have
    the same bytes wherever they are made. With several frames, manifest.jsonl and manifest.csv in
    the folder tell the outcome and the figures of each.

    Parameters
    ----------
    frames
        Frames, as `find_inputs` or `d3s.camera.capture.find_frames` finds them.
    job
        The rig, the method, and the formats to write.
    output
        The folder for the results, made if it is not there.
    overwrite
        Whether earlier results may be replaced.
    skip_done
        Whether frames whose results are all there are left alone, so that work that was stopped
        goes on; incomplete results of other frames are replaced.
    workers
        Number of processes, each with one thread. 1 is this process, with as many threads as it
        has; None is one process for each core. Or a place of `d3s.tasks`, such as a Dask cluster.
    limits
        Tries, time and memory of each frame in other processes.
    progress
        Called with (frames done, frames in all).
    on_refused
        Called with each frame that is refused, and why, as it happens.

    Raises
    ------
    OutputError
        Before anything is computed, when results are there already or would replace an input; and
        when a file cannot be written: the results until then stay.
    """
    folder = Path(os.fsdecode(output))
    plan = Plan(job=job, folder=folder, overwrite=overwrite or skip_done)
    with ExitStack() as stack:
        if not os.path.lexists(folder):  # no error for an impossible name
            stack.callback(_remove_if_empty, folder)
        make_folder(folder)
        check_targets(frames, job, folder, plan.overwrite)
        manifest = stack.enter_context(closing(Manifest(folder, job)))
        note = manifest.check_settings() if skip_done else ""
        if plan.store is not None and overwrite:
            plan.store.remove()
        places = places_of(frames, plan)
        before = DoneBefore(plan, manifest, places) if skip_done else None
        is_done = [before is not None and before.has(one) for one in frames]
        to_do = array("q", (number for number, done in enumerate(is_done) if not done))
        skipped = array("q", (number for number, done in enumerate(is_done) if done))
        where = place_of(workers, tasks=len(to_do))
        results = _Results(plan, frames, manifest if len(frames) > 1 else None, on_refused)
        stack.callback(plan.clear_leftovers)
        results.begin(skipped, to_do, where)
        work = _outcomes(frames, to_do, plan, places, where, limits)
        outcomes = stack.enter_context(closing(work))
        for number, outcome in enumerate(outcomes, 1):
            results.add(outcome)
            if progress is not None:
                progress(len(skipped) + number, len(frames))
    return results.batch([frames[number].name for number in skipped], note)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError, ValueError):  # not empty: there are results, or reasons
        folder.rmdir()


def _outcomes(
    frames: Sequence[AnyFrame],
    to_do: Sequence[int],
    plan: Plan,
    places: dict[str, int],
    where: Where,
    limits: Limits,
) -> Generator[Outcome, None, None]:
    """Outcomes of frames, as they come; keys are the numbers of the frames."""
    if not to_do:
        return
    if isinstance(where, Here):
        yield from _outcomes_here(frames, to_do, plan, places)
        return
    path = plan.save()
    if isinstance(where, Cluster):
        where = where.seeing(*_seen((frames[number] for number in to_do), path.parent))
    work = partial(make_frame, os.fspath(path))
    tasks = (
        Task(str(number), work, _absolute(described(frames[number], places))) for number in to_do
    )
    yield from run(tasks, where, limits=limits)


def _outcomes_here(
    frames: Sequence[AnyFrame], to_do: Sequence[int], plan: Plan, places: dict[str, int]
) -> Generator[Outcome, None, None]:
    """Outcomes of frames in this process: the next one is read while one is estimated."""
    # The thread that reads has descriptions of its own: one iterator cannot serve two threads.
    reading = (plan.reader.read(described(frames[number], places)) for number in to_do)
    with closing(plan.reader), closing(read_ahead(reading, meanwhile=_load_compiler)) as read:
        yield from run(
            Task(
                str(number),
                lambda frame: record_of(plan, next(read), frame),
                described(frames[number], places),
            )
            for number in to_do
        )


def _load_compiler() -> None:
    from d3s.runtime.compile import load_compiler  # slow to import, and workers do without it here

    load_compiler()


def _absolute(frame: dict[str, Any]) -> dict[str, Any]:
    """Frame whose paths mean the same on other machines."""
    paths = {
        side: None if frame[side] is None else os.path.abspath(frame[side])  # noqa: PTH100
        for side in ("left", "right")
    }
    return {**frame, **paths}


def _seen(frames: Iterable[AnyFrame], folder: Path) -> tuple[list[str], list[str]]:
    """A file of each folder of inputs, and the folder of the results, which workers must see."""
    first: dict[Path, Path] = {}
    for frame in frames:
        for path in frame.files:
            if path.parent not in first and path.is_file():
                first[path.parent] = path
    absolute = [os.path.abspath(path) for path in first.values()]  # noqa: PTH100
    return absolute, [os.fspath(folder)]


@dataclass
class _Results:
    """Results so far, and the manifest that has them."""

    plan: Plan
    frames: Sequence[AnyFrame]
    manifest: Manifest | None
    on_refused: Callable[[Refused], None] | None
    done: dict[int, Done] = field(default_factory=dict)  # if there is no manifest
    refused: dict[int, Refused] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Of a frame, memory holds two places: numbers in files and arrays, and no object.
        self._lines = array("q", [_NO_LINE]) * len(self.frames)
        self._samples: FloatArray | None = None
        self._count = 0

    def begin(self, skipped: Sequence[int], to_do: Sequence[int], where: Where) -> None:
        """Note the run; frames that are whole and have no line get one."""
        if self.manifest is None:
            return
        is_begun = bool(to_do)
        if to_do:
            self.manifest.begin(_place_words(where), len(to_do))
        for number in skipped:
            frame = self.frames[number]
            earlier = self.manifest.last(frame.name)
            if earlier is not None and earlier.is_whole:
                self._add_sample(number, earlier.drift)
                continue
            if not is_begun:
                self.manifest.begin(_place_words(where), 0)
                is_begun = True
            record = found_record(self.plan, frame)
            self.manifest.add(frame.name, _inputs(frame), FOUND, record)

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a frame.

        Raises
        ------
        OutputError
            When its results could not be written: the next frame would meet that too.
        """
        number = int(outcome.key)
        files = self.frames[number]
        if outcome.kind == Kind.DONE:
            record = outcome.result
            self._count += 1
            self._add_sample(number, record["drift"])
            place = self._tell(files, outcome, record)
            if place is None:
                self.done[number] = Done.from_record(record, self.plan.folder)
            else:
                self._lines[number] = place
            return
        if outcome.error == OutputError.__name__:
            raise self._with_words(outcome.reason) from outcome.exception
        refused = Refused(_refused_name(files), outcome.reason)
        self.refused[number] = refused
        self._tell(files, outcome, {"reason": outcome.reason, "trace": outcome.trace or None})
        if self.on_refused is not None:
            self.on_refused(refused)

    def batch(self, skipped: list[str], note: str) -> Batch:
        """Outcomes in the order of the frames."""
        done: Sequence[Done] = tuple(self.done.values())
        if self.manifest is not None and self._count:
            lines = array("q", (place for place in self._lines if place != _NO_LINE))
            done = self.manifest.done(lines)
        return Batch(
            done=done,
            refused=tuple(self.refused[number] for number in sorted(self.refused)),
            skipped=tuple(skipped),
            drift=self._drift(),
            remarks=(note,) if note else (),
            manifest=None if self.manifest is None else self.manifest.path,
        )

    def _add_sample(self, number: int, drift: Sequence[Any] | None) -> None:
        if drift is None:
            return
        if self._samples is None:
            self._samples = np.full((len(self.frames), 9), np.nan)
        values, sigmas, held_px = drift
        self._samples[number] = (*values, *sigmas, held_px)

    def _drift(self) -> Drift | None:
        """Drift of the camera that all frames together show, in their order."""
        if self._samples is None:
            return None
        watch = DriftWatch()
        for number in np.flatnonzero(np.isfinite(self._samples[:, -1])).tolist():
            files, row = self.frames[number], self._samples[number].tolist()
            name = path_text(files.name or files.left.name)
            watch.add_sample(name, DriftSample(row[:4], row[4:8], row[8]))
        return watch.drift()

    def _tell(self, files: AnyFrame, outcome: Outcome, values: dict[str, Any]) -> int | None:
        """Add a line to the manifest, if there is one; returns its place."""
        if self.manifest is None:
            return None
        values = {name: value for name, value in values.items() if name != "name"}
        values["tries"] = outcome.tries
        return self.manifest.add(files.name, _inputs(files), outcome.kind.value, values)

    def _with_words(self, reason: str) -> OutputError:
        """Error that ends the batch."""
        words = "Nothing is finished."
        if self._count:
            words = f"{self._count} frames before it are finished. --skip-done goes on from there."
        return OutputError(f"{reason} {words}")


def _refused_name(frame: AnyFrame) -> str:
    place = f" frame {frame.place}" if isinstance(frame, SourceFrame) else ""
    return f"{path_text(frame.left)}{place}"


def _inputs(frame: AnyFrame) -> list[str]:
    return [os.path.abspath(text_of(path)) for path in frame.files]  # noqa: PTH100


def _place_words(where: Where) -> str:
    if isinstance(where, Here):
        return "this process"
    if isinstance(where, Cluster):
        return f"Dask cluster at {where.address}"
    return f"{where.count} processes"
