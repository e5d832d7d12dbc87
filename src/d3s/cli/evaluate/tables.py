"""Tables of `d3s evaluate` on the terminal, and numbers in their cells."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

Lines = Sequence[Mapping[str, Any]]
"""Lines of a summary, one for each method."""
Figure = tuple[str, Callable[[Any], str]]
"""Name of a figure, and the function from the results of a method to its cell."""
_ANY_WIDTH = 10_000  # characters: wider than any table


def figures(title: str, methods: Mapping[str, Any], rows: Iterable[Figure]) -> "Table":
    """Table with a column for the names of the figures, and one for each method."""
    from rich.table import Table

    table = Table(title=title)
    table.add_column("")
    for method in methods:
        table.add_column(escaped(method), justify="right", overflow="fold")
    for name, cell in rows:
        table.add_row(escaped(name), *map(cell, methods.values()))
    return table


def by_method(
    title: str,
    first: Sequence[str],
    lines: Lines,
    headings: Sequence[str],
    rows: Iterable[tuple[Sequence[str], Iterable[str]]],
) -> "Table":
    """Table with columns for each method, whose name is above the first of them.

    `first` has the headings of the columns before; `rows` their cells, and then those of all
    methods in turn.
    """
    from rich.table import Table

    table = Table(title=title)
    for number, heading in enumerate(first):
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for one in lines:
        names = [escaped(one["method"]), *[""] * (len(headings) - 1)]
        for name, heading in zip(names, headings, strict=True):
            table.add_column(f"{name}\n{heading}", justify="right", overflow="fold")
    for before, cells in rows:
        table.add_row(*map(escaped, before), *cells)
    return table


def rivals(summaries: Lines) -> list[str]:
    """Names of the rivals of all methods."""
    return list(dict.fromkeys(row["rival"] for one in summaries for row in one["rivals"]))


def show(*tables: "Table", notes: str) -> None:
    """Print tables, and notes on their terms below."""
    from rich.console import Console

    console = Console()
    for table in tables:
        console.print(table)
    console.print(notes, style="dim")


def split_to_width(summaries: Lines, table: "Callable[[Lines], Table]") -> "list[Table]":
    """Split a table by methods into tables that fit the width of the terminal."""
    from rich.console import Console

    console = Console()
    options = console.options.update(width=_ANY_WIDTH)
    for count in range(len(summaries), 0, -1):
        starts = range(0, len(summaries), count)
        made = [table(summaries[start : start + count]) for start in starts]
        if all(console.measure(one, options=options).maximum <= console.width for one in made):
            return made
    return [table([one]) for one in summaries]


def escaped(name: str) -> str:
    """Escape a name: rich would read brackets in it as markup."""
    from rich.markup import escape

    return escape(name)


def ends(range_m: tuple[float, float] | None) -> str:
    """Format a working range in metres."""
    return "none" if range_m is None else f"{range_m[0]:.2f} to {range_m[1]:.2f}"


def centimetres(metres: float) -> str:
    """Format a length in metres as centimetres."""
    return number(100 * metres, ".3f")


def percent(share: float, form: str = ".1f") -> str:
    """Format a share as percent."""
    return number(100 * share, form, " %")


def number(value: float, form: str, unit: str = "") -> str:
    """Format a number, such as with ".2f", and its unit; a dash for NaN."""
    return "-" if math.isnan(value) else f"{value:{form}}{unit}"
