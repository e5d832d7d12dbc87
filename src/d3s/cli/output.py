"""Output of commands: exit codes, tables, progress, checks of places."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.errors import D3SError

if TYPE_CHECKING:  # d3s.types imports numpy, which is slow
    from rich.table import Table

    from d3s import types
    from d3s.frames import Refused

NOTHING_USABLE, BAD_INPUT, SOME_FAILED, DRIFTED, NOT_KNOWN = 1, 3, 4, 5, 6
INTERRUPTED = 130
"""Exit codes besides 0 (done) and 2 (wrong use)."""


# Words --------------------------------------------------------------------------------------------


def say_json(values: Any, indent: int = 2) -> None:
    """Print values as JSON."""
    typer.echo(json.dumps(values, indent=indent, allow_nan=False))


def say_refused(refused: "Iterable[Refused]") -> None:
    """Print to stderr what could not be used and why, each with its name once."""
    for name, reason in refused:
        named = reason if reason.startswith(name) else f"{name}: {reason}"
        typer.echo(f"Refused: {named}", err=True)


def say_step(words: str) -> None:
    """Print to stderr."""
    typer.echo(words, err=True)


def say_files(files: Mapping[str, Path | None]) -> None:
    """Print the paths of the results; not through rich, which would wrap long ones."""
    for what, path in files.items():
        if path is not None:
            typer.echo(f"{what}: {path}")


def end(code: int) -> None:
    """End the command, with an exit code that is not 0."""
    if code:
        raise typer.Exit(code)


@contextmanager
def value_of(option: str) -> Iterator[None]:
    """Report a `D3SError` inside the block as a wrong value of `option`: exit code 2, not 3."""
    try:
        yield
    except D3SError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@contextmanager
def goes_on(words: Callable[[], str]) -> Iterator[None]:
    """Say after Ctrl-C how the work goes on, and exit with `INTERRUPTED`."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"d3s: stopped. {words()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


# Places -------------------------------------------------------------------------------------------


def check_suffix(path: Path | None, option: str, *suffixes: str) -> None:
    """Refuse a file of an option whose name has none of these suffixes; None is no file."""
    if path is not None and path.suffix.lower() not in suffixes:
        raise typer.BadParameter(
            f"{str(path)!r} must end in {' or '.join(suffixes)}.", param_hint=option
        )


def check_places(*paths: Path | None, force: bool) -> None:
    """Refuse paths of files that exist or cannot be written, before the work; None is no file."""
    from d3s.errors import OutputError

    for path in filter(None, paths):
        if not path.parent.is_dir():
            raise OutputError(f"{path} cannot be written: {path.parent} is no folder. Make it.")
        if path.is_dir():
            raise OutputError(f"{path} cannot be written: it is a folder. Name a file in it.")
        if os.path.lexists(path) and not force:
            raise OutputError(
                f"{path} exists. Choose another name, or allow it to be replaced with --force."
            )
        if not os.access(Path(os.path.realpath(path)).parent, os.W_OK | os.X_OK):
            raise OutputError(f"{path} cannot be written. Choose a folder you may write to.")


# Tables -------------------------------------------------------------------------------------------

_COLOURS = {
    **dict.fromkeys(("good", "steady"), "green"),
    **dict.fromkeys(("usable", "unknown"), "yellow"),
    **dict.fromkeys(("bad", "drifted", "turn"), "red"),
}


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    caption: str = "",
    is_narrow: bool = False,
) -> "Table":
    """Table of names and numbers, as they are; a narrow one has no lines between its columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    narrow: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)} if is_narrow else {}
    made = Table(
        title=Text(title) if title else None,
        caption=caption or None,
        show_header=any(headings),
        **narrow,
    )
    for number, heading in enumerate(headings):
        made.add_column(
            Text(heading),
            justify="right" if number and any(headings) else "left",
            no_wrap=number > 0 and is_narrow,
        )
    for cells in rows:
        made.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in cells))
    return made


def show(*parts: "Table | str", notes: str = "") -> None:
    """Print tables and sentences, and notes on their terms below."""
    from rich.console import Console

    console = Console()
    for part in parts:
        console.print(part, markup=False, highlight=False)
    if notes:
        console.print(notes, style="dim", markup=False)


# Progress -----------------------------------------------------------------------------------------

_LINE_S = 60.0


@contextmanager
def progress_bar(
    total: int, words: str, *, quiet: bool, failures: Sequence[object] = ()
) -> "Iterator[types.Progress | None]":
    """Yield the callback of a progress bar on stderr; None if it is to be quiet.

    The bar has an estimate of the time that is left. Where stderr is no terminal, as in a log file,
    a line is printed first, and after each minute. It tells how many `failures` there are by then.
    """
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        typer.echo(words, err=True)
        yield _lines(failures)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    failed = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), failed)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, of: bar.update(
            task, completed=done, total=of, description=_failed(failures)
        )


def _failed(failures: Sequence[object]) -> str:
    return f"{len(failures)} failed" if failures else ""


def _lines(failures: Sequence[object]) -> "types.Progress":
    """Progress as a line a minute, with an estimate of the end."""
    started = told = time.monotonic()
    first: int | None = None  # steps that were done before take no time

    def say(done: int, total: int) -> None:
        nonlocal told, first
        now = time.monotonic()
        first = done if first is None else first
        if now - told < _LINE_S or done <= first:
            return
        told = now
        left_s = (now - started) / (done - first) * (total - done)
        end = (datetime.now() + timedelta(seconds=left_s)).strftime("%H:%M")
        failed = ", ".join(filter(None, [f"{done} of {total}", _failed(failures)]))
        typer.echo(f"{failed}; done at about {end}.", err=True)

    return say
