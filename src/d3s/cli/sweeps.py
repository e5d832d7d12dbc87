"""Steps that all commands with many trials share, and tables of their results by method."""

import math
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from d3s.cli.output import goes_on, progress_bar, table, value_of

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.batch.running import Workers
    from d3s.lab.evaluate.contender import Contender
    from d3s.lab.evaluate.evaluation import Run

DEFAULT_METHODS = ("joint", "sgbm", "bm")
"""Our method, and the two of OpenCV."""

RESULTS = Path("evaluation")
ResultFolder = Annotated[
    Path, typer.Option("--output", "-o", help="Folder for the tables and the charts.")
]
"""Where the commands of `d3s evaluate` write."""

_BETWEEN_METHODS = r",(?![^\[]*\])"  # a comma that is not within the brackets of an option


def contenders_of(
    given: Iterable[str] | None, if_left: Iterable[str] = DEFAULT_METHODS
) -> "tuple[Contender, ...]":
    """Return the contenders that --method names."""
    from d3s.lab.evaluate.contender import as_contenders

    words = [one for text in given or if_left for one in re.split(_BETWEEN_METHODS, text)]
    with value_of("--method"):
        return as_contenders([word.strip() for word in words])


@contextmanager
def sweep_run(
    files: Mapping[str, Path], pairs: int, where: "Workers", *, force: bool, quiet: bool
) -> "Iterator[Run]":
    """Context in which a sweep over `pairs` is run and its files are written.

    Existing files are refused before anything is run. Finished trials are kept beside the files
    until the context ends, in a hidden folder named after the first file; after Ctrl-C they stay,
    and a line tells how to go on.
    """
    from d3s.lab.evaluate.evaluation import check_absent

    if not force:
        check_absent(*files.values())
    first = next(iter(files.values()))
    folder = first.parent / ".trials" / first.stem
    with (
        goes_on(
            lambda: (
                "The same command goes on from here: "
                f"{sum(1 for _ in folder.glob('*.json'))} finished trials are kept in {folder}."
            )
        ),
        progress_bar(pairs, f"Trying {pairs} pairs.", quiet=quiet) as progress,
    ):
        yield {"workers": where, "folder": folder, "progress": progress}
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # another command has trials there
        folder.parent.rmdir()


# Tables -------------------------------------------------------------------------------------------

Lines = Sequence[Mapping[str, Any]]
"""Lines of a summary, one for each method."""
_ANY_WIDTH = 10_000  # characters: wider than any table


class Form(NamedTuple):
    """How a number is shown: times a factor, by a format, with a unit."""

    factor: float = 1.0
    spec: str = ".2f"
    unit: str = ""

    def cell(self, value: Any) -> str:
        """Cell of a table; a dash for nothing."""
        if value is None or isinstance(value, str):
            return value or "-"
        if isinstance(value, tuple):  # a range of depths
            return f"{value[0]:.2f} to {value[1]:.2f}"
        return "-" if math.isnan(value) else f"{self.factor * value:{self.spec}}{self.unit}"


CM = Form(100, ".3f")
SHARE = Form(100, ".1f")
PERCENT = Form(100, ".1f", " %")
NUMBER = Form()

Figure = tuple[str, str | Callable[[Any], Any], Form]
"""Name of a figure, its key (or a function of the line), and its form."""


CPU: Figure = ("CPU seconds a pair", "time_s", NUMBER)
REGION: tuple[Figure, ...] = (("region", "region", NUMBER), ("of all\npixels", "share", SHARE))
"""Columns of tables by region, before those of the methods."""


def figures(title: str, lines: Lines, rows: Iterable[Figure]) -> "list[Table]":
    """Tables with a column for names of figures and one for each method, as many as fit."""

    def made(some: Lines) -> "Table":
        return table(
            ["", *(one["method"] for one in some)],
            [[name, *(form.cell(_value(one, key)) for one in some)] for name, key, form in rows],
            title=title,
        )

    rows = list(rows)
    return _split_to_width(lines, made)


def by_method(
    title: str,
    lines: Lines,
    parts: Callable[[Mapping[str, Any]], Lines],
    first: Sequence[Figure],
    columns: Sequence[Figure],
) -> "list[Table]":
    """Tables with columns for each method, whose name is above the first of them.

    `parts` are the rows of a method, such as its regions; `first` are the columns before those of
    the methods, which are the same for all.
    """

    def made(some: Lines) -> "Table":
        headings = [name for name, _, _ in first]
        for one in some:
            names = [one["method"], *[""] * (len(columns) - 1)]
            headings += [
                f"{name}\n{column[0]}" for name, column in zip(names, columns, strict=True)
            ]
        rows = [
            [
                *(form.cell(_value(each[0], key)) for _, key, form in first),
                *(form.cell(_value(row, key)) for row in each for _, key, form in columns),
            ]
            for each in zip(*map(parts, some), strict=True)
        ]
        return table(headings, rows, title=title)

    return _split_to_width(lines, made)


def _value(line: Mapping[str, Any], key: str | Callable[[Any], Any]) -> Any:
    return key(line) if callable(key) else line[key]


def _split_to_width(lines: Lines, made: "Callable[[Lines], Table]") -> "list[Table]":
    """Split a table by methods into tables that fit the width of the terminal."""
    from rich.console import Console

    console = Console()
    options = console.options.update(width=_ANY_WIDTH)
    for count in range(len(lines), 0, -1):
        tables = [made(lines[start : start + count]) for start in range(0, len(lines), count)]
        if all(console.measure(one, options=options).maximum <= console.width for one in tables):
            return tables
    return [made([one]) for one in lines]
