"""Figures written to files, complete or not at all."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from d3s.atomic import write_bytes
from d3s.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMATS = (".png", ".pdf", ".svg")
"""Suffixes that `save_figure` knows."""


def save_figure(figure: "Figure", path: Path, *, overwrite: bool = False, dpi: int = 110) -> None:
    """Write a figure to a file. The same figure gives the same bytes: no date is stored.

    Parameters
    ----------
    figure
        Figure to write.
    path
        File to write; its suffix, one of `FORMATS`, chooses the format.
    overwrite
        Whether an existing file may be replaced.
    dpi
        Resolution in dots per inch.

    Raises
    ------
    InputError
        When the suffix is unknown.
    OutputError
        When the file cannot be written, or holds something else and `overwrite` is not set.
    """
    import matplotlib as mpl

    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{path} must end in {', '.join(FORMATS)}: the ending chooses the format.")
    # By default Matplotlib stores the date in PDF and SVG, and random names in SVG.
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(suffix, {})
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "d3s"}):
        figure.savefig(buffer, format=suffix.removeprefix("."), dpi=dpi, metadata=undated)
    write_bytes(path, buffer.getvalue(), overwrite=overwrite)
