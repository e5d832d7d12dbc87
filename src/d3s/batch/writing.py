"""Files of one frame: every format that can hold the depth map is written, the others are named."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from d3s.errors import D3SError, InputError
from d3s.estimate import DepthMap
from d3s.estimate.plot.preview import write_plain_preview, write_preview
from d3s.files.depth_files import DISPARITY_SUFFIXES, MILLIMETRE_M, write_disparity
from d3s.files.depth_png import fitting_unit_m
from d3s.files.raw import path_text
from d3s.runtime.parallel import thread_count

PREVIEW, FIGURE, CAMERA, PNG = "preview", "figure", "camera", "png"
DISPARITIES = {f"disparity{suffix}": suffix for suffix in DISPARITY_SUFFIXES}
"""Formats of disparity, with the suffixes of their files."""


@dataclass(kw_only=True)
class Written:
    """Files of one frame, files that could not hold its depth map, and remarks."""

    files: tuple[Path, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)  # reason, by the name of the file
    remarks: list[str] = field(default_factory=list)
    png_unit_m: float | None = None  # unit of the PNG, if there is one


def write_frame(
    found: DepthMap,
    title: str,
    targets: dict[str, Path],
    *,
    unit_m: float | None,
    overwrite: bool,
) -> Written:
    """Write the files of a frame, by format as `DepthJob.targets` names them.

    A format that cannot hold the depths is left out, with the reason. If a place cannot be written,
    no new file of the frame stays, and an `OutputError` is raised. `unit_m` is the unit of the PNG;
    None for millimetres, or another unit if they do not fit.
    """
    new = [path for path in targets.values() if not os.path.lexists(path)]
    result = Written()
    jobs = _jobs(found, title, targets, overwrite, _png_unit_m(found, targets, unit_m, result))
    try:
        for kind, why in _run(jobs).items():
            _leave_out(targets[kind], why, overwrite, result)
    except D3SError:
        for path in new:
            with suppress(OSError):
                path.unlink()
        raise
    result.files = tuple(path for path in targets.values() if os.path.lexists(path))
    return result


def _run(jobs: dict[str, Callable[[], object]]) -> dict[str, InputError]:
    """Write all files; returns the refusals of formats that cannot hold the depths."""
    left_out = {}
    is_alone = thread_count() == 1 or len(jobs) < 2
    # Pictures are made while another thread compresses: zlib runs without Python's lock.
    with nullcontext() if is_alone else ThreadPoolExecutor(1) as pool:
        others = {
            kind: job if pool is None else pool.submit(job).result
            for kind, job in jobs.items()
            if kind not in (PREVIEW, FIGURE)
        }
        for kind in (PREVIEW, FIGURE):
            if kind in jobs:
                jobs[kind]()
        for kind, one in others.items():
            try:
                one()
            except InputError as error:
                left_out[kind] = error
    return left_out


def _jobs(
    found: DepthMap, title: str, targets: dict[str, Path], overwrite: bool, png_unit_m: float
) -> dict[str, Callable[[], object]]:
    """One call for each file, by format; the camera is written with the file that it is for."""
    jobs: dict[str, Callable[[], object]] = {}
    for kind, path in targets.items():
        if kind == PREVIEW:
            jobs[kind] = partial(write_plain_preview, path, found.depth_m, overwrite=overwrite)
        elif kind == FIGURE:
            words = f"{title}: {found.density:.0%} have a depth"
            jobs[kind] = partial(
                write_preview, path, found.depth_m, title=words, overwrite=overwrite
            )
        elif kind in DISPARITIES:
            jobs[kind] = partial(write_disparity, path, found.disparity_px, overwrite=overwrite)
        elif kind != CAMERA:
            jobs[kind] = partial(found.save, path, overwrite=overwrite, unit_m=png_unit_m)
    return jobs


def _png_unit_m(
    found: DepthMap, targets: dict[str, Path], unit_m: float | None, result: Written
) -> float:
    """Unit of the PNG in metres; another one than millimetres is remarked."""
    if PNG not in targets:
        return MILLIMETRE_M
    chosen = unit_m or fitting_unit_m(found.depth_m) or MILLIMETRE_M
    result.png_unit_m = chosen
    if unit_m is None and chosen != MILLIMETRE_M:
        result.remarks.append(
            f"{path_text(targets[PNG].name)} has units of {1e3 * chosen:g} mm, since 16 bit of "
            "1 mm do not hold its depths. --unit sets one unit for all frames."
        )
    return chosen


def _leave_out(path: Path, error: InputError, overwrite: bool, result: Written) -> None:
    """Note the reason; an earlier result of this name would be taken for the new one."""
    result.left_out[path.name] = str(error).removeprefix(f"{path_text(path)}: ")
    if path.name.endswith(f"depth.{PNG}"):
        result.png_unit_m = None
    if overwrite:
        with suppress(OSError):
            path.unlink()
