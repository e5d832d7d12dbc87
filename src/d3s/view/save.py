"""Figures to files, whole or not at all."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from d3s.atomic import write_bytes
from d3s.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMATS = (".png", ".pdf", ".svg")


def save_figure(figure: "Figure", path: Path, *, overwrite: bool = False, dpi: int = 110) -> None:
    """Write a figure; the suffix of the path chooses the format.

    The same figure gives the same bytes: no date is stored.
    """
    import matplotlib as mpl

    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{path} must end in {', '.join(FORMATS)}: the ending chooses the format.")
    # Matplotlib stores the date in formats that have a place for it, unless told not to, and
    # names the parts of an SVG by chance.
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(suffix, {})
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "d3s"}):
        figure.savefig(buffer, format=suffix.removeprefix("."), dpi=dpi, metadata=undated)
    write_bytes(path, buffer.getvalue(), overwrite=overwrite)
