"""Progress of long work: a bar on a terminal, one line elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:  # d3s.types imports numpy, which is slow
    from d3s import types


_LINE_S = 60.0


class Failures:
    """Number of steps that failed so far, for a progress bar.

    Examples
    --------
    >>> from d3s.cli.progress import Failures
    >>> failures = Failures()
    >>> failures.add()
    >>> failures.words()
    '1 failed'
    """

    def __init__(self) -> None:
        self._count = 0

    def add(self, *_: object) -> None:
        """Count one more."""
        self._count += 1

    def words(self) -> str:
        """Number in words; empty if none failed."""
        return f"{self._count} failed" if self._count else ""


@contextmanager
def progress_bar(
    total: int, words: str, *, quiet: bool, failures: Failures | None = None
) -> "Iterator[types.Progress | None]":
    """Yield the callback of a progress bar on stderr; None if it is to be quiet.

    The bar has an estimate of the time that is left. Where stderr is no terminal, as in a log file,
    a line is printed first, and after each minute.

    Parameters
    ----------
    total
        Number of steps.
    words
        Line to print instead of a bar if stderr is not a terminal.
    quiet
        Whether to print nothing.
    failures
        Steps that failed so far, which are shown too.
    """
    failures = failures or Failures()
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
        yield lambda done, _: bar.update(task, completed=done, description=failures.words())


def _lines(failures: Failures) -> "types.Progress":
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
        failed = f", {failures.words()}" if failures.words() else ""
        typer.echo(f"{done} of {total}{failed}; the end is near {end}.", err=True)

    return say
