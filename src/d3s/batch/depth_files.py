"""Depth maps of many frames, written to a folder: here, in processes, or on a cluster."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from d3s.atomic import clear_leftovers, make_folder
from d3s.batch.frame_maker import FrameJob, FrameMaker, make_frame, read_ahead
from d3s.batch.job import STORE, ZARR, DepthJob
from d3s.batch.running import Outcome, Workers, checked_workers, run
from d3s.batch.table import Batch, Done, FrameTable, check_settings
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate.drift_watch import Drift, DriftSample, DriftWatch
from d3s.files.raw import path_text
from d3s.frames import Frame, FrameFiles, Refused
from d3s.types import Progress


def estimate_files(
    frames: Sequence[FrameFiles],
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

    A frame that cannot be read, whose views are swapped, or that ends its worker three times, is
    refused, and the next one begun. Results have the same bytes wherever they are made. With
    several frames, frames.csv in the folder tells the outcome and the figures of each.

    Results that are there, unless `overwrite`, and a place that cannot be written are an
    `OutputError`: what was made until then stays. With `skip_done`, frames whose results are all
    there are left alone, so that work that was stopped goes on. `workers` is the number of
    processes, each with one thread: 1 is this process, with as many threads as it has, None one for
    each core; or the address of the scheduler of a Dask cluster. `progress` is called with (frames
    done, frames in all), `on_refused` with each frame that is refused, as it happens.
    """
    folder = Path(os.fsdecode(output))
    maker = FrameMaker(job, folder, overwrite or skip_done)
    done: dict[int, Done] = {}
    refused: dict[int, Refused] = {}
    samples: dict[int, DriftSample | None] = {}
    with ExitStack() as stack:
        if not os.path.lexists(folder):  # no error for an impossible name
            stack.callback(_remove_if_empty, folder)
        make_folder(folder)
        _check_targets(frames, job, folder, maker.overwrite)
        stack.callback(maker.close)
        table = FrameTable(folder, job) if len(frames) > 1 else None
        if skip_done:
            check_settings(folder, job)
        if maker.store is not None and overwrite:
            maker.store.remove()
        places = _places_of(frames, maker)
        whole = set(_whole(frames, maker, table, places)) if skip_done else set()
        to_do = [number for number in range(len(frames)) if number not in whole]
        where = checked_workers(workers, len(to_do))
        note = ""
        if table is not None:
            note = table.note() if skip_done else ""
            samples |= {number: table.drift_of(frames[number].name) for number in whole}
            stack.enter_context(table)
        stack.callback(clear_leftovers, folder)  # of killed workers
        if maker.store is not None:
            stack.callback(maker.store.clear_leftovers)
        work = stack.enter_context(closing(_outcomes(frames, to_do, maker, places, where)))
        for count, (place, result, error) in enumerate(work, 1):
            number = to_do[place]
            if error is None:
                done[number], samples[number] = result, result.drift
                if table is not None:
                    table.add_done(frames[number], result)
            else:
                one = refused[number] = _refused(frames[number], error, len(done))
                if on_refused is not None:
                    on_refused(one)
                if table is not None:
                    table.add_refused(frames[number], one, getattr(error, "__notes__", ()))
            if progress is not None:
                progress(len(whole) + count, len(frames))
    return Batch(
        done=tuple(done[number] for number in sorted(done)),
        refused=tuple(refused[number] for number in sorted(refused)),
        skipped=tuple(frames[number].name for number in sorted(whole)),
        drift=_drift(frames, samples),
        remarks=(note,) if note else (),
        table=None if table is None else table.path,
    )


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError, ValueError):  # not empty: there are results, or reasons
        folder.rmdir()


def _outcomes(
    frames: Sequence[FrameFiles],
    to_do: Sequence[int],
    maker: FrameMaker,
    places: dict[str, int],
    where: int | str,
) -> Generator[Outcome, None, None]:
    """Outcomes of frames, as they come, by their places in `to_do`."""
    if not to_do:
        return
    jobs = (FrameJob(frames[number], places.get(frames[number].name)) for number in to_do)
    if where != 1:
        folder = Path(os.path.abspath(maker.folder))  # noqa: PTH100 - links stay as they are
        work = partial(make_frame, maker.job, folder, maker.overwrite)
        jobs = (one._replace(frame=_absolute(one.frame)) for one in jobs)
        is_far = isinstance(where, str)
        read = _first_of_each_folder(frames[number] for number in to_do) if is_far else []
        for one in run(work, jobs, where, read=read, written=[os.fspath(folder)]):
            if one.error is None:  # with the folder as the caller named it
                one = one._replace(result=replace(one.result, folder=maker.folder))
            yield one
        return
    # In this process the next frame is read while one is estimated.
    reading = (maker.read(frames[number]) for number in to_do)
    with closing(read_ahead(reading, meanwhile=_load_compiler)) as read_frames:
        yield from run(lambda one: maker.make(one, next(read_frames)), jobs)


def _load_compiler() -> None:
    from d3s.runtime.compile import load_compiler  # slow to import, and workers do without it here

    load_compiler()


def _absolute(frame: FrameFiles) -> FrameFiles:
    """Frame whose paths mean the same in other processes."""
    left, *right = map(Path, frame.absolute)
    return frame._replace(left=left, right=right[0] if right else None)


def _first_of_each_folder(frames: Iterable[FrameFiles]) -> list[str]:
    """A file of each folder of inputs, which workers must see."""
    first: dict[Path, Path] = {}
    for frame in frames:
        for path in frame.files:
            if path.parent not in first and path.is_file():
                first[path.parent] = path
    return [os.path.abspath(path) for path in first.values()]  # noqa: PTH100


def _refused(frame: FrameFiles, error: D3SError, done: int) -> Refused:
    """Refusal of a frame; what the next frame would meet too is raised."""
    reason = str(error)
    if isinstance(error, OutputError):
        words = "Nothing is finished."
        if done:
            words = f"{done} frames before it are finished. The same command goes on from there."
        raise OutputError(f"{reason} {words}") from error
    for given, path in zip(frame.absolute, frame.files, strict=True):
        reason = reason.replace(given, path_text(path))  # workers get whole paths
    place = "" if frame.place is None else f" frame {frame.place}"
    return Refused(f"{path_text(frame.left)}{place}", reason)


def _drift(frames: Sequence[FrameFiles], samples: dict[int, DriftSample | None]) -> Drift | None:
    """Drift of the camera that all frames together show, in their order."""
    watch = DriftWatch()
    known = [(number, one) for number, one in sorted(samples.items()) if one is not None]
    for number, sample in known:
        frame = frames[number]
        watch.add_sample(path_text(frame.name or frame.left.name), sample)
    return watch.drift() if known else None


# Results that are there before -------------------------------------------------------------------


def _whole(
    frames: Sequence[FrameFiles],
    maker: FrameMaker,
    table: FrameTable | None,
    places: dict[str, int],
) -> Iterator[int]:
    """Numbers of the frames whose results are whole: all files of its row, or of a frame alone.

    Every file is written whole or not at all. A frame has a mark in the array of all frames.
    """
    names = set(os.listdir(maker.folder))  # noqa: PTH208 - names only, for many frames
    finished = set() if maker.store is None else maker.store.finished()
    for number, frame in enumerate(frames):
        if table is not None:
            files = table.files_of(frame.name)
        else:
            targets = maker.job.targets(frame.name, maker.folder)
            files = {path.name for path in targets.values()}
        is_stored = maker.store is None or places[frame.name] in finished
        if is_stored and files is not None and files <= names:
            yield number


def _places_of(frames: Sequence[FrameFiles], maker: FrameMaker) -> dict[str, int]:
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


def _check_targets(
    frames: Sequence[FrameFiles], job: DepthJob, folder: Path, may_replace: bool
) -> None:
    """Refuse to replace an input at all, and earlier results unless `may_replace`.

    An `OutputError` names the first file that is in the way.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{folder} cannot be written to. Choose a folder you may write to.")
    there = set(os.listdir(folder))  # noqa: PTH208 - names only, for many frames
    targets = (path for one in frames for path in job.targets(one.name, folder).values())
    taken = [path for path in targets if path.name in there]
    taken += [folder / STORE] if ZARR in job.formats and STORE in there else []
    if not taken:
        return
    inputs = {os.path.realpath(path) for frame in frames for path in frame.files}
    for path in taken:
        if path.name != STORE and path.is_dir():
            raise OutputError(
                f"{path_text(path)} is a folder, where a result should go. Remove it."
            )
        if os.path.realpath(path) in inputs:
            raise OutputError(
                f"{path_text(path)} is one of the inputs. Choose another folder for results."
            )
    if not may_replace:
        others = f", and {len(taken) - 1} more results" if len(taken) > 1 else ""
        raise OutputError(
            f"{path_text(taken[0])} exists{others}. Choose another folder; or replace them: "
            "--force on the command line, overwrite=True in Python."
        )


def _first_shape(frames: Sequence[FrameFiles], maker: FrameMaker) -> tuple[int, int]:
    """Rows and columns of the first frame that can be read."""
    for frame in frames:
        outcome, _ = maker.read(frame)
        if isinstance(outcome, Frame):
            try:
                rows, cols = outcome.pair(maker.job.rig)[0].shape
            except D3SError:
                continue
            return rows, cols
    raise InputError("no frame can be read, and the array of all frames needs their size.")
