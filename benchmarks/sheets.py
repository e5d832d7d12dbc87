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

    def as_rich(self) -> Table:
        """Table for the terminal, without the marks of Markdown."""
        table = Table(title=self.title, title_justify="left")
        for i, heading in enumerate(self.headings):
            table.add_column(_plain(heading), justify="left" if i in self.words else "right")
        for line in self.lines:
            table.add_row(*map(_plain, line))
        return table


def _plain(cell: str) -> Text:
    """Cell as a `Text`: rich does not interpret its brackets."""
    return Text(cell.replace("`", "").replace("**", ""))


def show(sheets: Iterable[Sheet]) -> None:
    """Print tables, as wide as the terminal, or 160 columns where there is none."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    for sheet in sheets:
        console.print(sheet.as_rich())
