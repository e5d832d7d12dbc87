"""`d3s depth`: depth maps of pictures."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.camera import Numbers, chosen_rig
from d3s.cli.light import Bayer, FileEncoding, is_linear, order_of
from d3s.cli.output import BAD_INPUT, NOTHING_USABLE, SOME_FAILED, Force, Json, Quiet, value_of
from d3s.cli.progress import progress_bar
from d3s.cli.start import seconds_since_start
from d3s.cli.units import depth_range_m, disparity_range_px, length_m
from d3s.formats import DEPTH_SUFFIXES, MAX_PIXELS

if TYPE_CHECKING:
    from d3s.batch import Batch, Done
    from d3s.capture import FoundFiles
    from d3s.estimate import Options
    from d3s.rig import Rig

_MOST_REMARKS = 3
_NUMBER = re.compile(r"-?\d[\d.]*")
_MOST_ROWS = 40  # of the table; a long one has its first and last rows
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
            "folders, or one folder with names that end in _left and _right; or the folder of a "
            "Middlebury scene.",
            metavar="LEFT RIGHT | RAW | FOLDER",
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
            "has it), and preview (a picture).",
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
    from d3s.batch import DepthJob, estimate_files
    from d3s.capture import find_frames

    _check_combination(raw, side_by_side, force, skip_done)
    _check_rig_name(save_rig)
    found = find_frames(inputs, one_file_each=raw or side_by_side)
    pinhole = Numbers(focal_length_px, baseline, disparity_offset_px)
    camera, remarks = chosen_rig(rig, pinhole, found)
    for remark in () if quiet else remarks:
        typer.echo(f"Note: {remark}", err=True)
    name, options = _method(method, option or (), _range_m(depth_range, disparity_range, camera))
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
    with progress_bar(count, f"Estimating the depth of {count} frames.", quiet=silent) as progress:
        batch = estimate_files(
            found.frames, job, output, overwrite=force, skip_done=skip_done, progress=progress
        )
    _print_outcomes(found, batch, output, quiet=quiet, as_json=as_json)
    code = exit_code(found, batch)
    if code:
        raise typer.Exit(code)


def exit_code(found: "FoundFiles", batch: "Batch") -> int:
    """Exit code of the command."""
    refused = len(found.refused) + len(batch.refused)
    usable = len(batch.done) - len(batch.empty) + len(batch.skipped)
    if usable:
        return SOME_FAILED if refused or batch.empty or batch.incomplete else 0
    return NOTHING_USABLE if batch.done else BAD_INPUT


def _check_combination(raw: bool, side_by_side: bool, force: bool, skip_done: bool) -> None:
    if raw and side_by_side:
        raise typer.BadParameter("--raw and --side-by-side cannot both be: leave one of them.")
    if force and skip_done:
        raise typer.BadParameter("--force does all again and --skip-done does not: leave one.")


def _check_rig_name(save_rig: Path | None) -> None:
    if save_rig is not None and save_rig.suffix.lower() != ".toml":
        raise typer.BadParameter(
            f"{str(save_rig)!r} must end in .toml, as rig files do.", param_hint="--save-rig"
        )


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


def _method(
    method: str, options: Sequence[str], depth_range_m: tuple[float, float] | None
) -> "tuple[str, Options]":
    """Name of the method, and its options."""
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
    from d3s.batch.depth import check_formats
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


def _print_outcomes(
    found: "FoundFiles", batch: "Batch", output: Path, *, quiet: bool, as_json: bool
) -> None:
    """Print the results; refusals go to stderr, with --quiet too."""
    from d3s.estimate.summary import causes
    from d3s.files.raw import path_text

    refused = [*found.refused, *batch.refused]
    if as_json:
        values = {
            "done": [_as_json(one) for one in batch.done],
            "skipped": list(batch.skipped),
            "refused": [one._asdict() for one in refused],
            "ignored": [str(path) for path in found.ignored],
            "drift": None if batch.drift is None else batch.drift._asdict(),
        }
        typer.echo(json.dumps(values, indent=2, allow_nan=False))
    elif not quiet:
        _print_table(batch, len(found.ignored), output)
        for line in warning_lines([one for one in batch.done if one.density]):
            typer.echo(line, err=True)
        if batch.drift is not None:
            typer.echo(f"Warning: {batch.drift.words}", err=True)
    for name, reason in refused:
        named = reason if reason.startswith(name) else f"{name}: {reason}"
        typer.echo(f"Refused: {named}", err=True)
    for one in batch.incomplete:
        for file, reason in one.left_out.items():
            typer.echo(f"Not written: {path_text(file)}: {reason}", err=True)
    for one in batch.empty:
        words = f"{path_text(one.name) or 'the pair'}. {causes(one.warnings)}"
        typer.echo(f"No depth: {words}", err=True)


def warning_lines(done: "Sequence[Done]") -> list[str]:
    """Return each kind of warning once, as the first frame has it, with the number of others.

    Parameters
    ----------
    done
        Summaries of the frames.
    """
    from d3s.files.raw import path_text

    alike: dict[str, list[tuple[str, str]]] = {}
    for one in done:
        for words in one.warnings:
            cause = _NUMBER.sub("", words.partition(":")[0])
            alike.setdefault(cause, []).append((one.name, words))
    lines = []
    for same in alike.values():
        name, words = same[0]
        others = f" and {_counted(len(same) - 1, 'more frame')}" if len(same) > 1 else ""
        place = f"{path_text(name)}{others}: " if len(done) > 1 else ""
        lines.append(f"Warning: {place}{words}")
    return lines


def _print_table(batch: "Batch", ignored: int, output: Path) -> None:
    from rich.console import Console

    from d3s.files.raw import path_text

    if batch.done:
        Console().print(_table(batch.done))
    remarks = list(dict.fromkeys(remark for one in batch.done for remark in one.remarks))
    for remark in remarks[:_MOST_REMARKS]:
        typer.echo(f"Note: {remark}")
    if len(remarks) > _MOST_REMARKS:
        typer.echo(f"And {len(remarks) - _MOST_REMARKS} more notes; --json has them all.")
    if batch.skipped:
        typer.echo(f"Skipped, since results are there: {_counted(len(batch.skipped), 'frame')}.")
    if ignored:
        typer.echo(f"Left alone: {_counted(ignored, 'other file')}.")
    # Not through rich, which would wrap a long path and read brackets in it as markup.
    if len(batch.done) == 1:
        names = ", ".join(path_text(path.name) for path in batch.done[0].files)
        typer.echo(f"Files in {output}: {names}")
    elif batch.done:
        typer.echo(f"Files of {len(batch.done)} frames in {output}.")
    if batch.done:
        typer.echo(_waited(batch))


def _waited(batch: "Batch") -> str:
    """Time since the program began, and what it went into beside the frames of the table."""
    in_all_s = seconds_since_start()
    frames_s = sum(one.time_s + one.write_s for one in batch.done)
    rest = "start-up and reading" if len(batch.done) == 1 else "start-up and waiting for files"
    return f"{in_all_s:.1f} s in all, of which {in_all_s - frames_s:.1f} s for {rest}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


_TIMES = ("read (s)", "estimate (s)", "write (s)")


def _table(done: "tuple[Done, ...]") -> Any:
    from rich.markup import escape
    from rich.table import Table

    from d3s.files.raw import path_text

    table = Table()
    table.add_column("frame")
    for heading in ("density", "depth (m)", "median sigma (mm)", *_TIMES):
        table.add_column(heading, justify="right", no_wrap=heading.startswith("depth"))
    half = _MOST_ROWS // 2
    is_long = len(done) > _MOST_ROWS
    for one in (*done[:half], *done[-half:]) if is_long else done:
        if is_long and one is done[-half]:
            table.add_row("...")
        depths = f"{one.nearest_m:.2f} to {one.farthest_m:.2f}" if one.density else "none"
        table.add_row(
            escape(path_text(one.name) or "pair"),
            f"{one.density:.1%}",
            depths,
            f"{1e3 * one.median_sigma_m:.2f}" if one.density else "",
            *(f"{time_s:.2f}" for time_s in (one.read_s, one.time_s, one.write_s)),
        )
    return table


def _as_json(one: "Done") -> dict[str, Any]:
    numbers = ("nearest_m", "farthest_m", "median_sigma_m")
    values = {name: getattr(one, name) for name in numbers}
    return {
        "name": one.name,
        "density": one.density,
        **{name: value if math.isfinite(value) else None for name, value in values.items()},
        "read_s": one.read_s,
        "time_s": one.time_s,
        "write_s": one.write_s,
        "png_unit_m": one.png_unit_m,
        "left_out": one.left_out,
        "remarks": list(one.remarks),
        "warnings": list(one.warnings),
        "files": [str(path) for path in one.files],
    }
