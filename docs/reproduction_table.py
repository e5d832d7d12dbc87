"""Put the comparisons of `d3s reproduce` and two pictures into docs/reproduction_results.md.

.venv/bin/python docs/reproduction_table.py [FOLDER]
"""

import csv
import sys
from collections.abc import Mapping
from pathlib import Path

from d3s.atomic import write_bytes, write_text

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "reproduction_results.md"
BEGIN, END = "<!-- comparisons: `docs/reproduction_table.py` puts them here -->", "<!-- end -->"
PICTURES = ("consensus_plane", "zici")
HEADINGS = ("in the paper", "what", "paper", "ours", "same conditions?", "agrees?")
WORDS = {"True": "yes", "False": "no", "": "–"}


def cells(row: Mapping[str, str]) -> tuple[str, ...]:
    """Cells of the page's table for a row of comparisons.csv."""
    size = ", quick" if row["quick"] == "True" else ""
    place = f"{row['reference']}{size}"
    told = row["what"], row["paper"], row["ours"]
    return place, *told, WORDS[row["same_conditions"]], WORDS[row["agrees"]]


def as_markdown(rows: list[dict[str, str]]) -> str:
    """Format all rows as a table of the page."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_table(page: str, table: str) -> str:
    """Return a page with the table between its marks, in place of an earlier table."""
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"{PAGE} must have {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main(folder: Path) -> None:
    """Rewrite the page and its pictures."""
    with (folder / "comparisons.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    page = PAGE.read_text(encoding="utf-8")
    write_text(PAGE, with_table(page, as_markdown(rows)), overwrite=True)
    for name in PICTURES:
        content = (folder / name / f"{name}.png").read_bytes()
        write_bytes(DOCS / "_static" / f"reproduction_{name}.png", content, overwrite=True)


if __name__ == "__main__":
    main(Path(*sys.argv[1:2] or ["reproduction"]))
