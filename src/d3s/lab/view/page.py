"""HTML pages built from blocks.

A page needs no network: it has no links to other sites, and pictures are embedded in it, except
those of `picture_block`, which are files beside the page.
"""

import base64
import io
import json
from collections.abc import Iterable, Sequence
from html import escape
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d3s.atomic import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: #fff; color: #1c1c1c;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.5rem; margin: 0.3rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.4rem; border-top: 1px solid #ddd; padding-top: 1rem; }
p { margin: 0.4rem 0; max-width: 46rem; }
.verdict { border-left: 0.5rem solid; padding: 0.6rem 1rem; margin: 1rem 0; }
.verdict.good { border-color: #2e8540; background: #eef7f0; }
.verdict.usable, .verdict.provisional { border-color: #c28a00; background: #fdf6e3; }
.verdict.bad, .verdict.none { border-color: #c8442d; background: #fcefec; }
.verdict ul { padding-left: 1.1rem; margin: 0.5rem 0 0; }
.verdict strong { font-size: 1.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; line-height: 1.35; }
th, td { text-align: left; padding: 0.25rem 0.55rem 0.25rem 0; border-bottom: 1px solid #eee;
  vertical-align: top; }
th.number { text-align: right; }
th:last-child, td:last-child { padding-right: 0; }
tr.good td:last-child { color: #20652f; }
tr.usable td { background: #fdf6e3; }
tr.bad td { background: #fcefec; }
tr.usable td:last-child, tr.bad td:last-child { font-weight: 700; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(24rem, 100%), 1fr));
  gap: 1rem; }
figure { margin: 0; }
figure.wide { grid-column: 1 / -1; }
figure img { width: 100%; height: auto; display: block; }
figcaption { font-size: 0.9rem; color: #444; overflow-wrap: anywhere; }
.frames { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr));
  gap: 0.6rem; }
.frames figure.out img { outline: 3px solid #c8442d; opacity: 0.6; }
.small { font-size: 0.9rem; color: #555; }
"""


# Sharp on the screen of a telephone, which has two to three dots per CSS pixel.
_DPI = 200


def html_page(title: str, parts: Iterable[str]) -> str:
    """HTML page with a title and a body of the given blocks."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def write_with_numbers(path: Path, page: str, numbers: Any, *, overwrite: bool) -> Path:
    """Write a page, and its numbers as JSON beside it; returns the path of these."""
    beside = path.with_suffix(".json")
    write_text(path, page, overwrite=overwrite)
    text = json.dumps(numbers, indent=1, allow_nan=False) + "\n"
    write_text(beside, text, overwrite=overwrite)
    return beside


def words(text: str, kind: str = "") -> str:
    """Paragraph of text, with an optional CSS class such as "small"."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def heading(text: str, level: int = 2) -> str:
    """Heading: level 1 for the page, 2 for a section."""
    return f"<h{level}>{escape(text)}</h{level}>"


def verdict_block(grade: str, summary: str, remarks: Iterable[str]) -> str:
    """Box with a grade, its summary and its reasons."""
    items = "".join(f"<li>{escape(remark)}</li>" for remark in remarks)
    reasons = f"<ul>{items}</ul>" if items else ""
    return (
        f'<div class="verdict {escape(grade)}"><strong>{escape(grade.capitalize())}.</strong> '
        f"{escape(summary)}{reasons}</div>"
    )


def html_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[int] = (),
    kinds: Iterable[str] = (),
) -> str:
    """HTML table.

    Parameters
    ----------
    headings
        Heading of each column.
    rows
        Cells of each row, as many as headings.
    numbers
        Indices of the columns to align right.
    kinds
        CSS class of each row, such as "good"; none if left.
    """
    head = "".join(_cell("th", cell, i in numbers) for i, cell in enumerate(headings))
    body = "\n".join(
        (f'<tr class="{escape(kind)}">' if kind else "<tr>")
        + "".join(_cell("td", cell, i in numbers) for i, cell in enumerate(row))
        + "</tr>"
        for row, kind in zip(rows, chain(kinds, repeat("")), strict=False)
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def figure_block(figure: "Figure", caption: str, *, is_photo: bool = False) -> str:
    """Embedded figure with a caption."""
    buffer = io.BytesIO()
    kind = "jpeg" if is_photo else "png"
    figure.savefig(buffer, format=kind, dpi=130 if is_photo else _DPI)
    address = f"data:image/{kind};base64,{_base64(buffer.getvalue())}"
    return _block(address, caption, caption, "wide" if is_photo else "")


def picture_block(address: str, caption: str) -> str:
    """Picture file beside the page, over the full width, with a caption."""
    return _block(escape(address), caption, caption, "wide")


def photo_block(image: NDArray[np.uint8], caption: str, *, kind: str = "") -> str:
    """Embedded grey photograph with a caption.

    The first line of the caption is the alternative text.
    """
    import cv2

    _, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 75])
    address = f"data:image/jpeg;base64,{_base64(encoded.tobytes())}"
    return _block(address, caption.split("\n")[0], caption, kind)


def grid(blocks: Iterable[str], kind: str = "figures") -> str:
    """Blocks side by side, as many as fit the width of the screen."""
    return f'<div class="{kind}">\n' + "\n".join(blocks) + "\n</div>"


def json_block(values: dict[str, Any], name: str) -> str:
    """Invisible JSON element with an id, for programs that read the page."""
    # "</" in a text would end the element early.
    text = json.dumps(values, allow_nan=False).replace("</", "<\\/")
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'


def _block(address: str, name: str, caption: str, kind: str) -> str:
    lines = "<br>".join(escape(line) for line in caption.split("\n"))
    of_kind = f' class="{kind}"' if kind else ""
    return (
        f'<figure{of_kind}><img alt="{escape(name)}" src="{address}">'
        f"<figcaption>{lines}</figcaption></figure>"
    )


def _cell(tag: str, text: str, is_number: bool) -> str:
    of_kind = ' class="number"' if is_number else ""
    return f"<{tag}{of_kind}>{escape(text)}</{tag}>"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
