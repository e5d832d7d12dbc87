"""Tables for the terminal and for pages of the documentation, from the same cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from d3s.atomic import write_text

BEGIN, END = "<!-- {}: {} -->", "<!-- end of {} -->"


class Sheet(NamedTuple):
    """A table whose cells are strings."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    words: tuple[int, ...] = (0,)  # columns of text, aligned left; all others are aligned right

    def as_rich(self) -> Table:
        """Table for the terminal."""
        table = Table(title=self.title, title_justify="left")
        for i, heading in enumerate(self.headings):
            table.add_column(_plain(heading), justify="left" if i in self.words else "right")
        for line in self.lines:
            table.add_row(*map(_plain, line))
        return table

    def as_markdown(self) -> str:
        """Markdown table with padded cells, aligned in its source too."""
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
    """Cell without Markdown marks; rich does not interpret its brackets."""
    return Text(cell.replace("`", "").replace("**", ""))


def with_parts(page: str, parts: Mapping[str, str], kind: str = "speed") -> str:
    """Text of a page with the text between each pair of marks replaced.

    Parameters
    ----------
    page
        Text of the page, with `<!-- kind: name -->` and `<!-- end of name -->` for each part.
    parts
        New text by name.
    kind
        First word of the opening marks.

    Raises
    ------
    SystemExit
        When the page lacks a mark.
    """
    for name, text in parts.items():
        begin, end = BEGIN.format(kind, name), END.format(name)
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"The page must have {begin} and {end}.")
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


def write_parts(pages: Sequence[Path], parts: Mapping[str, str], kind: str = "speed") -> None:
    """Write each part into every page that has its marks.

    Parameters
    ----------
    pages
        Markdown files, rewritten in place.
    parts
        New text by name.
    kind
        First word of the opening marks.

    Raises
    ------
    SystemExit
        When no page has the marks of a part; no page is written then.
    """
    texts = {page: page.read_text() for page in pages}
    places = {
        name: [page for page in pages if BEGIN.format(kind, name) in texts[page]] for name in parts
    }
    missing = [name for name, found in places.items() if not found]
    if missing:
        marks = ", ".join(BEGIN.format(kind, name) for name in missing)
        raise SystemExit(f"No page has {marks}.")
    for page, text in texts.items():
        own = {name: parts[name] for name, found in places.items() if page in found}
        write_text(page, with_parts(text, own, kind), overwrite=True)
