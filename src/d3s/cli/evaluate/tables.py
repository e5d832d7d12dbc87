"""Tables of `d3s evaluate` on the terminal, and the numbers in their cells."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.table import Table

_Summary = TypeVar("_Summary")
_ANY_WIDTH = 10_000  # of a terminal on which every table fits


def figures(title: str, methods: Iterable[str]) -> "Table":
    """A table with a column for each method, and one before them for what it is."""
    from rich.table import Table

    table = Table(title=title)
    table.add_column("")
    for method in methods:
        table.add_column(escaped(method), justify="right", overflow="fold")
    return table


def show(*tables: "Table", notes: str) -> None:
    """Tables, and below them what their words mean."""
    from rich.console import Console

    console = Console()
    for table in tables:
        console.print(table)
    console.print(notes, style="dim")


def abreast(
    summaries: Sequence[_Summary], table: "Callable[[Sequence[_Summary]], Table]"
) -> "list[Table]":
    """Tables of so many methods each as the terminal has room for."""
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
    """A name that may hold brackets, which rich would read as markup."""
    from rich.markup import escape

    return escape(name)


def ends(range_m: tuple[float, float] | None) -> str:
    """Both ends of a working range in metres."""
    return "none" if range_m is None else f"{range_m[0]:.2f} to {range_m[1]:.2f}"


def centimetres(metres: float) -> str:
    """A length in metres, in centimetres."""
    return number(100 * metres, ".3f")


def percent(share: float, form: str = ".1f") -> str:
    """A share, in percent."""
    return number(100 * share, form, " %")


def number(value: float, form: str, unit: str = "") -> str:
    """A number with its unit; a dash for what there is nothing to take the mean of."""
    return "-" if math.isnan(value) else f"{value:{form}}{unit}"
