"""Shared by the commands: common options, exit codes, and checks of the output folder."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from d3s.errors import D3SError

if TYPE_CHECKING:
    from rich.table import Table

NOTHING_USABLE, BAD_INPUT, SOME_FAILED, DRIFTED, NOT_KNOWN = 1, 3, 4, 5, 6
"""Exit codes besides 0 (done) and 2 (wrong use)."""

Force = Annotated[bool, typer.Option("--force", help="Replace earlier results.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON, and no table.")]


@contextmanager
def value_of(option: str) -> Iterator[None]:
    """Report a `D3SError` inside the block as a wrong value of `option`: exit code 2, not 3."""
    try:
        yield
    except D3SError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def say_step(words: str) -> None:
    """Print the next step of the work to stderr."""
    typer.echo(words, err=True)


def check_free(folder: Path, files: Iterable[Path], *, force: bool) -> None:
    """Check before the work that all output files can be written.

    Parameters
    ----------
    folder
        Output folder; made if it does not exist.
    files
        Files that the command will write.
    force
        Whether existing files may be replaced.

    Raises
    ------
    OutputError
        When the folder cannot be written to, or a file exists and `force` is not set.
    """
    from d3s.atomic import make_folder
    from d3s.errors import OutputError

    make_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(
            f"{folder} cannot be written to. Choose a folder you may write to with --output."
        )
    taken = [path for path in files if os.path.lexists(path)]
    if taken and not force:
        others = f", and {len(taken) - 1} more" if len(taken) > 1 else ""
        raise OutputError(
            f"{taken[0]} exists{others}. Choose another --output, or replace with --force."
        )


def check_places(*paths: Path, force: bool) -> None:
    """Refuse paths of files that exist or cannot be written, before the work.

    Raises
    ------
    OutputError
        Naming the first of them.
    """
    from d3s.errors import OutputError

    for path in paths:
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


_GRADE_COLOURS = {
    **dict.fromkeys(("good", "steady"), "green"),
    **dict.fromkeys(("usable", "unknown"), "yellow"),
    **dict.fromkeys(("bad", "drifted"), "red"),
}


def graded_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> "Table":
    """Table of measures: a name, numbers, and a grade in its colour.

    Parameters
    ----------
    titles
        Titles of the columns but the last, which has none.
    rows
        Cells of each row; the last is a grade such as "good" or "drifted".
    """
    from rich.markup import escape
    from rich.table import Table

    table = Table(titles[0])
    for title in titles[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for *cells, grade in rows:
        colour = _GRADE_COLOURS[grade]
        table.add_row(*map(escape, cells), f"[{colour}]{grade}[/{colour}]")
    return table
