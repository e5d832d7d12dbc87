"""Figures of simulated pairs: their truth, contact sheets, and depth maps beside the truth."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    set_depth_ticks,
    set_tight,
    set_title,
    show_depth,
    show_grey,
    show_hidden,
    show_scale,
    show_signed,
    value_range,
)
from d3s.lab.twin.pair import Pair
from d3s.lab.twin.raw import RawFrame
from d3s.lab.view.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.image import AxesImage

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


def plot_pair(pair: Pair) -> "Figure":
    """Figure of both views of a pair and its truth, each with its unit."""
    rows, cols = pair.left.shape
    figure = new_figure(12, 1.2 + 6 * rows / cols)
    figure.suptitle(f"{pair.rig.name}: {rows} x {cols} px", fontsize="medium")
    axes = figure.subplots(2, 4)
    greys = {"Left": pair.left, "Right": pair.right, "Left, perfect lens": pair.all_in_focus}
    for place, (title, image) in zip(axes[0], greys.items(), strict=False):
        show_grey(place, image, title)
    show_hidden(axes[0, 3], pair.occluded, _hidden_title(pair))
    depth = show_depth(axes[1, 0], pair.depth_m, depth_norm(pair.depth_m), "Depth")
    add_bar(depth, "m")
    ends = value_range(pair.disparity_px)
    add_bar(show_scale(axes[1, 1], pair.disparity_px, ends, "Disparity, left - right"), "px")
    blurs = {"left": pair.blur_left_px, "right": pair.blur_right_px}
    widest = max(float(np.nanmax(np.abs(blur))) for blur in blurs.values()) or 1.0
    for place, (side, blur) in zip(axes[1, 2:], blurs.items(), strict=True):
        shown = show_signed(place, blur, widest, f"Blur radius, {side} (near +, far -)")
        add_bar(shown, "px")
    return figure


def plot_scenes(examples: Mapping[str, Pair | RawFrame], *, width_in: float = 9.0) -> "Figure":
    """Contact sheet of scenes, one per row: left view, right view, depth, occluded pixels.

    A raw frame holds both views in one image and has no map of occlusion: its row is the frame and
    the depth.
    """
    from matplotlib.figure import Figure

    if not examples:
        raise InputError("examples is empty: there is no scene to show.")
    tall = [_row_height(one) * width_in / 4 + 0.25 for one in examples.values()]
    figure = Figure(figsize=(width_in, sum(tall) + 0.6))
    set_tight(figure)
    # The colour bar has a row of its own, so that all panels stay aligned.
    sheet = figure.add_gridspec(len(examples) + 1, 4, height_ratios=[*tall, 0.1])
    norm = depth_norm(np.concatenate([one.depth_m.ravel() for one in examples.values()]))
    for row, (name, one) in enumerate(examples.items()):
        width = 1 if isinstance(one, Pair) else 2
        cells = [sheet[row, column : column + width] for column in range(0, 4, width)]
        shown = _add_row(figure, cells, name, one, norm)
    bar = figure.colorbar(
        shown, cax=figure.add_subplot(sheet[-1, 1:3]), orientation="horizontal", label="depth (m)"
    )
    set_depth_ticks(bar)
    return figure


def _add_row(
    figure: "Figure", cells: "Sequence[SubplotSpec]", name: str, one: Pair | RawFrame, norm: Any
) -> "AxesImage":
    first, *middle, last = (figure.add_subplot(cell) for cell in cells)
    first.set_ylabel(name, fontsize="small")
    if isinstance(one, Pair):
        right, depth = middle
        show_grey(first, one.left, "Left view")
        show_grey(right, one.right, "Right view")
        show_hidden(last, one.occluded, _hidden_title(one))
        return show_depth(depth, one.depth_m, norm, _depth_title(one.depth_m))
    halves = "right view | left view" if one.layout.side(0) > 0 else "left view | right view"
    show_grey(first, one.image, f"Raw frame: {halves}")
    title = f"{_depth_title(one.depth_m)}, left lens (grey: not its field)"
    return show_depth(last, one.depth_m, norm, title)


def _row_height(one: Pair | RawFrame) -> float:
    """Height of a row relative to the width of a column."""
    if isinstance(one, Pair):
        rows, cols = one.left.shape
        return float(rows / cols)
    return 2 * one.layout.rows_px / one.layout.cols_px


def _hidden_title(pair: Pair) -> str:
    return f"Not in the right view: {pair.occluded.mean():.0%}"


def _depth_title(depth_m: Values) -> str:
    nearest, farthest = f"{np.nanmin(depth_m):.2f}", f"{np.nanmax(depth_m):.2f}"
    span = nearest if nearest == farthest else f"{nearest} to {farthest}"
    return f"Depth {span} m"
