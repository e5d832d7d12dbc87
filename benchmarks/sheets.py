"""Tables for the terminal."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text


class Sheet(NamedTuple):
    """A table whose cells are strings."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    words: tuple[int, ...] = (0,)  # columns of text, aligned left; all others are aligned right


def show(sheets: Iterable[Sheet]) -> None:
    """Print tables, as wide as the terminal, or 160 columns where there is none."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    for sheet in sheets:
        table = Table(title=sheet.title, title_justify="left")
        for i, heading in enumerate(sheet.headings):
            table.add_column(Text(heading), justify="left" if i in sheet.words else "right")
        for line in sheet.lines:
            table.add_row(*(Text(cell.replace("`", "").replace("**", "")) for cell in line))
        console.print(table)
