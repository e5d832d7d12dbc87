"""Figure of a depth map alone: left view, depth, sigma, and the reasons of holes."""

from typing import TYPE_CHECKING

import numpy as np

from d3s.estimate import DepthMap
from d3s.estimate.plot.flag_colours import scale_end, show_flags
from d3s.estimate.plot.panels import (
    Values,
    add_bar,
    draw_bar,
    notebook_figure,
    show_depth,
    show_grey,
    show_scale,
)
from d3s.estimate.plot.preview import preview_norm
from d3s.estimate.summary import headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN, _HEAD_IN, _BAR_IN, _LEGEND_IN = 10.0, 0.5, 0.22, 0.75
_LOWEST_IN, _TALLEST_IN = 1.2, 6.0
# Part of the range of a view that is shown from black to white.
_GREY_PERCENTILES = (0.5, 99.5)
_WIDEST_HEADLINE = 100


def plot_result(est: DepthMap) -> "Figure":
    """Figure of a depth map: left view, depth, sigma, and the reasons of holes.

    The left view is left out if the depth map does not have it. A notebook shows the figure,
    whether pyplot is imported or not.
    """
    rows, cols = est.depth_m.shape
    tall = float(np.clip(_WIDTH_IN / 2 * rows / cols, _LOWEST_IN, _TALLEST_IN))
    heights = (tall, _BAR_IN, tall, _BAR_IN + _LEGEND_IN)
    figure = notebook_figure((_WIDTH_IN, sum(heights) + _HEAD_IN))
    figure.set_layout_engine("constrained", h_pad=0.03, w_pad=0.05, hspace=0, wspace=0)
    title = f"{est.method}, {est.rig.name}: {headline(est)}".replace("$", r"\$")
    figure.suptitle(_wrapped(title), fontsize="medium")
    sheet = figure.add_gridspec(4, 2, height_ratios=(tall, _BAR_IN, tall, _LEGEND_IN))
    panels = [figure.add_subplot(sheet[row, col]) for row in (0, 2) for col in (0, 1)]
    if est.intensity is None:
        panels[0].set_axis_off()
    else:
        show_grey(panels[0], _stretched(est.intensity), "Left view")
    shown = show_depth(panels[1], est.depth_m, preview_norm(est.depth_m), "Depth")
    draw_bar(shown, figure.add_subplot(sheet[1, 1]), "m", "both")
    _show_sigma(panels[2], figure.add_subplot(sheet[3, 0]), est)
    show_flags(panels[3], est)
    figure.add_subplot(sheet[3, 1]).set_axis_off()  # room of the legend
    return figure


def draw_depth(est: DepthMap, axes: "Axes") -> "Figure":
    """Draw the depth into axes of somebody else's figure, with a colour bar."""
    shown = show_depth(axes, est.depth_m, preview_norm(est.depth_m), headline(est))
    add_bar(shown, "depth (m)")
    figure = axes.get_figure()
    while figure is not None and figure.get_figure() not in (None, figure):  # of a subfigure
        figure = figure.get_figure()
    return figure  # type: ignore[return-value]


def _show_sigma(axes: "Axes", bar_axes: "Axes", est: DepthMap) -> None:
    end_m = scale_end(est.sigma_m)
    factor, unit = (1e3, "mm") if end_m < 0.5 else (1.0, "m")
    ends = (0, factor * end_m)
    shown = show_scale(axes, factor * est.sigma_m, ends, "Sigma, predicted")
    bar = draw_bar(shown, bar_axes, unit, "max")
    bar_axes.set_anchor("N")
    bar_axes.set_box_aspect(0.045)
    bar.ax.xaxis.set_tick_params(labelsize="small")


def _stretched(intensity: Values) -> Values:
    """View with its own black and white, 0 to 1."""
    known = intensity[np.isfinite(intensity)]
    if not known.size:
        return intensity
    low, high = np.percentile(known, _GREY_PERCENTILES)
    return np.asarray(np.clip((intensity - low) / max(float(high - low), 1e-30), 0, 1))


def _wrapped(title: str) -> str:
    from textwrap import fill

    return fill(title, _WIDEST_HEADLINE)
