"""Results that are there before a batch begins: what may be replaced, and what is whole."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from d3s.batch.frame import Plan, described
from d3s.batch.inputs import AnyFrame
from d3s.batch.job import STORE, ZARR, DepthJob
from d3s.batch.manifest import Manifest
from d3s.batch.results import FIGURES
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate import DepthMap
from d3s.estimate.summary import summarise
from d3s.files.raw import path_text
from d3s.frames import Frame


class DoneBefore:
    """Frames whose results are whole.

    Every file is written whole or not at all, so a frame is whole if all its files are there, and
    its mark in the array of all frames. A format that cannot hold a frame is not missing: the
    manifest says so.

    Parameters
    ----------
    plan
        Job and folder.
    manifest
        Manifest of the folder.
    places
        Places of the frames in the array of all frames, if there is one.
    """

    def __init__(self, plan: Plan, manifest: Manifest, places: dict[str, int]) -> None:
        self._plan = plan
        self._manifest = manifest
        self._places = places
        self._names = set(os.listdir(plan.folder))  # noqa: PTH208 - names only, for many frames
        self._finished = set() if plan.store is None else plan.store.finished()

    def has(self, frame: AnyFrame) -> bool:
        """Whether the results of a frame are whole."""
        if self._plan.store is not None and self._places.get(frame.name) not in self._finished:
            return False
        targets = self._plan.job.targets(frame.name, self._plan.folder)
        if all(path.name in self._names for path in targets.values()):
            return True
        earlier = self._manifest.last(frame.name)
        return (
            earlier is not None
            and earlier.is_whole
            and bool(earlier.files)
            and self._names.issuperset(earlier.files)
        )


def places_of(frames: Sequence[AnyFrame], plan: Plan) -> dict[str, int]:
    """Places of frames in the array of all frames, which is made if it is not there.

    Frames that are there keep their places, and others come after them.

    Raises
    ------
    InputError
        When no frame can be read, so that their size is not known.
    """
    if plan.store is None:
        return {}
    places = plan.store.places()
    for frame in frames:
        places.setdefault(frame.name, len(places))
    plan.store.create(list(places), _first_shape(frames, plan), _attributes(plan.job))
    return places


def found_record(plan: Plan, frame: AnyFrame) -> dict[str, Any]:
    """Figures of a frame that is whole but in no manifest: by its NPZ file, if it has one."""
    targets = plan.job.targets(frame.name, plan.folder)
    names = [path.name for path in targets.values() if os.path.lexists(path)]
    figures: dict[str, Any] = dict.fromkeys(FIGURES)
    if "npz" in targets:
        with suppress(D3SError):  # of another program, or damaged since: there are no figures
            figures |= summarise(DepthMap.load(targets["npz"]))._asdict()
    return {**figures, "files": names + [STORE] * (plan.store is not None)}


def check_targets(
    frames: Sequence[AnyFrame], job: DepthJob, folder: Path, may_replace: bool
) -> None:
    """Refuse to replace an input at all, and earlier results unless `may_replace`.

    Parameters
    ----------
    frames, job
        Frames, and what is made of each.
    folder
        Folder for the results.
    may_replace
        Whether earlier results may be replaced.

    Raises
    ------
    OutputError
        Naming the first file that is in the way.
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


def _first_shape(frames: Sequence[AnyFrame], plan: Plan) -> tuple[int, int]:
    """Rows and columns of the first frame that can be read."""
    for frame in frames:
        outcome = plan.reader.read(described(frame, {})).outcome
        if isinstance(outcome, Frame):
            try:
                rows, cols = outcome.pair(plan.job.rig)[0].shape
            except D3SError:
                continue
            return rows, cols
    raise InputError("no frame can be read, and the array of all frames needs their size.")


def _attributes(job: DepthJob) -> dict[str, Any]:
    fields = job.as_json()
    return {name: fields[name] for name in ("rig", "method", "options")}
