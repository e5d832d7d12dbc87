"""Progress of long work: a bar on a terminal, one line elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:  # d3s.types imports numpy, which is slow
    from d3s import types


@contextmanager
def progress_bar(total: int, words: str, *, quiet: bool) -> "Iterator[types.Progress | None]":
    """Yield the callback of a progress bar on stderr; None without a bar.

    Parameters
    ----------
    total
        Number of steps.
    words
        Line to print instead of a bar if stderr is not a terminal.
    quiet
        Whether to print nothing.
    """
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        typer.echo(words, err=True)
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, _: bar.update(task, completed=done)
