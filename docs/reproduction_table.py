"""Put the comparisons of `d3s reproduce` and some pictures into docs/reproduction_results.md.

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
TYPICAL = (
    "<!-- typical lenses: `docs/reproduction_table.py` puts them here -->",
    "<!-- end of typical lenses -->",
)
# Items and their pictures.
PICTURES = {
    "consensus_plane": "consensus_plane",
    "zici": "zici",
    "accuracy_typical": "methods_typical",
}
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


def with_others(page: str, table: str) -> str:
    """Return a table with the rows of the page's table that are of other places in the paper.

    A run of some items renews their rows, and leaves those of the others as they are.
    """
    _, _, rest = page.partition(BEGIN)
    present = [line for line in rest.partition(END)[0].splitlines() if line.startswith("| ")]
    made: dict[str, list[str]] = {}
    for line in table.splitlines()[2:]:
        made.setdefault(_place(line), []).append(line)
    present_places = dict.fromkeys(map(_place, present[2:]))
    rows = []
    for place in present_places | dict.fromkeys(made):
        rows += made.get(place) or [line for line in present[2:] if _place(line) == place]
    return "\n".join([*table.splitlines()[:2], *rows])


def _place(line: str) -> str:
    """Place in the paper of a row of the table, whether of a quick run or not."""
    return line.split(" | ")[0].removeprefix("| ").removesuffix(", quick")


def with_table(page: str, table: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """Return a page with the table between its marks, in place of an earlier table."""
    begin, end = marks
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{PAGE} must have {begin} and {end}.")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def lens_table(path: Path) -> str:
    """Format lenses.csv of accuracy_typical: each method with perfect and with typical lenses."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    headings = ["method"] + [
        f"{lens}: {what}"
        for lens in ("perfect", "typical")
        for what in ("MAE < 1 cm", "MAE (cm), 0.30 to 1.64 m", "0.90 to 1.64 m", "pixels (%)")
    ]
    lines = [headings, ["---"] * len(headings)]
    for row in rows:
        line = [f"`{row['method']}`"]
        for lens in ("perfect", "typical"):
            errors = [
                f"{float(row[f'{lens}_{name}'] or 'nan'):.2f}" for name in ("mae_cm", "far_mae_cm")
            ]
            share = f"{100 * float(row[f'{lens}_share']):.0f}"
            line += [row[f"{lens}_range"], *errors, share]
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(folder: Path) -> None:
    """Rewrite the rows and parts of the page, and the pictures, that the folder has."""
    with (folder / "comparisons.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    page = PAGE.read_text(encoding="utf-8")
    perfect = [row for row in rows if row["item"] != "accuracy_typical"]
    if perfect:
        page = with_table(page, with_others(page, as_markdown(perfect)))
    typical = [row for row in rows if row["item"] == "accuracy_typical"]
    if typical:
        tables = lens_table(folder / "accuracy_typical" / "lenses.csv"), as_markdown(typical)
        page = with_table(page, "\n\n".join(tables), TYPICAL)
    write_text(PAGE, page, overwrite=True)
    for item, name in PICTURES.items():
        picture = folder / item / f"{name}.png"
        if picture.exists():
            kept = DOCS / "_static" / f"reproduction_{name}.png"
            write_bytes(kept, picture.read_bytes(), overwrite=True)


if __name__ == "__main__":
    main(Path(*sys.argv[1:2] or ["reproduction"]))
