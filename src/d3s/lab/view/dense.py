"""Figure of a densified depth map: what is measured, what is filled, and how far it is known."""

from typing import TYPE_CHECKING

import numpy as np

from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.estimate.plot.panels import (
    add_bar,
    depth_norm,
    set_title,
    show_depth,
    show_grey,
    show_scale,
)
from d3s.lab.twin.pair import Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURED_COLOUR, FILLED_COLOUR, OPEN_COLOUR = "#2c6e9c", "#e8a33d", "#d8d8d8"
_WORST_M = 0.15


def plot_dense(pair: Pair, dense: DepthMap, closed: DepthMap) -> "Figure":
    """Draw what is measured, filled and left open of a simulated pair, with the errors."""
    from matplotlib.figure import Figure

    if dense.depth_m.shape != pair.depth_m.shape:
        raise InputError(
            f"depth map {dense.depth_m.shape} and pair {pair.depth_m.shape} must be of one size."
        )
    rows, cols = pair.depth_m.shape
    figure = Figure(figsize=(11.0, 2 * 11.0 / 3 * rows / cols + 1.6), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    norm = depth_norm(pair.depth_m)
    measured = dense.filter(filled=False)
    show_grey(panels[0], pair.left, "Left view")
    add_bar(show_depth(panels[1], measured.depth_m, norm, _share("Measured", measured)), "m")
    add_bar(show_depth(panels[2], dense.depth_m, norm, _share("Filled to 5 cm", dense)), "m")
    _show_kinds(panels[3], measured, dense)
    error_m = np.abs(dense.depth_m - pair.depth_m)
    shown = show_scale(panels[4], 100 * error_m, (0, 100 * _WORST_M), "Error of the filled map")
    add_bar(shown, "cm")
    add_bar(show_depth(panels[5], closed.depth_m, norm, "All filled: much is a guess"), "m")
    return figure


def _share(words: str, depth_map: DepthMap) -> str:
    return f"{words}: {depth_map.density:.0%}"


def _show_kinds(axes: "Axes", measured: DepthMap, dense: DepthMap) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = {"measured": MEASURED_COLOUR, "filled": FILLED_COLOUR, "open": OPEN_COLOUR}
    kind = np.where(measured.valid, 0, np.where(dense.valid, 1, 2))
    axes.imshow(
        kind, cmap=ListedColormap(list(colours.values())), vmin=0, vmax=2, interpolation="nearest"
    )
    set_title(axes, "Kind")
    handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3)
