"""`d3s depth`: depth maps of pictures."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.camera import Numbers, chosen_rig
from d3s.cli.depth_report import exit_code, print_outcomes
from d3s.cli.options import (
    Bayer,
    FileEncoding,
    depth_range_m,
    disparity_range_px,
    is_linear,
    length_m,
    order_of,
)
from d3s.cli.output import (
    Force,
    Json,
    Quiet,
    check_suffix,
    goes_on,
    progress_bar,
    value_of,
)
from d3s.cli.sweep import Scheduler, chosen_place
from d3s.formats import DEPTH_SUFFIXES, MAX_PIXELS

if TYPE_CHECKING:
    from d3s.batch.running import Workers
    from d3s.estimate import Options
    from d3s.rig import Rig

_FRAMES_A_WORKER = 8
_HINTS = {"npz": " (everything)", "png": " (16 bit, mm)"}
_FORMAT_NAMES = ", ".join(
    f"{name}{_HINTS.get(name, '')}"
    for name in dict.fromkeys(one.suffixes[0].removeprefix(".") for one in DEPTH_SUFFIXES.values())
)


def depth(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="Left and right view; or one raw frame; or several: left/*.png right/*.png, two "
            "folders, or folders with names that end in _left and _right; or the folder of a "
            "Middlebury scene; or recordings (.mcap), videos, and Zarr arrays.",
            metavar="LEFT RIGHT | RAW | FOLDER | RECORDING",
            show_default=False,
            readable=False,  # files that cannot be read are refused one by one
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "depth"
    ),
    rig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|paper",
            help="Rig file of the camera, or a calibration file that d3s rig import reads; or "
            "paper, the paper's prototype as designed. If left, calib.txt beside the views.",
            show_default=False,
        ),
    ] = None,
    focal_length_px: Annotated[
        float | None,
        typer.Option(help="Any rectified pair, without a rig file: its focal length in pixels."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="And its baseline, such as 193mm."),
    ] = None,
    disparity_offset_px: Annotated[
        float | None,
        typer.Option(help="And x_left - x_right of a point at infinity; 0 if left."),
    ] = None,
    save_rig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the camera to a rig file, for --rig.", show_default=False
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Each file is a raw frame of a calibrated rig.")
    ] = False,
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", help="Each file has both views, left and right half.")
    ] = False,
    bayer: Bayer = None,
    encoding: FileEncoding = None,
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="joint, consensus, sgbm, or another of d3s compare."),
    ] = "joint",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Option of the method, such as min_confidence=0.6. Repeatable.",
            show_default=False,
        ),
    ] = None,
    depth_range: Annotated[
        Any,
        typer.Option(
            parser=depth_range_m,
            metavar="NEAREST:FARTHEST",
            help="Depths to look for, such as 0.25:2.5 or 1.8:inf; what the camera can see if "
            "left.",
            show_default=False,
        ),
    ] = None,
    disparity_range: Annotated[
        Any,
        typer.Option(
            parser=disparity_range_px,
            metavar="SMALLEST:LARGEST",
            help="Or disparities to look for, in pixels, such as 0:70.",
            show_default=False,
        ),
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(help="Leave out depths that are less confident, 0 to 1.")
    ] = None,
    max_sigma: Annotated[
        float | None,
        typer.Option(
            parser=length_m,
            metavar="LENGTH",
            help="Leave out depths that are less certain, such as 5mm.",
        ),
    ] = None,
    dense: Annotated[
        str | None,
        typer.Option(
            metavar="[=LENGTH|=all]",
            help="Also fill holes whose depth can be known to 5cm, or to another sigma: "
            "--dense=2cm; --dense=all fills all of them. Filled depths have a flag.",
            show_default=False,
        ),
    ] = None,
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME,NAME...",
            help=f"Files to write: {_FORMAT_NAMES}, disparity.pfm, disparity.png (16 bit, as KITTI "
            "has it), zarr (one array of all frames), preview (a picture), and figure (a drawn "
            "one, with a scale).",
        ),
    ] = "npz,png,preview",
    unit: Annotated[
        float | None,
        typer.Option(
            parser=length_m,
            metavar="LENGTH",
            help="Unit of the integers in the PNG, such as 0.1mm; 1mm if left, or a coarser one "
            "that is told if depths do not fit.",
            show_default=False,
        ),
    ] = None,
    max_pixels: Annotated[
        int, typer.Option(min=1, help="Read files of up to so many pixels.")
    ] = MAX_PIXELS,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT",
            help="Processes to share the frames among, each with one thread; 1 is one process with "
            "all threads. If left, one for each core from 16 frames on.",
            show_default=False,
        ),
    ] = None,
    scheduler: Scheduler = None,
    skip_done: Annotated[
        bool, typer.Option("--skip-done", help="Go on where an earlier run was stopped.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the depth of your pictures, with an error bar for each pixel.

    Does all that can be done and names the rest: exit code 4 if some inputs or files failed, 3 if
    all did, and 1 if no pixel has a depth. Lengths are metres, or have a unit: 3.84mm, 25cm, 0.3m.
    """
    from d3s.batch import DepthJob, estimate_files, find_inputs

    _check_combination(raw, side_by_side, force, skip_done)
    check_suffix(save_rig, "--save-rig", ".toml")
    found = find_inputs(inputs, one_file_each=raw or side_by_side, side_by_side=side_by_side)
    pinhole = Numbers(focal_length_px, baseline, disparity_offset_px)
    camera, remarks = chosen_rig(rig, pinhole, found)
    for remark in () if quiet else remarks:
        typer.echo(f"Note: {remark}", err=True)
    depths_m = _range_m(depth_range, disparity_range, camera)
    name, options = parsed_method(method, option or (), depths_m)
    _check_limits(min_confidence, max_sigma)
    job = DepthJob(
        rig=camera,
        method=name,
        options=options,
        side_by_side=side_by_side,
        linear=is_linear(encoding),
        bayer=order_of(bayer),
        min_confidence=min_confidence,
        max_sigma_m=max_sigma,
        dense=_dense_sigma_m(dense),
        formats=_formats(formats, unit),
        unit_m=unit,
        max_pixels=max_pixels,
    )
    if save_rig is not None:
        camera.save(save_rig, overwrite=force)
    count = len(found.frames)
    silent = quiet or as_json or count < 2
    place = _place(workers, scheduler, count)
    words = f"Estimating the depth of {count} frames."
    failures: list[object] = []
    with (
        goes_on(
            lambda: (
                f"What is finished of {count} frames is whole, in {output}. The same command "
                "with --skip-done instead of --force goes on from here."
            )
        ),
        progress_bar(count, words, quiet=silent, failures=failures) as progress,
    ):
        batch = estimate_files(
            found.frames,
            job,
            output,
            overwrite=force,
            skip_done=skip_done,
            workers=place,
            progress=progress,
            on_refused=failures.append,
        )
    print_outcomes(found, batch, output, is_shared=place != 1, quiet=quiet, as_json=as_json)
    code = exit_code(found, batch)
    if code:
        raise typer.Exit(code)


def _place(workers: int | None, scheduler: str | None, frames: int) -> "Workers":
    """Place of the work: without a word, this process for few frames."""
    from d3s.runtime.parallel import allowed_cores

    if workers is None and scheduler is None:
        # A worker takes some seconds to start, which a few frames do not pay back.
        return max(1, min(allowed_cores(), frames // _FRAMES_A_WORKER))
    return chosen_place(workers, scheduler)


def _check_combination(raw: bool, side_by_side: bool, force: bool, skip_done: bool) -> None:
    if raw and side_by_side:
        raise typer.BadParameter("--raw and --side-by-side cannot both be: leave one of them.")
    if force and skip_done:
        raise typer.BadParameter("--force does all again and --skip-done does not: leave one.")


def _range_m(
    depth_range_m: tuple[float, float] | None,
    disparity_range_px: tuple[float, float] | None,
    camera: "Rig",
) -> tuple[float, float] | None:
    """Depths to look for, of --depth-range or of --disparity-range."""
    if disparity_range_px is None:
        return depth_range_m
    if depth_range_m is not None:
        raise typer.BadParameter("--depth-range and --disparity-range: leave one of them.")
    with value_of("--disparity-range"):
        return camera.optics.depth_range_m(disparity_range_px)


def parsed_method(
    method: str, options: Sequence[str], depth_range_m: tuple[float, float] | None
) -> "tuple[str, Options]":
    """Name of a method and its options, of the words of a command."""
    from d3s.estimate.methods import checked_options, parse_method, parse_option

    with value_of("--method"):
        name, given = parse_method(method)  # which may hold options: joint:window=9
        checked_options(name, given)
    with value_of("--option"):
        checked = checked_options(name, given | dict(map(parse_option, options)))
    if depth_range_m is None:
        return name, checked
    with value_of("--depth-range"):
        return name, checked.replace(depth_range_m=depth_range_m)


def _dense_sigma_m(text: str | None) -> float | None:
    """Largest sigma of filled depths in metres, infinite for all; None without --dense."""
    from d3s.cli.densify import max_sigma_m

    if text is None:
        return None
    found = max_sigma_m(text, "--dense")
    return math.inf if found is None else found


def _check_limits(min_confidence: float | None, max_sigma_m: float | None) -> None:
    from d3s.estimate.depth_map import check_limits

    with value_of("--min-confidence"):
        check_limits(min_confidence=min_confidence)
    with value_of("--max-sigma"):
        check_limits(max_sigma_m=max_sigma_m)


def _formats(text: str, unit_m: float | None) -> tuple[str, ...]:
    from d3s.batch.job import check_formats
    from d3s.files.depth_png import check_unit

    names = tuple(dict.fromkeys(one.strip() for one in text.split(",")))
    with value_of("--format"):
        check_formats(names)
    if unit_m is not None:
        with value_of("--unit"):
            check_unit(unit_m)
        if "png" not in names:
            raise typer.BadParameter("it is for a PNG, and none is written.", param_hint="--unit")
    return names
