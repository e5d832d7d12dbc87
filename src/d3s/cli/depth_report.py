"""Words and numbers of `d3s depth` for the terminal, and its exit code."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.output import BAD_INPUT, NOTHING_USABLE, SOME_FAILED, say_json, say_refused
from d3s.cli.start import seconds_since_start

if TYPE_CHECKING:
    from d3s.batch import Batch, Done
    from d3s.frames import FoundFiles

_MOST_REMARKS = 3
_NUMBER = re.compile(r"-?\d[\d.]*")
_MOST_LETTERS = 24  # of a name that is not cut in the table
_MOST_ROWS = 40  # of the table; a long one has its first and last rows


def exit_code(found: "FoundFiles", batch: "Batch") -> int:
    """Exit code of the command."""
    refused = len(found.refused) + len(batch.refused)
    usable = len(batch.done) - len(batch.empty) + len(batch.skipped)
    if usable:
        return SOME_FAILED if refused or batch.empty or batch.incomplete else 0
    return NOTHING_USABLE if batch.done else BAD_INPUT


def print_outcomes(
    found: "FoundFiles",
    batch: "Batch",
    output: Path,
    *,
    is_shared: bool,
    quiet: bool,
    as_json: bool,
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
            "remarks": list(batch.remarks),
            "table": None if batch.table is None else str(batch.table),
            "drift": None if batch.drift is None else batch.drift._asdict(),
        }
        say_json(values)
    elif not quiet:
        notes = Notes()
        for one in batch.done:
            notes.add(one)
        _print_table(batch, notes, len(found.ignored), output)
        if batch.done:
            typer.echo(_waited(len(batch.done), notes.work_s, is_shared))
        for line in notes.warning_lines():
            typer.echo(line, err=True)
        if batch.drift is not None:
            typer.echo(f"Warning: {batch.drift.words}", err=True)
    say_refused(refused)
    for one in batch.incomplete:
        for file, reason in one.left_out.items():
            typer.echo(f"Not written: {path_text(file)}: {reason}", err=True)
    for one in batch.empty:
        words = f"{path_text(one.name) or 'the pair'}. {causes(one.warnings)}"
        typer.echo(f"No depth: {words}", err=True)


class Notes:
    """Remarks, warnings and times of many frames, which are seen one by one."""

    def __init__(self) -> None:
        self.remarks: dict[str, None] = {}  # each once, in their order
        self.work_s = 0.0  # of estimates and of writing
        self._with_depth = 0
        self._alike: dict[str, tuple[str, str, int]] = {}  # first frame, its words, and frames

    def add(self, one: "Done") -> None:
        """Add those of a frame."""
        self.remarks |= dict.fromkeys(one.remarks)
        self.work_s += one.time_s + one.write_s
        if not one.density:  # told apart, with its likely causes
            return
        self._with_depth += 1
        for words in one.warnings:
            cause = _NUMBER.sub("", words.partition(":")[0])
            first, said, count = self._alike.get(cause, (one.name, words, 0))
            self._alike[cause] = first, said, count + 1

    def warning_lines(self) -> list[str]:
        """Return each kind of warning once, as its first frame has it, and the number of others."""
        from d3s.files.raw import path_text

        lines = []
        for name, words, count in self._alike.values():
            others = f" and {_counted(count - 1, 'more frame')}" if count > 1 else ""
            place = f"{path_text(name)}{others}: " if self._with_depth > 1 else ""
            lines.append(f"Warning: {place}{words}")
        return lines


def _print_table(batch: "Batch", notes: Notes, ignored: int, output: Path) -> None:
    from rich.console import Console

    from d3s.files.raw import path_text

    if batch.done:
        Console().print(_table(batch.done))
    remarks = list(dict.fromkeys([*batch.remarks, *notes.remarks]))
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
        first, last = batch.done[0].file_names, batch.done[-1].file_names
        arrays = [name for name in first if name in last]  # every frame has files of its own else
        if len(arrays) < len(first):
            typer.echo(f"Files of {len(batch.done)} frames in {output}.")
        for name in arrays:
            typer.echo(f"One array of all frames: {output / name}")
    if batch.table is not None:
        typer.echo(f"Figures of all frames: {batch.table}")


def _waited(frames: int, work_s: float, is_shared: bool) -> str:
    """Time since the program began, and what it went into beside the frames of the table."""
    in_all_s = seconds_since_start()
    if is_shared or frames > _MOST_ROWS:
        return f"{in_all_s:.1f} s in all, {frames / in_all_s:.3g} frames a second with the start."
    rest = "start-up and reading" if frames == 1 else "start-up and waiting for files"
    return f"{in_all_s:.1f} s in all, of which {in_all_s - work_s:.1f} s for {rest}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _table(done: "Sequence[Done]") -> Any:
    from rich.markup import escape
    from rich.table import Table

    from d3s.files.raw import path_text

    half = _MOST_ROWS // 2
    is_long = len(done) > _MOST_ROWS
    rows = (*done[:half], *done[-half:]) if is_long else tuple(done)
    names = [path_text(one.name) or "pair" for one in rows]
    table = Table()
    table.add_column("frame", min_width=min(max(map(len, names)), _MOST_LETTERS))
    for heading in ("density", "depth (m)", "median sigma (mm)", "estimate (s)"):
        table.add_column(heading, justify="right", no_wrap=heading.startswith("depth"))
    for place, (name, one) in enumerate(zip(names, rows, strict=True)):
        if is_long and place == half:
            table.add_row("...")
        depths = f"{one.nearest_m:.2f} to {one.farthest_m:.2f}" if one.density else "none"
        table.add_row(
            escape(name),
            f"{one.density:.1%}",
            depths,
            f"{1e3 * one.median_sigma_m:.2f}" if one.density else "",
            f"{one.time_s:.2f}",
        )
    return table


def _as_json(one: "Done") -> dict[str, Any]:
    from d3s.batch.table import FIGURES

    names = ("name", *FIGURES, "png_unit_m", "left_out", "remarks", "warnings")
    values = {name: getattr(one, name) for name in names}
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            values[name] = None
    return values | {"files": [str(path) for path in one.files]}
