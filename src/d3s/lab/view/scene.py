"""Figures of the digital twin: a pair with its truth, a contact sheet of scenes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from d3s.errors import InputError
from d3s.estimate.plot.panels import (
    Values,
    add_bar,
    depth_norm,
    set_depth_ticks,
    set_tight,
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
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.image import AxesImage


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
