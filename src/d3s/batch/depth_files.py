"""Depth maps of many frames, written to a folder: here, in processes, or on a cluster."""

import os
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder
from d3s.batch.frame_maker import FrameMaker, described, make_frame, read_ahead, text_of
from d3s.batch.inputs import AnyFrame, SourceFrame
from d3s.batch.job import STORE, ZARR, DepthJob
from d3s.batch.manifest import FIGURES, FOUND, WHOLE, Batch, Done, Manifest
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate import DepthMap
from d3s.estimate.drift_watch import Drift, DriftSample, DriftWatch
from d3s.estimate.summary import summarise
from d3s.files.raw import path_text
from d3s.frames import Frame, Refused
from d3s.tasks import Cluster, Here, Outcome, OutcomeKind, Task, Where, Workers, place_of, run
from d3s.types import Progress


def estimate_files(
    frames: Sequence[AnyFrame],
    job: DepthJob,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    skip_done: bool = False,
    workers: Workers = 1,
    progress: Progress | None = None,
    on_refused: Callable[[Refused], None] | None = None,
) -> Batch:
    """Estimate the depth of many frames, and write each depth map as soon as it is made.

    A frame that cannot be read, or whose views are swapped, is refused, and the next one begun. A
    frame that dies with its worker three times is refused as well. Results have the same bytes
    wherever they are made. With several frames, manifest.jsonl and manifest.csv in
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
    maker = FrameMaker(job, folder, overwrite or skip_done)
    with ExitStack() as stack:
        if not os.path.lexists(folder):  # no error for an impossible name
            stack.callback(_remove_if_empty, folder)
        make_folder(folder)
        _check_targets(frames, job, folder, maker.overwrite)
        stack.callback(maker.close)
        manifest = stack.enter_context(closing(Manifest(folder, job)))
        note = manifest.check_settings() if skip_done else ""
        if maker.store is not None and overwrite:
            maker.store.remove()
        places = _places_of(frames, maker)
        whole = set(_whole(frames, maker, manifest, places)) if skip_done else set()
        to_do = [number for number in range(len(frames)) if number not in whole]
        where = place_of(workers, tasks=len(to_do))
        results = _Results(maker, frames, manifest if len(frames) > 1 else None, on_refused)
        stack.callback(maker.clear_leftovers)
        manifest.begin(_place_words(where), len(to_do))
        for number in sorted(whole):
            results.add_whole(number)
        work = _outcomes(frames, to_do, maker, places, where)
        outcomes = stack.enter_context(closing(work))
        for number, outcome in enumerate(outcomes, 1):
            results.add(outcome)
            if progress is not None:
                progress(len(whole) + number, len(frames))
    return Batch(
        done=tuple(results.done[number] for number in sorted(results.done)),
        refused=tuple(results.refused[number] for number in sorted(results.refused)),
        skipped=tuple(frames[number].name for number in sorted(whole)),
        drift=results.drift(),
        remarks=(note,) if note else (),
        manifest=manifest.path if len(frames) > 1 else None,
    )


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError, ValueError):  # not empty: there are results, or reasons
        folder.rmdir()


def _outcomes(
    frames: Sequence[AnyFrame],
    to_do: Sequence[int],
    maker: FrameMaker,
    places: dict[str, int],
    where: Where,
) -> Generator[Outcome, None, None]:
    """Outcomes of frames, as they come; keys are the numbers of the frames."""
    if not to_do:
        return
    if isinstance(where, Here):
        yield from _outcomes_here(frames, to_do, maker, places)
        return
    path = maker.save()
    if isinstance(where, Cluster):
        where = where.seeing(*_seen((frames[number] for number in to_do), path.parent))
    work = partial(make_frame, os.fspath(path))
    tasks = (
        Task(str(number), work, _absolute(described(frames[number], places))) for number in to_do
    )
    yield from run(tasks, where)


def _outcomes_here(
    frames: Sequence[AnyFrame], to_do: Sequence[int], maker: FrameMaker, places: dict[str, int]
) -> Generator[Outcome, None, None]:
    """Outcomes of frames in this process: the next one is read while one is estimated."""
    # The thread that reads has descriptions of its own: one iterator cannot serve two threads.
    reading = (maker.read(described(frames[number], places)) for number in to_do)
    with closing(read_ahead(reading, meanwhile=_load_compiler)) as read:
        yield from run(
            Task(
                str(number),
                lambda frame: maker.make(frame, next(read)),
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
    """Results so far, which go to the manifest of several frames; by the numbers of the frames."""

    maker: FrameMaker
    frames: Sequence[AnyFrame]
    manifest: Manifest | None
    on_refused: Callable[[Refused], None] | None
    done: dict[int, Done] = field(default_factory=dict)
    refused: dict[int, Refused] = field(default_factory=dict)
    samples: "array[float]" = field(default_factory=lambda: array("d"))  # of drift, by tens

    def add_whole(self, number: int) -> None:
        """Add a frame that is whole; it gets a line if it has none."""
        if self.manifest is None:
            return
        frame = self.frames[number]
        earlier = self.manifest.earlier.get(frame.name)
        if earlier is not None and earlier["outcome"] in WHOLE:
            self._add_sample(number, earlier.get("drift"))
        else:
            record = _found_record(self.maker, frame)
            self.manifest.add(frame.name, _inputs(frame), FOUND, record)

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a frame.

        Raises
        ------
        OutputError
            When its results could not be written: the next frame would meet that too.
        """
        number = int(outcome.key)
        frame = self.frames[number]
        if outcome.kind == OutcomeKind.DONE:
            self._add_sample(number, outcome.result["drift"])
            self.done[number] = Done.from_record(outcome.result, self.maker.folder)
            self._tell(frame, outcome, outcome.result)
            return
        if outcome.error == OutputError.__name__:
            raise self._with_words(outcome.reason) from outcome.exception
        reason = outcome.reason
        for whole, path in zip(_inputs(frame), frame.files, strict=True):
            reason = reason.replace(whole, path_text(path))  # workers get whole paths
        refused = Refused(_refused_name(frame), reason)
        self.refused[number] = refused
        self._tell(frame, outcome, {"reason": reason, "trace": outcome.trace or None})
        if self.on_refused is not None:
            self.on_refused(refused)

    def drift(self) -> Drift | None:
        """Drift of the camera that all frames together show, in their order."""
        watch = DriftWatch()
        rows = (self.samples[i : i + 10].tolist() for i in range(0, len(self.samples), 10))
        for number, *row in sorted(rows):
            frame = self.frames[int(number)]
            sample = DriftSample(row[:4], row[4:8], row[8])
            watch.add_sample(path_text(frame.name or frame.left.name), sample)
        return watch.drift() if self.samples else None

    def _add_sample(self, number: int, drift: Sequence[Any] | None) -> None:
        if drift is not None:
            values, sigmas, held_px = drift
            self.samples.extend((number, *values, *sigmas, held_px))

    def _tell(self, frame: AnyFrame, outcome: Outcome, values: dict[str, Any]) -> None:
        """Add a line to the manifest, if there is one."""
        if self.manifest is not None:
            told = {name: value for name, value in values.items() if name != "name"}
            told["tries"] = outcome.tries
            self.manifest.add(frame.name, _inputs(frame), outcome.kind.value, told)

    def _with_words(self, reason: str) -> OutputError:
        """Error that ends the batch."""
        words, count = "Nothing is finished.", len(self.done)
        if count:
            words = f"{count} frames before it are finished. --skip-done goes on from there."
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


# Results that are there before -------------------------------------------------------------------


def _whole(
    frames: Sequence[AnyFrame], maker: FrameMaker, manifest: Manifest, places: dict[str, int]
) -> Iterator[int]:
    """Numbers of the frames whose results are whole.

    Every file is written whole or not at all, so a frame is whole if all its files are there, and
    its mark in the array of all frames. A format that cannot hold a frame is not missing: the
    manifest says so.
    """
    names = set(os.listdir(maker.folder))  # noqa: PTH208 - names only, for many frames
    finished = set() if maker.store is None else maker.store.finished()
    for number, frame in enumerate(frames):
        if maker.store is not None and places.get(frame.name) not in finished:
            continue
        targets = maker.job.targets(frame.name, maker.folder)
        earlier = manifest.earlier.get(frame.name, {})
        files = earlier.get("files") if earlier.get("outcome") in WHOLE else None
        if names.issuperset(path.name for path in targets.values()) or (
            files and names.issuperset(files)
        ):
            yield number


def _places_of(frames: Sequence[AnyFrame], maker: FrameMaker) -> dict[str, int]:
    """Places of frames in the array of all frames, which is made if it is not there.

    Frames that are there keep their places, and others come after them.
    """
    if maker.store is None:
        return {}
    places = maker.store.places()
    for frame in frames:
        places.setdefault(frame.name, len(places))
    fields = maker.job.as_json()
    attributes = {name: fields[name] for name in ("rig", "method", "options")}
    maker.store.create(list(places), _first_shape(frames, maker), attributes)
    return places


def _found_record(maker: FrameMaker, frame: AnyFrame) -> dict[str, Any]:
    """Figures of a frame that is whole but in no manifest: by its NPZ file, if it has one."""
    targets = maker.job.targets(frame.name, maker.folder)
    names = [path.name for path in targets.values() if os.path.lexists(path)]
    figures: dict[str, Any] = dict.fromkeys(FIGURES)
    if "npz" in targets:
        with suppress(D3SError):  # of another program, or damaged since: there are no figures
            figures |= summarise(DepthMap.load(targets["npz"]))._asdict()
    return {**figures, "files": names + [STORE] * (maker.store is not None)}


def _check_targets(
    frames: Sequence[AnyFrame], job: DepthJob, folder: Path, may_replace: bool
) -> None:
    """Refuse to replace an input at all, and earlier results unless `may_replace`.

    An `OutputError` names the first file that is in the way.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{folder} cannot be written to. Choose a folder you may write to.")
    there = set(os.listdir(folder))  # noqa: PTH208 - names only, for many frames
    if not there:
        return
    first, count = None, 0
    for path in _taken(frames, job, folder, there):
        first, count = first or path, count + 1
        if path.name != STORE and path.is_dir():
            raise OutputError(
                f"{path_text(path)} is a folder, where a result should go. Remove it."
            )
    if first is None:
        return
    _check_inputs(frames, _taken(frames, job, folder, there))
    if not may_replace:
        others = f", and {count - 1} more results" if count > 1 else ""
        raise OutputError(
            f"{path_text(first)} exists{others}. Choose another folder; or replace them: "
            "--force on the command line, overwrite=True in Python; or go on where an earlier run "
            "was stopped: --skip-done, skip_done=True."
        )


def _taken(
    frames: Sequence[AnyFrame], job: DepthJob, folder: Path, there: set[str]
) -> Iterator[Path]:
    """Results of frames that are there already."""
    for frame in frames:
        for path in job.targets(frame.name, folder).values():
            if path.name in there:
                yield path
    if ZARR in job.formats and STORE in there:
        yield folder / STORE


def _check_inputs(frames: Sequence[AnyFrame], taken: Iterable[Path]) -> None:
    inputs = {os.path.realpath(path) for frame in frames for path in frame.files}
    own = next((path for path in taken if os.path.realpath(path) in inputs), None)
    if own is not None:
        raise OutputError(
            f"{path_text(own)} is one of the inputs. Choose another folder for results."
        )


def _first_shape(frames: Sequence[AnyFrame], maker: FrameMaker) -> tuple[int, int]:
    """Rows and columns of the first frame that can be read."""
    for frame in frames:
        outcome, _ = maker.read(described(frame, {}))
        if isinstance(outcome, Frame):
            try:
                rows, cols = outcome.pair(maker.job.rig)[0].shape
            except D3SError:
                continue
            return rows, cols
    raise InputError("no frame can be read, and the array of all frames needs their size.")
