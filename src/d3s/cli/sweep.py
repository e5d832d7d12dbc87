"""Trials of a long command that are kept until it has written its results."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

INTERRUPTED = 130

Workers = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT",
        help="Processes to share the work among, each with one thread; one for each core if left.",
        show_default=False,
    ),
]


@contextmanager
def kept_trials(output: Path, command: str) -> Iterator[Path]:
    """A hidden folder of a command beside its results, which is gone when all is done.

    After Ctrl-C it is still there, and somebody is told how to go on. What other commands have in
    the same place stays.
    """
    folder = output / ".trials" / command
    try:
        yield folder
    except KeyboardInterrupt:
        kept = sum(1 for _ in folder.glob("*.json"))
        typer.echo(
            f"d3s: stopped. The same command goes on from here: {kept} finished trials are kept in "
            f"{folder}.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # another command has trials there
        folder.parent.rmdir()
