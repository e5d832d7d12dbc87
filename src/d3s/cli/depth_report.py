"""Words and numbers of `d3s depth` for the terminal, and its exit code."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.output import BAD_INPUT, NOTHING_USABLE, SOME_FAILED
from d3s.cli.start import seconds_since_start

if TYPE_CHECKING:
    from d3s.batch import Batch, Done
    from d3s.batch.inputs import Found

_MOST_REMARKS = 3
_NUMBER = re.compile(r"-?\d[\d.]*")
_MOST_ROWS = 40  # of the table; a long one has its first and last rows


def exit_code(found: "Found", batch: "Batch") -> int:
    """Exit code of the command."""
    refused = len(found.refused) + len(batch.refused)
    usable = len(batch.done) - len(batch.empty) + len(batch.skipped)
    if usable:
        return SOME_FAILED if refused or batch.empty or batch.incomplete else 0
    return NOTHING_USABLE if batch.done else BAD_INPUT


def print_outcomes(
    found: "Found", batch: "Batch", output: Path, *, quiet: bool, as_json: bool
) -> None:
    """Print the results; refusals go to stderr, with --quiet too.

    Parameters
    ----------
    found, batch
        Files that were found, and what became of them.
    output
        Folder of the results.
    quiet, as_json
        Whether nothing but refusals is printed, or JSON instead of a table.
    """
    from d3s.estimate.summary import causes
    from d3s.files.raw import path_text

    refused = [*found.refused, *batch.refused]
    if as_json:
        values = {
            "done": [_as_json(one) for one in batch.done],
            "skipped": list(batch.skipped),
            "refused": [one._asdict() for one in refused],
            "ignored": [str(path) for path in found.ignored],
            "remarks": list(batch.remarks),
            "manifest": None if batch.manifest is None else str(batch.manifest),
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
    remarks = [*batch.remarks, *(remark for one in batch.done for remark in one.remarks)]
    remarks = list(dict.fromkeys(remarks))
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
    if batch.manifest is not None:
        typer.echo(f"Figures of all frames: {batch.manifest.with_suffix('.csv')}")
    if batch.done:
        typer.echo(_waited(batch))


def _waited(batch: "Batch") -> str:
    """Time since the program began, and what it went into beside the frames of the table."""
    in_all_s = seconds_since_start()
    frames_s = sum(one.time_s + one.write_s for one in batch.done)
    if frames_s > in_all_s or len(batch.done) > _MOST_ROWS:  # with several workers
        rate = len(batch.done) / in_all_s
        return f"{in_all_s:.1f} s in all, {rate:.3g} frames a second with the start."
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
