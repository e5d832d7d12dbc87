"""Tables for the terminal and for pages of the documentation, made of the same cells."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

BEGIN, END = "<!-- {}: {} -->", "<!-- end of {} -->"


class Sheet(NamedTuple):
    """A table of words: the first columns are read, the others compared."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    words: tuple[int, ...] = (0,)  # columns that hold text, and stand at the left

    def as_rich(self) -> Table:
        """For the terminal."""
        table = Table(title=self.title, title_justify="left")
        for i, heading in enumerate(self.headings):
            table.add_column(_plain(heading), justify="left" if i in self.words else "right")
        for line in self.lines:
            table.add_row(*map(_plain, line))
        return table

    def as_markdown(self) -> str:
        """For a page, as even in its source as on it."""
        cells = [list(self.headings), *map(list, self.lines)]
        widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(self.headings))]

        def line(row: Sequence[str]) -> str:
            padded = (
                cell.ljust(width) if i in self.words else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            return f"| {' | '.join(padded)} |"

        rules = (
            "-" * (width + 2) if i in self.words else "-" * (width + 1) + ":"
            for i, width in enumerate(widths)
        )
        return "\n".join([line(cells[0]), f"|{'|'.join(rules)}|", *map(line, cells[1:])])


def _plain(cell: str) -> Text:
    """Without the marks of Markdown, and with brackets as they are."""
    return Text(cell.replace("`", "").replace("**", ""))


def with_parts(page: str, parts: Mapping[str, str], kind: str = "speed") -> str:
    """A page with these texts between the marks of their names, instead of earlier ones."""
    for name, text in parts.items():
        begin, end = BEGIN.format(kind, name), END.format(name)
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"The page must have {begin} and {end}.")
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page
