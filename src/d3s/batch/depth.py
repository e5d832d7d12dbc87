"""Depth maps of many frames, written to a folder."""

import errno
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder
from d3s.batch.ahead import Timed, read_ahead
from d3s.batch.writing import CAMERA, DISPARITIES, PREVIEW, Written, write_frame
from d3s.capture import FileSource, Frame, FrameFiles, Refused
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate import DepthMap, Options
from d3s.estimate.depth_map import check_limits
from d3s.estimate.diagnosis.watch import Drift, DriftWatch
from d3s.estimate.diagnosis.words import Cause
from d3s.estimate.methods import estimate_quietly
from d3s.estimate.summary import Summary, summarise
from d3s.files import camera_file
from d3s.files.codecs import CHECKS
from d3s.files.depth_files import FORMATS
from d3s.files.depth_png import check_unit
from d3s.files.raw import path_text
from d3s.formats import DEPTH_SUFFIXES, MAX_PIXELS, PLY
from d3s.rig import Rig
from d3s.runtime.compile import load_compiler
from d3s.types import Image, Progress

DEFAULT_FORMATS = ("npz", "png", PREVIEW)
ALL_FORMATS = (*(suffix.removeprefix(".") for suffix in DEPTH_SUFFIXES), *DISPARITIES, PREVIEW)
"""NPZ with everything, the formats that other programs read, and a picture for people."""

_WARM_UP_ROWS = 64


@dataclass(frozen=True, kw_only=True)
class Done:
    """Summary of one depth map that was written; NaN where no pixel has a depth."""

    name: str
    files: tuple[Path, ...]
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


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Outcomes of all frames."""

    done: tuple[Done, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()  # names of frames whose results were there
    drift: Drift | None = None  # of the camera, if all frames together show one

    @property
    def empty(self) -> tuple[Done, ...]:
        """Depth maps in which no pixel has a depth."""
        return tuple(one for one in self.done if one.density == 0)

    @property
    def incomplete(self) -> tuple[Done, ...]:
        """Depth maps of which a file is left out, since its format cannot hold them."""
        return tuple(one for one in self.done if one.left_out)


@dataclass(frozen=True, kw_only=True)
class DepthJob:
    """Method and options of the estimate, the depths to keep, and the formats to write.

    Raises
    ------
    InputError
        When a format is unknown or needs a package that is not installed, or a limit is no such
        number.
    """

    rig: Rig
    method: str = "joint"
    options: Options | Mapping[str, Any] | None = None
    side_by_side: bool = False
    linear: bool | None = None
    bayer: str | None = None
    min_confidence: float | None = None
    max_sigma_m: float | None = None
    dense: float | None = None  # fill holes to this sigma in metres, all if infinite
    formats: tuple[str, ...] = DEFAULT_FORMATS
    unit_m: float | None = None  # of the PNG; None for 1 mm, or another if that does not fit
    max_pixels: int = MAX_PIXELS  # of a file

    def __post_init__(self) -> None:
        check_formats(self.formats)
        if self.unit_m is not None:
            check_unit(self.unit_m)
        check_limits(min_confidence=self.min_confidence, max_sigma_m=self.max_sigma_m)

    @property
    def needs_colour(self) -> bool:
        """Whether a format is written that shows the colours of the left view."""
        return any(f".{one}" in PLY.suffixes for one in self.formats)

    def estimate(self, left: Image, right: Image) -> DepthMap:
        """Run the method on a pair, unfiltered."""
        if self.dense is not None:
            from d3s.dense import estimate_dense

            return estimate_dense(
                left,
                right,
                self.rig,
                max_sigma_m=self.dense,
                method=self.method,
                options=self.options,
            )
        return estimate_quietly(left, right, self.rig, method=self.method, options=self.options)

    def targets(self, name: str, output: Path) -> dict[str, Path]:
        """Files of the results of a frame, by format; the camera that some need comes last."""
        start = f"{name}_" if name else ""
        names = {PREVIEW: "preview.png", **{one: one for one in DISPARITIES}}
        files = {one: output / f"{start}{names.get(one, f'depth.{one}')}" for one in self.formats}
        if any(not FORMATS[f".{one}"].has_camera_inside for one in files if f".{one}" in FORMATS):
            files[CAMERA] = camera_file.beside(output / f"{start}depth.png")
        return files


def check_formats(formats: Sequence[str]) -> None:
    """Refuse an empty list of formats, unknown ones, and ones whose package is missing.

    Raises
    ------
    InputError
        Naming the first that is wrong, and the formats that there are.
    """
    unknown = [one for one in formats if one not in ALL_FORMATS]
    if unknown or not formats:
        wrong = path_text(unknown[0]) or "an empty name" if unknown else "nothing"
        raise InputError(f"formats has {wrong}: it can have {', '.join(ALL_FORMATS)}.")
    for one in formats:
        found = DEPTH_SUFFIXES.get(f".{one}")
        if found is not None and found.name in CHECKS:
            CHECKS[found.name]()


def estimate_files(
    frames: Sequence[FrameFiles],
    job: DepthJob,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    skip_done: bool = False,
    progress: Progress | None = None,
) -> Batch:
    """Estimate the depth of many frames, and write each depth map as soon as it is made.

    A frame that cannot be read, or whose views are swapped, is refused, and the next one begun.

    Parameters
    ----------
    frames
        Files of each frame, as `find_frames` finds them.
    job
        The rig, the method, and the formats to write.
    output
        The folder for the results, made if it is not there.
    overwrite
        Whether earlier results may be replaced.
    skip_done
        Whether frames whose results are all there are left alone, so that work that was stopped
        goes on; incomplete results of other frames are replaced.
    progress
        Called with (frames done, frames in all).

    Raises
    ------
    OutputError
        Before anything is computed, when results are there already or would replace an input; and
        when a file cannot be written: the results until then stay.
    """
    folder = Path(os.fsdecode(output))
    was_there = os.path.lexists(folder)  # no error for an impossible name
    make_folder(folder)
    _check_targets(frames, job, folder, overwrite or skip_done)
    is_done = [skip_done and _is_done(one, job, folder) for one in frames]
    skipped = [one.name for one, done in zip(frames, is_done, strict=True) if done]
    to_do = [one for one, done in zip(frames, is_done, strict=True) if not done]
    results = _Results(job=job, folder=folder, overwrite=overwrite or skip_done)
    source = FileSource(
        to_do,
        rig=job.rig,
        side_by_side=job.side_by_side,
        linear=job.linear,
        max_pixels=job.max_pixels,
        bayer=job.bayer,
        keep_colour=job.needs_colour,
    )
    with source:
        for number, one in enumerate(read_ahead(source, meanwhile=load_compiler)):
            results.add(to_do[number], one)
            if progress is not None:
                progress(len(skipped) + number + 1, len(frames))
    if not (was_there or results.done):
        folder.rmdir()
    return Batch(
        done=tuple(results.done),
        refused=tuple(results.refused),
        skipped=tuple(skipped),
        drift=results.watch.drift(),
    )


def _is_done(files: FrameFiles, job: DepthJob, folder: Path) -> bool:
    return all(map(os.path.lexists, job.targets(files.name, folder).values()))


@dataclass(kw_only=True)
class _Results:
    """Results so far, and where the next ones go."""

    job: DepthJob
    folder: Path
    overwrite: bool
    done: list[Done] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    watch: DriftWatch = field(default_factory=DriftWatch)

    def add(self, files: FrameFiles, one: Timed) -> None:
        """Estimate and write the depth of a frame, or note why there is none."""
        frame = one.outcome
        if isinstance(frame, Refused):
            self.refused.append(frame)
            return
        targets = self.job.targets(frame.name, self.folder)
        try:
            found, time_s = _depth_map(frame, self.job, is_first=not self.done)
            started = time.perf_counter()
            written = write_frame(
                # Without times: the same input gives the same bytes, after any interruption.
                replace(found, timings_s={}),
                path_text(frame.name or files.left.name),
                targets,
                unit_m=self.job.unit_m,
                overwrite=self.overwrite,
            )
        except OutputError as error:
            if getattr(error.__cause__, "errno", None) != errno.ENAMETOOLONG:
                raise self._with_words(error) from error
            self.refused.append(
                Refused(path_text(files.left), f"{error} Give the input a shorter one.")
            )
        except D3SError as error:
            self.refused.append(Refused(path_text(files.left), str(error)))
        else:
            times_s = one.read_s, time_s, time.perf_counter() - started
            self.done.append(_done(frame, found, summarise(found), written, times_s))
            self.watch.add(path_text(frame.name or files.left.name), found)

    def _with_words(self, error: OutputError) -> OutputError:
        """Error that ends the batch, since the next frame would meet it too."""
        words = "Nothing is finished."
        if self.done:
            count = len(self.done)
            words = f"{count} frames before it are finished. --skip-done goes on from there."
        return OutputError(f"{error} {words}")


def _depth_map(frame: Frame, job: DepthJob, *, is_first: bool) -> tuple[DepthMap, float]:
    """Filtered depth map of a frame, and the time of the estimate in seconds."""
    left, right = frame.pair(job.rig)
    if is_first:  # compiled loops are loaded, or made, by the first call: no part of its time
        job.estimate(left[:_WARM_UP_ROWS], right[:_WARM_UP_ROWS])
    started = time.perf_counter()
    found = job.estimate(left, right)
    time_s = time.perf_counter() - started
    swapped = next((words for words in found.warnings if words.startswith(Cause.SWAPPED)), None)
    if swapped is not None:
        raise InputError(swapped)
    found = replace(found, warnings=(*frame.warnings, *found.warnings), colour=frame.colour)
    return found.filter(min_confidence=job.min_confidence, max_sigma_m=job.max_sigma_m), time_s


def _done(
    frame: Frame,
    found: DepthMap,
    summary: Summary,
    written: Written,
    times_s: tuple[float, float, float],
) -> Done:
    return Done(
        name=frame.name,
        files=written.files,
        **summary._asdict(),
        read_s=times_s[0],
        time_s=times_s[1],
        write_s=times_s[2],
        png_unit_m=written.png_unit_m,
        left_out=written.left_out,
        remarks=(*written.remarks, *frame.remarks),
        warnings=found.warnings,
    )


def _check_targets(
    frames: Sequence[FrameFiles], job: DepthJob, folder: Path, may_replace: bool
) -> None:
    """Refuse to replace an input at all, and earlier results unless `may_replace`."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{folder} cannot be written to. Choose a folder you may write to.")
    inputs = {os.path.realpath(path) for frame in frames for path in frame.files}
    targets = [path for frame in frames for path in job.targets(frame.name, folder).values()]
    taken = [path for path in targets if os.path.lexists(path)]
    own = next((path for path in taken if os.path.realpath(path) in inputs), None)
    if own is not None:
        raise OutputError(
            f"{path_text(own)} is one of the inputs. Choose another folder for results."
        )
    folders = [path for path in taken if path.is_dir()]
    if folders:
        raise OutputError(
            f"{path_text(folders[0])} is a folder, where a result should go. Remove it."
        )
    if taken and not may_replace:
        others = f", and {len(taken) - 1} more results" if len(taken) > 1 else ""
        raise OutputError(
            f"{path_text(taken[0])} exists{others}. Choose another folder; or replace them: "
            "--force on the command line, overwrite=True in Python; or go on where an earlier run "
            "was stopped: --skip-done, skip_done=True."
        )
