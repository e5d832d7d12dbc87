"""Depth maps of files, written to a folder."""

import errno
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from d3s.atomic import make_folder
from d3s.batch.pairing import Frame, Refused
from d3s.batch.swapped import swapped_words
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate import DepthMap, Options, estimate
from d3s.estimate.depth_map import check_limits
from d3s.files import camera_file, load_pair
from d3s.files.depth_files import FORMATS
from d3s.files.raw import shown
from d3s.rig import Rig
from d3s.types import Image, Progress
from d3s.view.preview import write_preview

PREVIEW = "preview"
DEFAULT_FORMATS = ("npz", "png", PREVIEW)
ALL_FORMATS = ("npz", *(suffix.removeprefix(".") for suffix in FORMATS), PREVIEW)
"""Everything, what other programs read, and a picture for people."""

_STRIP_PX = 64


@dataclass(frozen=True, kw_only=True)
class Done:
    """One depth map that was written, in figures; NaN where there is no depth at all."""

    name: str
    files: tuple[Path, ...]
    density: float  # share of the pixels that have a depth
    nearest_m: float  # the first and the last percent are left out
    farthest_m: float
    median_sigma_m: float
    time_s: float  # of the estimate alone
    remarks: tuple[str, ...]  # on what was done to the images, and what the method says


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What became of all frames."""

    done: tuple[Done, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()  # names of frames whose results were there

    @property
    def empty(self) -> tuple[Done, ...]:
        """Those in which no pixel has a depth."""
        return tuple(one for one in self.done if one.density == 0)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How depth is estimated, and what is kept and written of it."""

    rig: Rig
    method: str = "joint"
    options: Options | Mapping[str, Any] | None = None
    side_by_side: bool = False
    linear: bool | None = None
    min_confidence: float | None = None
    max_sigma_m: float | None = None
    formats: tuple[str, ...] = DEFAULT_FORMATS

    def __post_init__(self) -> None:
        check_formats(self.formats)
        check_limits(min_confidence=self.min_confidence, max_sigma_m=self.max_sigma_m)

    def estimate(self, left: Image, right: Image) -> DepthMap:
        """Depth of a pair, as wished, before anything is left out."""
        return estimate(left, right, self.rig, method=self.method, options=self.options)

    def targets(self, frame: Frame, output: Path) -> dict[str, Path]:
        """Files that a frame becomes, by format; the camera that some need beside them last."""
        start = f"{frame.name}_" if frame.name else ""
        files = {
            one: output / (f"{start}preview.png" if one == PREVIEW else f"{start}depth.{one}")
            for one in self.formats
        }
        if any(not FORMATS[f".{one}"].has_camera for one in files if f".{one}" in FORMATS):
            files["camera"] = camera_file.beside(output / f"{start}depth.png")
        return files


def check_formats(formats: Sequence[str]) -> None:
    """Refuse formats that there are not.

    Raises
    ------
    InputError
        Naming the first of them, and those that there are.
    """
    unknown = [one for one in formats if one not in ALL_FORMATS]
    if unknown or not formats:
        wrong = shown(unknown[0]) or "an empty name" if unknown else "nothing"
        raise InputError(f"formats has {wrong}: it can have {', '.join(ALL_FORMATS)}.")


def estimate_files(
    frames: Sequence[Frame],
    wish: Wish,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    skip_done: bool = False,
    progress: Progress | None = None,
) -> Batch:
    """Depth maps of all frames that can be read, each written as soon as it is made.

    A frame that cannot be read, or whose views are swapped, is refused and the next one begun.

    Parameters
    ----------
    frames
        As `find_frames` finds them.
    wish
        The rig, the method, and the formats to write.
    output
        The folder for the results, made if it is not there.
    overwrite
        Whether earlier results may be replaced.
    skip_done
        Whether frames whose results are all there are left alone, so that work that was stopped
        goes on; what is there of other frames is replaced.
    progress
        Called with how many of how many frames are done.

    Raises
    ------
    OutputError
        Before anything is computed, when results are there already or would replace what they are
        made from; and when a file cannot be written: what was finished until then stays.
    """
    folder = Path(os.fsdecode(output))
    was_there = os.path.lexists(folder)  # no error for a name that cannot be
    make_folder(folder)
    _check_targets(frames, wish, folder, overwrite or skip_done)
    done: list[Done] = []
    refused: list[Refused] = []
    skipped: list[str] = []
    for number, frame in enumerate(frames):
        files = wish.targets(frame, folder)
        if skip_done and all(map(os.path.lexists, files.values())):
            skipped.append(frame.name)
        else:
            _one(frame, wish, files, overwrite or skip_done, done, refused)
        if progress is not None:
            progress(number + 1, len(frames))
    if not (was_there or done):
        folder.rmdir()
    return Batch(done=tuple(done), refused=tuple(refused), skipped=tuple(skipped))


def _one(
    frame: Frame,
    wish: Wish,
    files: dict[str, Path],
    overwrite: bool,
    done: list[Done],
    refused: list[Refused],
) -> None:
    try:
        found, remarks, time_s = _depth_map(frame, wish, is_first=not done)
        # Without times: the same input gives the same bytes, also after a run that was stopped.
        _write(replace(found, timings_s={}), frame, files, overwrite)
    except OutputError as error:
        if getattr(error.__cause__, "errno", None) == errno.ENAMETOOLONG:
            refused.append(Refused(shown(frame.left), f"{error} Give the input a shorter one."))
            return
        # The next frame would fare no better.
        words = "Nothing is finished."
        if done:
            words = f"{len(done)} frames before it are finished. --skip-done goes on from there."
        raise OutputError(f"{error} {words}") from error
    except D3SError as error:
        refused.append(Refused(shown(frame.left), str(error)))
        return
    done.append(_figures(frame.name, found, files, remarks, time_s))


def _depth_map(
    frame: Frame, wish: Wish, *, is_first: bool
) -> tuple[DepthMap, tuple[str, ...], float]:
    pair = load_pair(
        frame.left,
        frame.right,
        rig=wish.rig,
        side_by_side=wish.side_by_side,
        linear=wish.linear,
    )
    if is_first:  # compiled loops are loaded, or made, by the first call: no part of its time
        wish.estimate(pair.left[:_STRIP_PX], pair.right[:_STRIP_PX])
    started = time.perf_counter()
    found = wish.estimate(pair.left, pair.right)
    time_s = time.perf_counter() - started
    words = swapped_words(found, pair.left, pair.right, wish.estimate)
    if words is not None:
        raise InputError(words)
    found = found.filter(min_confidence=wish.min_confidence, max_sigma_m=wish.max_sigma_m)
    return found, (*pair.remarks, *found.warnings), time_s


def _write(found: DepthMap, frame: Frame, files: dict[str, Path], overwrite: bool) -> None:
    """All files of a frame; of one that cannot be finished, none."""
    new = [path for path in files.values() if not os.path.lexists(path)]
    try:
        for kind, path in files.items():
            if kind == "camera":  # written with the file that it is for
                continue
            if kind == PREVIEW:
                title = f"{shown(frame.name or frame.left.name)}: {found.density:.0%} have a depth"
                write_preview(path, found.depth_m, title=title, overwrite=overwrite)
            else:
                found.save(path, overwrite=overwrite)
    except D3SError:
        for path in new:
            with suppress(OSError):
                path.unlink()
        raise


def _figures(
    name: str, found: DepthMap, files: dict[str, Path], remarks: tuple[str, ...], time_s: float
) -> Done:
    known = found.valid
    nearest_m, farthest_m, sigma_m = float("nan"), float("nan"), float("nan")
    if known.any():
        nearest_m, farthest_m = np.percentile(found.depth_m[known], (1, 99)).tolist()
        sigma_m = float(np.median(found.sigma_m[known]))
    return Done(
        name=name,
        files=tuple(path for path in files.values() if os.path.lexists(path)),
        density=found.density,
        nearest_m=nearest_m,
        farthest_m=farthest_m,
        median_sigma_m=sigma_m,
        time_s=time_s,
        remarks=remarks,
    )


def _check_targets(frames: Sequence[Frame], wish: Wish, folder: Path, may_replace: bool) -> None:
    """Refuse to replace inputs at all, and earlier results unless that was asked for."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{folder} cannot be written to. Choose a folder you may write to.")
    inputs = {os.path.realpath(path) for frame in frames for path in frame.files}
    targets = [path for frame in frames for path in wish.targets(frame, folder).values()]
    taken = [path for path in targets if os.path.lexists(path)]
    own = next((path for path in taken if os.path.realpath(path) in inputs), None)
    if own is not None:
        raise OutputError(f"{shown(own)} is one of the inputs. Choose another folder for results.")
    folders = [path for path in taken if path.is_dir()]
    if folders:
        raise OutputError(f"{shown(folders[0])} is a folder, where a result should go. Remove it.")
    if taken and not may_replace:
        others = f", and {len(taken) - 1} more results" if len(taken) > 1 else ""
        raise OutputError(
            f"{shown(taken[0])} exists{others}. Choose another folder; or replace them: --force on "
            "the command line, overwrite=True in Python; or go on where an earlier run was "
            "stopped: --skip-done, skip_done=True."
        )
