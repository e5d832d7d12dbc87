"""HTML pages: templates of this folder on one shell, page.html, and pictures that are embedded.

A page needs no network: it has no links to other sites, and pictures are embedded in it, except
those of the demo, which are files beside the page.
"""

import base64
import io
import json
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d3s.atomic import write_text
from d3s.errors import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Sharp on the screen of a telephone, which has two to three dots per CSS pixel.
_DPI = 200


@cache
def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader
    except ImportError as error:
        raise MissingPackageError("pages need the package jinja2", "plot") from error
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(autoescape=True, loader=loader, trim_blocks=True)


@cache
def _macros() -> Any:
    return _environment().get_template("page.html").module


def render(template: str, **values: Any) -> str:
    """HTML page of a template of this package, which has the words of a report."""
    return str(_environment().get_template(template).render(values))


def html_page(title: str, parts: Iterable[str]) -> str:
    """HTML page with a title and a body of the given blocks."""
    return str(_macros().page(title, parts))


def write_with_numbers(path: Path, page: str, numbers: Any, *, overwrite: bool) -> Path:
    """Write a page, and its numbers as JSON beside it; returns the path of these."""
    beside = path.with_suffix(".json")
    write_text(path, page, overwrite=overwrite)
    text = json.dumps(numbers, indent=1, allow_nan=False) + "\n"
    write_text(beside, text, overwrite=overwrite)
    return beside


def words(text: str, kind: str = "") -> str:
    """Paragraph of text, with an optional CSS class such as "small"."""
    return str(_macros().words(text, kind))


def heading(text: str, level: int = 2) -> str:
    """Heading: level 1 for the page, 2 for a section."""
    return str(_macros().heading(text, level))


def html_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[int] = (),
    kinds: Iterable[str] = (),
) -> str:
    """HTML table: headings and rows of as many cells.

    `numbers` are the indices of the columns to align right, and `kinds` the CSS class of each row,
    such as "good"; none if left.
    """
    return str(_macros().table(headings, rows, numbers, list(kinds)))


def figure_block(figure: "Figure", caption: str, *, is_photo: bool = False) -> str:
    """Embedded figure with a caption."""
    buffer = io.BytesIO()
    kind = "jpeg" if is_photo else "png"
    figure.savefig(buffer, format=kind, dpi=130 if is_photo else _DPI)
    address = _address(kind, buffer.getvalue())
    return str(_macros().picture(address, caption, kind="wide" if is_photo else ""))


def photo_block(image: NDArray[np.uint8], caption: str, *, kind: str = "") -> str:
    """Embedded grey photograph with a caption.

    The first line of the caption is the alternative text.
    """
    import cv2

    _, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 75])
    address = _address("jpeg", encoded.tobytes())
    return str(_macros().picture(address, caption, caption.split("\n")[0], kind))


def json_block(values: dict[str, Any], name: str) -> str:
    """Invisible JSON element with an id, for programs that read the page."""
    # "</" in a text would end the element early.
    text = json.dumps(values, allow_nan=False).replace("</", "<\\/")
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'


def _address(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
