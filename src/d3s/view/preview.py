"""Depth as a picture for people: colours, and a bar that says what they mean."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from d3s.errors import InputError
from d3s.view.panels import Values, colour_map, finish, set_depth_ticks
from d3s.view.save import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

ENDING = "preview.png"
"""How the name of such a picture ends on the command line."""

# What few pixels exceed does not set the scale; the bar has a point at its end then.
_PERCENTS = (0.5, 99.5)
_WIDTH_IN, _TALLEST_IN, _LOWEST_IN = 8.0, 6.5, 1.0
_EDGE_IN, _TITLE_IN, _BAR_IN, _BAR_ROOM_IN = 0.1, 0.3, 0.18, 1.1


def plot_preview(depth_m: Values, title: str = "") -> "Figure":
    """Depth in colours, near yellow and far violet, grey where there is none.

    Equal ratios of depth are equal steps of colour.

    Raises
    ------
    InputError
        When the depth is no image.
    """
    if depth_m.ndim != 2 or not depth_m.size:
        raise InputError(f"depth has shape {depth_m.shape}: it must be (rows, cols).")
    known = depth_m[np.isfinite(depth_m) & (depth_m > 0)]
    figure, axes, beside = _sheet(depth_m.shape[0] / depth_m.shape[1])
    shown = axes.imshow(
        np.where(depth_m > 0, depth_m, np.nan),
        cmap=colour_map("viridis_r"),
        norm=_norm(known),
        interpolation="nearest",
    )
    finish(axes, title.replace("$", r"\$"))  # no formula
    if known.size:
        _add_bar(shown, beside, known)
    else:
        beside.set_axis_off()
        axes.text(0.5, 0.5, "no depth", transform=axes.transAxes, ha="center", va="center")
    return figure


def write_preview(path: Path, depth_m: Values, *, title: str = "", overwrite: bool = False) -> None:
    """Write such a picture; the suffix chooses the format.

    Raises
    ------
    InputError, OutputError
        When the depth is no image, or the file cannot be written or would replace another.
    """
    save_figure(plot_preview(depth_m, title), path, overwrite=overwrite)


def _sheet(tall: float) -> "tuple[Figure, Axes, Axes]":
    """A figure with a place for the image, so many times as tall as wide, and one for its bar."""
    from matplotlib.figure import Figure

    width = min(_WIDTH_IN, _TALLEST_IN / tall)
    height = max(width * tall, _LOWEST_IN)
    whole = width + _EDGE_IN + _BAR_ROOM_IN, height + _EDGE_IN + _TITLE_IN
    figure = Figure(figsize=whole)
    axes, beside = (
        figure.add_axes((x / whole[0], _EDGE_IN / whole[1], wide / whole[0], height / whole[1]))
        for x, wide in ((_EDGE_IN, width), (_EDGE_IN + width + _BAR_IN, _BAR_IN))
    )
    return figure, axes, beside


def _add_bar(shown: "AxesImage", place: "Axes", known: Values) -> None:
    """The scale, with a point at the end that some depths exceed."""
    ends = known.min() < (shown.norm.vmin or 0), known.max() > (shown.norm.vmax or np.inf)
    extend = ("neither", "max", "min", "both")[2 * int(ends[0]) + int(ends[1])]
    bar = place.figure.colorbar(shown, cax=place, extend=extend, extendfrac=0.03)
    bar.set_label("depth (m)")
    set_depth_ticks(bar)


def _norm(known: Values) -> "Normalize":
    from matplotlib.colors import LogNorm

    if not known.size:
        return LogNorm(1.0, 2.0)
    low, high = np.percentile(known, _PERCENTS)
    if high < 1.02 * low:  # a plane: its noise is no relief
        middle = float(np.sqrt(low * high))
        low, high = middle / 1.01, middle * 1.01
    return LogNorm(float(low), float(high))
