"""Figures of a depth map beside the ground truth of a simulated pair: as estimated, and filled."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.estimate.plot.flag_colours import scale_end, show_flags
from d3s.estimate.plot.panels import (
    Values,
    add_bar,
    depth_norm,
    draw_bar,
    notebook_figure,
    set_title,
    show_depth,
    show_grey,
    show_scale,
    show_signed,
)
from d3s.lab.twin.pair import Pair
from d3s.lab.view.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST_PULL = 3.0


def plot_depth_map(pair: Pair, est: DepthMap) -> "Figure":
    """Figure of a depth map beside the ground truth of its simulated pair.

    Depth and true depth share one scale; grey is no depth. Of several flags of a pixel the first in
    the table of flags is shown.
    """
    if est.depth_m.shape != pair.depth_m.shape:
        raise InputError(
            f"est has shape {est.depth_m.shape} and pair {pair.depth_m.shape}: "
            "the depth map must be of this pair."
        )
    error_m = est.depth_m - pair.depth_m
    rows, cols = pair.left.shape
    figure = notebook_figure((13, 2.2 + 6.2 * rows / cols))
    figure.set_layout_engine("constrained", h_pad=0.02, w_pad=0.03, hspace=0, wspace=0)
    headline = _headline(pair, est, error_m).replace("$", r"\$")  # not a formula
    figure.suptitle(headline, fontsize="medium")
    # Colour bars have rows of their own, so that all panels have one size.
    tall = 13 / 4 * rows / cols
    sheet = figure.add_gridspec(4, 4, height_ratios=(tall, 0.1, tall, 0.1))
    top, bottom = ([figure.add_subplot(sheet[row, i]) for i in range(4)] for row in (0, 2))
    bars = [figure.add_subplot(sheet[3, i]) for i in range(4)]
    norm = depth_norm(pair.depth_m)
    show_grey(top[0], pair.left, "Left view")
    show_depth(top[1], pair.depth_m, norm, "True depth")
    shown = show_depth(top[2], est.depth_m, norm, "Estimated depth")
    draw_bar(shown, figure.add_subplot(sheet[1, 1:3]), "m", "both")
    show_flags(top[3], est)
    _show_errors(bottom, bars, est, error_m)
    return figure


def _headline(pair: Pair, est: DepthMap, error_m: Values) -> str:
    rows, cols = pair.left.shape
    known = np.abs(error_m[est.valid])
    error = f", mean absolute error {100 * known.mean():.2f} cm" if known.size else ""
    return (
        f"{est.method}, {pair.rig.name}, simulated: "
        f"{est.density:.0%} of {rows} x {cols} px have a depth{error}"
    )


def _show_errors(
    axes: Sequence["Axes"], bars: Sequence["Axes"], est: DepthMap, error_m: Values
) -> None:
    """Show error, sigma, their ratio and confidence, each with its colour bar."""
    from matplotlib.ticker import MaxNLocator

    error_cm, sigma_cm, pull = 100 * error_m, 100 * est.sigma_m, error_m / est.sigma_m
    known = pull[np.isfinite(pull)]
    inside = f": {np.mean(np.abs(known) < 1):.0%} within 1" if known.size else ""
    shown = (
        show_signed(axes[0], error_cm, scale_end(np.abs(error_cm)), "Error (+: too far)"),
        show_scale(axes[1], sigma_cm, (0, scale_end(sigma_cm)), "Sigma, predicted"),
        show_signed(axes[2], pull, _LARGEST_PULL, f"Error / sigma{inside}"),
        show_scale(axes[3], est.confidence, (0, 1), "Confidence, also where there is no depth"),
    )
    units = (("cm", "both"), ("cm", "max"), ("standard deviations", "both"), ("0 to 1", "neither"))
    for image, bar_axes, (unit, extend) in zip(shown, bars, units, strict=True):
        bar = draw_bar(image, bar_axes, unit, extend)
        bar.ax.xaxis.set_major_locator(MaxNLocator(6))  # at most 7 ticks: its panel is narrow


MEASURED_COLOUR, FILLED_COLOUR, OPEN_COLOUR = "#2c6e9c", "#e8a33d", "#d8d8d8"
_WORST_M = 0.15


def plot_dense(pair: Pair, dense: DepthMap, closed: DepthMap) -> "Figure":
    """Draw what is measured, filled and left open of a simulated pair, with the errors."""
    if dense.depth_m.shape != pair.depth_m.shape:
        raise InputError(
            f"depth map {dense.depth_m.shape} and pair {pair.depth_m.shape} must be of one size."
        )
    rows, cols = pair.depth_m.shape
    figure = new_figure(11.0, 2 * 11.0 / 3 * rows / cols + 1.6)
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
