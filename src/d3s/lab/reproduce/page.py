"""Page of a reproduction: every item beside the paper, from the results on disk."""

import re
import shlex
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from d3s.atomic import write_text
from d3s.lab.evaluate.table import csv_text
from d3s.lab.reproduce.item import ERROR, Cell, Item, stored_result
from d3s.lab.view.page import heading, html_page, html_table, words
from d3s.version import __version__

PAGE = "index.html"
COMPARISONS = "comparisons.csv"
_TITLE = "D3S: the paper again"
_INTRODUCTION = (
    "Each part below is a figure or a table of “Depth from Dual Differential Defocus and Stereo "
    "(D3S) Consensus” (Luo, Xu, Chu, Alexander and Guo), made again by this package; have the "
    "paper beside you. Images are simulated by the package's digital twin of the prototype, so "
    "that the truth is known; nothing here was captured with a camera. “Same conditions?” says "
    "whether a value could be the paper's own: where it is no, the two stand beside each other for "
    "orientation, and no more."
)
_COLUMNS = ("what", "paper", "ours", "same conditions?", "agrees?")
# On a narrow screen a row is a stack of its cells, each with its heading.
_NARROW = (
    "<style>@media (max-width: 40rem) {"
    " .beside thead { display: none; } .beside tr, .beside td { display: block; }"
    " .beside tr { border-bottom: 1px solid #999; } .beside td { border: 0; }"
    + "".join(
        f' .beside td:nth-child({number})::before {{ content: "{name}: "; color: #555; }}'
        for number, name in enumerate((one.rstrip("?") for one in _COLUMNS), start=1)
    )
    + " }</style>"
)
_DEFAULT_FOLDER = Path("reproduction")
_YES_NO = {True: "yes", False: "no", None: "–"}
_FULL, _QUICK = "Made in full.", "Made quickly, at reduced size: a full run is finer."


def write_page(root: Path, items: Sequence[Item]) -> None:
    """Write the page over all items in a folder, and all comparisons as a table."""
    write_text(root / PAGE, html_page(_TITLE, _parts(root, items)), overwrite=True)
    write_text(root / COMPARISONS, csv_text(comparison_rows(root, items)), overwrite=True)


def comparison_rows(root: Path, items: Sequence[Item]) -> list[dict[str, Cell]]:
    """Rows of all comparisons in a folder."""
    return [
        {"item": item.name, "reference": item.reference, "quick": stored["made_from"]["quick"]}
        | row
        for item in items
        if (stored := stored_result(root, item.name))
        for row in stored["comparisons"]
    ]


def _parts(root: Path, items: Sequence[Item]) -> Iterator[str]:
    stored = {item.name: stored_result(root, item.name) for item in items}
    yield _NARROW
    yield heading(_TITLE, level=1)
    yield words(_INTRODUCTION)
    yield (
        f'<p class="small">Made by <code>d3s reproduce</code>, version {__version__}. All values '
        f'beside the paper\'s: <a href="{COMPARISONS}">{COMPARISONS}</a></p>'
    )
    yield _contents(items, stored)
    for item in items:
        yield from _item(item, stored[item.name], root)
    yield heading("What cannot be made again")
    yield _with_code(html_table(("in the paper", "what", "why"), NOT_REPRODUCED))


def _contents(items: Sequence[Item], stored: dict[str, dict[str, Any] | None]) -> str:
    lines = [
        f'<li><a href="#{item.name}">{escape(item.reference)}: {escape(item.title)}</a> '
        f'<span class="small">{_agreement(stored[item.name])}</span></li>'
        for item in items
    ]
    return "<ul>\n" + "\n".join(lines) + "\n</ul>"


def _agreement(stored: dict[str, Any] | None) -> str:
    """Text with the number of values that agree with the paper, of all comparable values."""
    if stored is None:
        return "not made yet"
    agreements = [row["agrees"] for row in stored["comparisons"] if row["agrees"] is not None]
    return f"{sum(agreements)} of {len(agreements)} values agree" if agreements else ""


def _item(item: Item, stored: dict[str, Any] | None, root: Path) -> Iterator[str]:
    yield f'<h2 id="{item.name}">{escape(item.reference)}: {escape(item.title)}</h2>'
    yield _with_code(words(item.what))
    failed = (root / item.name / ERROR).is_file()
    if failed:
        yield words(f"Failed; {ERROR} in its folder says where.", "verdict bad")
    if stored is None:
        yield words(f"Not made yet. To make it: {_command(root, item)}", "verdict usable")
        return
    if failed:
        yield words("What follows was made before.", "small")
    for picture in stored["pictures"]:
        yield _picture(f"{item.name}/{picture['name']}", picture["caption"])
    for remark in stored["remarks"]:
        yield _with_code(words(remark))
    for table in stored["tables"]:
        if table["shown"]:
            yield from _table(table)
    if stored["comparisons"]:
        yield from _comparisons(stored["comparisons"])
    yield _footer(item, stored, root)


def _picture(path: str, caption: str) -> str:
    return (
        f'<figure class="wide"><a href="{path}.pdf"><img alt="{escape(caption)}" '
        f'src="{path}.png" loading="lazy"></a><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _table(table: dict[str, Any]) -> Iterator[str]:
    rows = table["rows"]
    if not rows:
        return
    if table["caption"]:
        yield words(table["caption"], "small")
    numbers = [i for i, cell in enumerate(rows[0].values()) if isinstance(cell, int | float)]
    headings = [name.replace("_", " ") for name in rows[0]]
    yield html_table(headings, ([_cell_text(c) for c in row.values()] for row in rows), numbers)


def _comparisons(rows: list[dict[str, Any]]) -> Iterator[str]:
    cells = (
        (
            row["what"],
            row["paper"],
            row["ours"],
            f"{_YES_NO[row['same_conditions']]}: {row['why']}",
            _YES_NO[row["agrees"]],
        )
        for row in rows
    )
    yield words("Beside the paper:", "small")
    yield f'<div class="beside">{html_table(_COLUMNS, cells)}</div>'


def _footer(item: Item, stored: dict[str, Any], root: Path) -> str:
    links = " ".join(
        f'<a href="{item.name}/{escape(name)}">{escape(name)}</a>' for name in stored["files"]
    )
    made_from = stored["made_from"]
    size = _QUICK if made_from["quick"] else _FULL
    options = ["--force", *(["--quick"] if made_from["quick"] else [])]
    options += ["--seed", str(made_from["seed"])] if made_from["seed"] else []
    return (
        f'<p class="small">{size} Again: <code>{escape(_command(root, item, *options))}</code>. '
        f"Files: {links}</p>"
    )


def _command(root: Path, item: Item, *options: str) -> str:
    """Command that makes an item."""
    folder = [] if root == _DEFAULT_FOLDER else ["-o", str(root)]
    lens = [] if item.lens == "perfect" else ["--lens", item.lens]
    return shlex.join(["d3s", "reproduce", item.name, *lens, *options, *folder])


def _with_code(html: str) -> str:
    """Mark text between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html)


def _cell_text(cell: Any) -> str:
    """Text of a cell; numbers with four digits."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return _YES_NO[cell]
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


# What it is in the paper, what it shows, and why it cannot be made again.
NOT_REPRODUCED = (
    ("Figs. 1a, 2, 3a", "drawings of the idea", "Explanations, without numbers."),
    (
        "Fig. 1b",
        "working ranges of commercial stereo cameras",
        "Printed in the figure only; the text says that their baselines are 5 cm or longer.",
    ),
    (
        "Figs. 4, S2",
        "photographs and CAD models of the prototype, and its list of parts",
        "Hardware. `d3s calibrate` is for whoever builds one.",
    ),
    (
        "Figs. 5, S3",
        "errors and tuned parameters of the prototype itself",
        "Its captures are not public. The same protocol runs on the digital twin, whose lenses "
        "have no aberrations and whose planes stand where they should.",
    ),
    (
        "Figs. 5, S4, S5",
        "textures of CUReT, MS-COCO and a collection of paintings",
        "Photographs of others; bring yours with `--photos`. Textures of our own stand in, of "
        "which those that report were never tuned on.",
    ),
    (
        "Fig. 7",
        "real scenes, and their densified depth maps",
        "Captures of the prototype, and Marigold-DC, a network with weights to download. Rendered "
        "scenes with known depth stand in.",
    ),
    (
        "Fig. S6",
        "measured point-spread functions",
        "Those of the twin are computed: a disk, and a perfect lens limited by diffraction.",
    ),
    (
        "Fig. 6, Table S2",
        "disparity errors of seven systems of others",
        "From their publications; only the arithmetic between its columns can be checked.",
    ),
)
