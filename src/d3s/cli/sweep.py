"""What commands with many trials share: how these are run, kept until all is written, and told."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from d3s.cli.output import value_of
from d3s.cli.progress import progress_bar

if TYPE_CHECKING:
    from d3s.types import Progress

INTERRUPTED = 130

Workers = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT",
        help="Processes to share the work among, each with one thread; one for each core if left.",
        show_default=False,
    ),
]


class Run(TypedDict):
    """How the library is to run a sweep; the arguments of that name."""

    workers: int | None
    folder: Path
    progress: "Progress | None"


@contextmanager
def sweep_run(
    files: Mapping[str, Path], pairs: int, *, workers: int | None, force: bool, quiet: bool
) -> Iterator[Run]:
    """Run a sweep of so many pairs, and write its files within.

    Trials are kept beside these files until then, under the name of the first of them; and who
    looks on sees how far it is.

    Raises
    ------
    OutputError
        At once, if one of the files is there already and may not be replaced.
    """
    from d3s.evaluate.tables import check_absent

    check_workers(workers)
    if not force:
        check_absent(*files.values())
    first = next(iter(files.values()))
    words = f"Trying {pairs} pairs."
    with (
        _kept_trials(first.parent, first.stem) as folder,
        progress_bar(pairs, words, quiet=quiet) as progress,
    ):
        yield {"workers": workers, "folder": folder, "progress": progress}


def check_workers(workers: int | None) -> None:
    """Refuse a number of processes that cannot be, as wrong use."""
    from d3s.evaluate.jobs import checked_workers

    with value_of("--workers"):
        checked_workers(workers)


def say_files(files: Mapping[str, Path]) -> None:
    """Where the results are, by what they are."""
    for what, path in files.items():
        # Not through rich, which would wrap a long path and read brackets in it as markup.
        typer.echo(f"{what.capitalize()}: {path}")


@contextmanager
def _kept_trials(output: Path, command: str) -> Iterator[Path]:
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
