"""How far long work is: a bar on a terminal, a line elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


@contextmanager
def progress_bar(
    total: int, words: str, *, quiet: bool
) -> Iterator[Callable[[int, int], None] | None]:
    """Function to call with how many of how many are done; None where nobody looks.

    `words` is the line for where there is no terminal.
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
