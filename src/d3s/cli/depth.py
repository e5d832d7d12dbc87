"""`d3s depth`: depth maps of pictures, and what is said of them."""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.camera import PairNumbers, chosen_place, rig_of_files
from d3s.cli.options import Estimate, Light, Telling
from d3s.cli.output import (
    BAD_INPUT,
    NOTHING_USABLE,
    SOME_FAILED,
    check_suffix,
    end,
    goes_on,
    progress_bar,
    say_json,
    say_refused,
    say_step,
    show,
    table,
    value_of,
)
from d3s.cli.start import seconds_since_start
from d3s.cli.values import Length, length_m
from d3s.formats import MAX_PIXELS

if TYPE_CHECKING:
    from d3s.batch import Batch, Done
    from d3s.batch.running import Workers
    from d3s.estimate import Options
    from d3s.frames import FoundFiles
    from d3s.rig import Rig

_FRAMES_A_WORKER = 8


def depth(
    inputs: list[Path],
    *,
    output: Path = Path("depth"),
    rig: str | None = None,
    pinhole: PairNumbers,
    save_rig: Path | None = None,
    raw: bool = False,
    side_by_side: bool = False,
    light: Light,
    estimate: Estimate,
    min_confidence: float | None = None,
    max_sigma: Length = None,
    dense: str | None = None,
    formats: str = "npz,png,preview",
    unit: Length = None,
    max_pixels: int = MAX_PIXELS,
    workers: int | None = None,
    scheduler: str | None = None,
    telling: Telling,
) -> None:
    """Find the depth of your pictures, with an error bar for each pixel.

    Does all that can be done and names the rest: exit code 4 if some inputs or files failed, 3 if
    all did, and 1 if no pixel has a depth. Lengths are metres, or have a unit: 3.84mm, 25cm, 0.3m.
    A run of many frames that was stopped goes on when it is started again. The camera is that of
    calib.txt beside the views if it is not said.

    Options:
        inputs (LEFT RIGHT | RAW | FOLDER | RECORDING): Left and right view; or one raw frame; or
            several: left/*.png right/*.png, two folders, or folders with names that end in _left
            and _right; or the folder of a Middlebury scene; or recordings (.mcap), videos, and Zarr
            arrays.
        save_rig (FILE): Write the camera to a rig file, for --rig.
        dense ([LENGTH|all]): Fill holes of which a sigma of 5 cm can be told, or that of
            --dense=LENGTH; --dense=all fills all. Filled depths have the flag FILLED.
        formats (LIST): Files to write: npz (everything), png (16 bit, mm), tiff, pfm, npy, exr,
            ply, csv, mcap, disparity.pfm, disparity.png (16 bit, as KITTI has it), zarr (one array
            of all frames), preview (a picture), and figure (a drawn one, with a scale).
        unit: Unit of the integers in the PNG, such as 0.1mm; 1mm if left, or a coarser one that is
            told if depths do not fit.
        max_pixels: Read files of up to so many pixels.
    """
    from d3s.batch import DepthJob, estimate_files, find_inputs
    from d3s.batch.table import JOB

    if raw and side_by_side:
        raise typer.BadParameter("--raw and --side-by-side cannot both be: leave one of them.")
    check_suffix(save_rig, "--save-rig", ".toml")
    found = find_inputs(inputs, one_file_each=raw or side_by_side, side_by_side=side_by_side)
    camera = rig_of_files(rig, pinhole, found, quiet=telling.quiet)
    name, options = parsed_method(estimate, camera)
    _check_limits(min_confidence, max_sigma)
    job = DepthJob(
        rig=camera,
        method=name,
        options=options,
        side_by_side=side_by_side,
        linear=light.linear,
        bayer=light.bayer,
        min_confidence=min_confidence,
        max_sigma_m=max_sigma,
        dense=None if dense is None else max_sigma_m(dense, "--dense"),
        formats=_formats(formats, unit),
        unit_m=unit,
        max_pixels=max_pixels,
    )
    if save_rig is not None:
        camera.save(save_rig, overwrite=telling.force)
    count = len(found.frames)
    where = _place(workers, scheduler, count)
    failures: list[object] = []
    with (
        goes_on(
            lambda: (
                f"What is finished of {count} frames is whole, in {output}. The same command "
                "without --force goes on from here."
            )
        ),
        progress_bar(
            count,
            f"Estimating the depth of {count} frames.",
            quiet=telling.is_silent or count < 2,
            failures=failures,
        ) as progress,
    ):
        batch = estimate_files(
            found.frames,
            job,
            output,
            overwrite=telling.force,
            skip_done=count > 1 and not telling.force and (output / JOB).exists(),
            workers=where,
            progress=progress,
            on_refused=failures.append,
        )
    _print_outcomes(found, batch, output, telling, is_shared=where != 1)
    end(exit_code(found, batch))


def _place(workers: int | None, scheduler: str | None, frames: int) -> "Workers":
    """Place of the work: without a word, this process for few frames."""
    from d3s.runtime.parallel import allowed_cores

    if workers is None and scheduler is None:
        # A worker takes some seconds to start, which a few frames do not pay back.
        return max(1, min(allowed_cores(), frames // _FRAMES_A_WORKER))
    return chosen_place(workers, scheduler)


def parsed_method(given: Estimate, camera: "Rig | None" = None) -> "tuple[str, Options]":
    """Name of a method and its options, of the words of a command.

    The camera turns a range of disparities into depths.
    """
    from d3s.estimate.methods import checked_options, parse_method, parse_option

    with value_of("--method"):
        name, fields = parse_method(given.method)  # which may hold options: joint:window=9
        checked_options(name, fields)
    with value_of("--option"):
        checked = checked_options(name, fields | dict(map(parse_option, given.option or ())))
    range_m = given.depth_range
    if given.disparity_range is not None:
        if range_m is not None:
            raise typer.BadParameter("--depth-range and --disparity-range: leave one of them.")
        if camera is None:
            raise typer.BadParameter("it needs --rig here.", param_hint="--disparity-range")
        with value_of("--disparity-range"):
            range_m = camera.optics.depth_range_m(given.disparity_range)
    if range_m is None:
        return name, checked
    with value_of("--depth-range"):
        return name, checked.replace(depth_range_m=range_m)


def _check_limits(min_confidence: float | None, max_sigma_m: float | None) -> None:
    """Refuse limits that cannot be, as wrong use."""
    from d3s.estimate.depth_map import check_limits

    with value_of("--min-confidence"):
        check_limits(min_confidence=min_confidence)
    with value_of("--max-sigma"):
        check_limits(max_sigma_m=max_sigma_m)


def max_sigma_m(text: str, option: str) -> float:
    """Largest sigma of filled depths in metres, infinite for `all`."""
    try:
        return math.inf if text == "all" else length_m(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


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


# Words --------------------------------------------------------------------------------------------

_MOST_REMARKS = 3
_NUMBER = re.compile(r"-?\d[\d.]*")
_MOST_ROWS = 40  # of the table; a long one has its first and last rows
_HEADINGS = ("frame", "density", "depth (m)", "median sigma (mm)", "estimate (s)")


def exit_code(found: "FoundFiles", batch: "Batch") -> int:
    """Exit code of the command."""
    refused = len(found.refused) + len(batch.refused)
    if len(batch.done) - len(batch.empty) + len(batch.skipped):
        return SOME_FAILED if refused or batch.empty or batch.incomplete else 0
    return NOTHING_USABLE if batch.done else BAD_INPUT


def _print_outcomes(
    found: "FoundFiles", batch: "Batch", output: Path, telling: Telling, *, is_shared: bool
) -> None:
    """Print the results; refusals go to stderr, with --quiet too."""
    from d3s.estimate.summary import causes
    from d3s.files.raw import path_text

    refused = [*found.refused, *batch.refused]
    if telling.as_json:
        values = {
            "done": [_as_json(one) for one in batch.done],
            "skipped": list(batch.skipped),
            "refused": [one._asdict() for one in refused],
            "ignored": [str(path) for path in found.ignored],
            "remarks": list(batch.remarks),
            "table": None if batch.table is None else str(batch.table),
            "drift": None if batch.drift is None else batch.drift._asdict(),
        }
        say_json(values)
    elif not telling.quiet:
        _print_done(batch, len(found.ignored), output)
        if batch.done:
            typer.echo(_waited(batch.done, is_shared))
        for line in warning_lines(batch.done):
            say_step(line)
        if batch.drift is not None:
            say_step(f"Warning: {batch.drift.words}")
    say_refused(refused)
    for one in batch.incomplete:
        for file, reason in one.left_out.items():
            say_step(f"Not written: {path_text(file)}: {reason}")
    for one in batch.empty:
        say_step(f"No depth: {path_text(one.name) or 'the pair'}. {causes(one.warnings)}")


def warning_lines(done: "Sequence[Done]") -> list[str]:
    """Each kind of warning once, as its first frame has it, and the number of others.

    A frame without any depth is told apart, with its likely causes.
    """
    from d3s.files.raw import path_text

    found = [one for one in done if one.density]
    alike: dict[str, list[tuple[str, str]]] = {}  # frame and words by cause
    for one in found:
        for words in one.warnings:
            cause = _NUMBER.sub("", words.partition(":")[0])
            alike.setdefault(cause, []).append((one.name, words))
    lines = []
    for (name, words), *others in alike.values():
        more = f" and {_counted(len(others), 'more frame')}" if others else ""
        lines.append(f"Warning: {f'{path_text(name)}{more}: ' if len(found) > 1 else ''}{words}")
    return lines


def _print_done(batch: "Batch", ignored: int, output: Path) -> None:
    from d3s.files.raw import path_text

    if batch.done:
        show(table(_HEADINGS, list(_rows(batch.done))))
    remarks = dict.fromkeys([*batch.remarks, *(word for one in batch.done for word in one.remarks)])
    for remark in list(remarks)[:_MOST_REMARKS]:
        typer.echo(f"Note: {remark}")
    if len(remarks) > _MOST_REMARKS:
        typer.echo(f"And {len(remarks) - _MOST_REMARKS} more notes; --json has them all.")
    if batch.skipped:
        typer.echo(f"Skipped, since results are there: {_counted(len(batch.skipped), 'frame')}.")
    if ignored:
        typer.echo(f"Left alone: {_counted(ignored, 'other file')}.")
    if len(batch.done) == 1:
        names = ", ".join(path_text(path.name) for path in batch.done[0].files)
        typer.echo(f"Files in {output}: {names}")
    elif batch.done:
        first, last = batch.done[0].file_names, batch.done[-1].file_names
        arrays = [name for name in first if name in last]  # every frame has files of its own else
        if len(arrays) < len(first):
            typer.echo(f"Files of {len(batch.done)} frames in {output}.")
        for name in arrays:
            typer.echo(f"One array of all frames: {output / name}")
    if batch.table is not None:
        typer.echo(f"Figures of all frames: {batch.table}")


def _waited(done: "Sequence[Done]", is_shared: bool) -> str:
    """Time since the program began, and what it went into beside the frames of the table."""
    in_all_s, frames = seconds_since_start(), len(done)
    if is_shared or frames > _MOST_ROWS:
        return f"{in_all_s:.1f} s in all, {frames / in_all_s:.3g} frames a second with the start."
    rest = "start-up and reading" if frames == 1 else "start-up and waiting for files"
    work_s = sum(one.time_s + one.write_s for one in done)
    return f"{in_all_s:.1f} s in all, of which {in_all_s - work_s:.1f} s for {rest}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _rows(done: "Sequence[Done]") -> "Iterator[list[str]]":
    """Rows of the table."""
    from d3s.files.raw import path_text

    half = _MOST_ROWS // 2
    for place, one in enumerate(done):
        if len(done) > _MOST_ROWS and half <= place < len(done) - half:
            if place == half:
                yield ["..."]
            continue
        yield [
            path_text(one.name) or "pair",
            f"{one.density:.1%}",
            f"{one.nearest_m:.2f} to {one.farthest_m:.2f}" if one.density else "none",
            f"{1e3 * one.median_sigma_m:.2f}" if one.density else "",
            f"{one.time_s:.2f}",
        ]


def _as_json(one: "Done") -> dict[str, Any]:
    names = (
        *("name", "density", "nearest_m", "farthest_m", "median_sigma_m", "read_s", "time_s"),
        *("write_s", "png_unit_m", "left_out", "remarks", "warnings"),
    )
    values = {name: getattr(one, name) for name in names}
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            values[name] = None
    return {**values, "files": [str(path) for path in one.files]}
