"""Depth maps of many frames, written to a folder: here, in processes, or on a cluster."""

import os
import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder
from d3s.batch.ahead import read_ahead
from d3s.batch.done_before import DoneBefore, check_targets, found_record, places_of
from d3s.batch.frame import Plan, described, make_frame, record_of
from d3s.batch.inputs import AnyFrame, SourceFrame
from d3s.batch.job import DepthJob
from d3s.batch.manifest import FOUND, Manifest
from d3s.batch.results import Batch, Done
from d3s.capture import Refused
from d3s.errors import OutputError
from d3s.estimate.diagnosis.watch import DriftSample, DriftWatch
from d3s.files.raw import path_text
from d3s.runtime.compile import load_compiler
from d3s.tasks import Cluster, Here, Kind, Limits, Outcome, Task, Where, Workers, place_of, run
from d3s.types import Progress

_NO_LIMITS = Limits()


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
        Frames, as `find_inputs` or `d3s.capture.find_frames` finds them.
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
    was_there = os.path.lexists(folder)  # no error for an impossible name
    make_folder(folder)
    plan = Plan(job=job, folder=folder, overwrite=overwrite or skip_done)
    check_targets(frames, job, folder, plan.overwrite)
    manifest = Manifest(folder, job)
    note = manifest.check_settings() if skip_done else ""
    if plan.store is not None and overwrite:
        plan.store.remove()
    places = places_of(frames, plan)
    before = DoneBefore(plan, manifest, places) if skip_done else None
    is_done = [before is not None and before.has(one) for one in frames]
    to_do = [one for one, done in zip(frames, is_done, strict=True) if not done]
    skipped = [one for one, done in zip(frames, is_done, strict=True) if done]
    where = place_of(workers, tasks=len(to_do))
    results = _Results(plan, frames, manifest if len(frames) > 1 else None, on_refused)
    with ExitStack() as stack:
        stack.callback(plan.clear_leftovers)
        stack.callback(results.close)
        results.begin(skipped, to_do, where)
        outcomes = stack.enter_context(closing(_outcomes(to_do, plan, places, where, limits)))
        for number, outcome in enumerate(outcomes, 1):
            results.add(outcome)
            if progress is not None:
                progress(len(skipped) + number, len(frames))
    if not was_there:
        with suppress(OSError):  # not empty: there are results, or reasons
            folder.rmdir()
    return results.batch([one.name for one in skipped], note)


def _outcomes(
    frames: Sequence[AnyFrame],
    plan: Plan,
    places: dict[str, int],
    where: Where,
    limits: Limits,
) -> Generator[Outcome, None, None]:
    """Outcomes of frames, as they come; keys are the names of the frames."""
    if not frames:
        return
    if isinstance(where, Here):
        yield from _outcomes_here(frames, plan, places)
        return
    path = plan.save()
    if isinstance(where, Cluster):
        where = where.seeing(*_seen(frames, path.parent))
    work = partial(make_frame, os.fspath(path))
    tasks = (Task(one.name, work, _absolute(described(one, places))) for one in frames)
    yield from run(tasks, where, limits=limits)


def _outcomes_here(
    frames: Sequence[AnyFrame], plan: Plan, places: dict[str, int]
) -> Generator[Outcome, None, None]:
    """Outcomes of frames in this process: the next one is read while one is estimated."""
    jobs = [described(one, places) for one in frames]
    with closing(plan.reader):
        read = read_ahead(map(plan.reader.read, jobs), meanwhile=load_compiler)
        tasks = (
            Task(one["name"], lambda frame: record_of(plan, next(read), frame), one) for one in jobs
        )
        yield from run(tasks)


def _absolute(frame: dict[str, Any]) -> dict[str, Any]:
    """Frame whose paths mean the same on other machines."""
    paths = {
        side: None if frame[side] is None else os.path.abspath(frame[side])  # noqa: PTH100
        for side in ("left", "right")
    }
    return {**frame, **paths}


def _seen(frames: Sequence[AnyFrame], folder: Path) -> tuple[list[str], list[str]]:
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
    done: dict[int, Done] = field(default_factory=dict)
    refused: dict[int, Refused] = field(default_factory=dict)
    samples: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = {one.name: number for number, one in enumerate(self.frames)}

    def begin(self, skipped: list[AnyFrame], to_do: list[AnyFrame], where: Where) -> None:
        """Note the run; frames that are whole and have no line get one."""
        if self.manifest is None:
            return
        untold = [one for one in skipped if not self._is_told(one)]
        if untold or to_do:
            self.manifest.begin(_place_words(where), len(to_do))
        for one in untold:
            record = found_record(self.plan, one)
            self.manifest.add(one.name, _inputs(one), FOUND, record)
        for one in skipped:
            earlier = self.manifest.earlier.get(one.name)
            if earlier is not None and earlier.drift is not None:
                self.samples[self._numbers[one.name]] = _packed(DriftSample(*earlier.drift))

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a frame.

        Raises
        ------
        OutputError
            When its results could not be written: the next frame would meet that too.
        """
        number = self._numbers[outcome.key]
        files = self.frames[number]
        if outcome.kind == Kind.DONE:
            record = outcome.result
            self.done[number] = Done.from_record(record, self.plan.folder)
            if record["drift"] is not None:
                self.samples[number] = _packed(DriftSample(*record["drift"]))
            self._tell(files, outcome, record)
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
        watch = DriftWatch()
        for number in sorted(self.samples):
            files = self.frames[number]
            sample = _unpacked(self.samples[number])
            watch.add_sample(path_text(files.name or files.left.name), sample)
        return Batch(
            done=tuple(self.done[number] for number in sorted(self.done)),
            refused=tuple(self.refused[number] for number in sorted(self.refused)),
            skipped=tuple(skipped),
            drift=watch.drift(),
            remarks=(note,) if note else (),
            manifest=None if self.manifest is None else self.manifest.path,
        )

    def close(self) -> None:
        """Write the table of the manifest."""
        if self.manifest is not None:
            self.manifest.close()

    def _is_told(self, frame: AnyFrame) -> bool:
        earlier = None if self.manifest is None else self.manifest.earlier.get(frame.name)
        return earlier is not None and earlier.is_whole

    def _tell(self, files: AnyFrame, outcome: Outcome, values: dict[str, Any]) -> None:
        if self.manifest is not None:
            values = {name: value for name, value in values.items() if name != "name"}
            values["tries"] = outcome.tries
            self.manifest.add(files.name, _inputs(files), outcome.kind.value, values)

    def _with_words(self, reason: str) -> OutputError:
        """Error that ends the batch."""
        words = "Nothing is finished."
        if self.done:
            count = len(self.done)
            words = f"{count} frames before it are finished. --skip-done goes on from there."
        return OutputError(f"{reason} {words}")


def _packed(sample: DriftSample) -> bytes:
    """Sample in few bytes: a batch may have a million."""
    return struct.pack("9d", *sample.values, *sample.sigmas, sample.held_px)


def _unpacked(packed: bytes) -> DriftSample:
    numbers = struct.unpack("9d", packed)
    return DriftSample(list(numbers[:4]), list(numbers[4:8]), numbers[8])


def _refused_name(frame: AnyFrame) -> str:
    place = f" frame {frame.place}" if isinstance(frame, SourceFrame) else ""
    return f"{path_text(frame.left)}{place}"


def _inputs(frame: AnyFrame) -> list[str]:
    return [os.path.abspath(path) for path in frame.files]  # noqa: PTH100


def _place_words(where: Where) -> str:
    if isinstance(where, Here):
        return "this process"
    if isinstance(where, Cluster):
        return f"Dask cluster at {where.address}"
    return f"{where.count} processes"
