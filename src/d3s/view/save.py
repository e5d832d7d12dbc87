"""Figures to files, whole or not at all."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from d3s.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: "Figure", path: Path, *, overwrite: bool = False, dpi: int = 110) -> None:
    """Write a figure; the suffix of the path chooses the format.

    The same figure gives the same bytes: no date is stored.
    """
    import matplotlib as mpl

    # Matplotlib stores the date in formats that have a place for it, unless told not to, and
    # names the parts of an SVG by chance.
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix, {})
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "d3s"}):
        figure.savefig(buffer, format=path.suffix.removeprefix("."), dpi=dpi, metadata=undated)
    write_bytes(path, buffer.getvalue(), overwrite=overwrite)
