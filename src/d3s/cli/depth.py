"""`d3s depth`: depth maps of pictures."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.output import BAD_INPUT, NOTHING_USABLE, SOME_FAILED, Force, Json, Quiet, value_of
from d3s.cli.progress import progress_bar
from d3s.cli.units import depth_range_m, length_m
from d3s.formats import DEPTH_SUFFIXES

if TYPE_CHECKING:
    from d3s.batch import Batch, Done
    from d3s.capture import FoundFiles
    from d3s.estimate import Options
    from d3s.rig import Rig

PAPER = "paper"
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
            "folders, or one folder with names that end in _left and _right.",
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
            help="Rig file of the camera; or paper, the paper's prototype as designed.",
            show_default=False,
        ),
    ] = None,
    focal_length_px: Annotated[
        float | None,
        typer.Option(help="Any rectified pair, without a rig file: its focal length in pixels."),
    ] = None,
    baseline: Annotated[
        float | None,
        typer.Option(parser=length_m, metavar="LENGTH", help="And its baseline, such as 193mm."),
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
            help="Depths to look for, such as 0.25:2.5; what the camera can see if left.",
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
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME,NAME...",
            help=f"Files to write: {_FORMAT_NAMES}, and preview (a picture).",
        ),
    ] = "npz,png,preview",
    skip_done: Annotated[
        bool, typer.Option("--skip-done", help="Go on where an earlier run was stopped.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the depth of your pictures, with an error bar for each pixel.

    Does all that can be done and names the rest: exit code 4 if some inputs failed, 3 if all did,
    and 1 if no pixel has a depth. Lengths are metres, or have a unit: 3.84mm, 25cm, 0.3m.
    """
    from d3s.batch import DepthJob, estimate_files
    from d3s.capture import find_frames

    _check_combination(raw, side_by_side, force, skip_done)
    _check_rig_name(save_rig)
    found = find_frames(inputs, one_file_each=raw or side_by_side)
    camera = _rig(rig, focal_length_px, baseline, disparity_offset_px)
    name, options = _method(method, option or (), depth_range)
    _check_limits(min_confidence, max_sigma)
    job = DepthJob(
        rig=camera,
        method=name,
        options=options,
        side_by_side=side_by_side,
        min_confidence=min_confidence,
        max_sigma_m=max_sigma,
        formats=_formats(formats),
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
        return SOME_FAILED if refused or batch.empty else 0
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


def _rig(
    rig: str | None,
    focal_length_px: float | None,
    baseline_m: float | None,
    disparity_offset_px: float | None,
) -> "Rig":
    """Camera by its file, by name, or as a pinhole pair."""
    from d3s.rig import Rig

    pinhole = (focal_length_px, baseline_m, disparity_offset_px)
    if rig is not None:
        if any(value is not None for value in pinhole):
            raise typer.BadParameter(
                "--rig says all of the camera: leave it, or --focal-length-px, --baseline and "
                "--disparity-offset-px."
            )
        return Rig.paper_prototype() if rig == PAPER else Rig.load(rig)
    if focal_length_px is None or baseline_m is None:
        raise typer.BadParameter(
            "which camera took this? Give its rig file with --rig, or --rig paper for the paper's "
            "prototype; for any other rectified pair give --focal-length-px and --baseline."
        )
    with value_of("--focal-length-px, --baseline or --disparity-offset-px"):
        return Rig.from_pinhole(
            focal_length_px=focal_length_px,
            baseline_m=baseline_m,
            disparity_offset_px=disparity_offset_px or 0.0,
        )


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


def _check_limits(min_confidence: float | None, max_sigma_m: float | None) -> None:
    from d3s.estimate.depth_map import check_limits

    with value_of("--min-confidence"):
        check_limits(min_confidence=min_confidence)
    with value_of("--max-sigma"):
        check_limits(max_sigma_m=max_sigma_m)


def _formats(text: str) -> tuple[str, ...]:
    from d3s.batch.depth import check_formats

    names = tuple(dict.fromkeys(one.strip() for one in text.split(",")))
    with value_of("--format"):
        check_formats(names)
    return names


def _print_outcomes(
    found: "FoundFiles", batch: "Batch", output: Path, *, quiet: bool, as_json: bool
) -> None:
    """Print the results; refusals go to stderr, with --quiet too."""
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
    for one in batch.empty:
        cause = " ".join(f"{words[0].upper()}{words[1:]}" for words in one.warnings) or _NO_DEPTH
        typer.echo(f"No depth: {path_text(one.name) or 'the pair'}. {cause}", err=True)


_NO_DEPTH = (
    "No pixel has one: is this the camera that took it, are both views rectified, and is there "
    "texture? d3s info of the .npz says which flags stand in the way."
)


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


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _table(done: "tuple[Done, ...]") -> Any:
    from rich.markup import escape
    from rich.table import Table

    from d3s.files.raw import path_text

    table = Table()
    table.add_column("frame")
    for heading in ("density", "depth (m)", "median sigma (mm)", "time (ms)"):
        table.add_column(heading, justify="right")
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
            f"{1e3 * one.time_s:.0f}",
        )
    return table


def _as_json(one: "Done") -> dict[str, Any]:
    numbers = ("nearest_m", "farthest_m", "median_sigma_m")
    values = {name: getattr(one, name) for name in numbers}
    return {
        "name": one.name,
        "density": one.density,
        **{name: value if math.isfinite(value) else None for name, value in values.items()},
        "time_s": one.time_s,
        "remarks": list(one.remarks),
        "warnings": list(one.warnings),
        "files": [str(path) for path in one.files],
    }
