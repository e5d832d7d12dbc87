"""Figure of a depth map beside the ground truth of a simulated pair."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate import DepthMap, Flag
from d3s.estimate.flags import share_of_each
from d3s.scene.pair import Pair
from d3s.view.panels import (
    NO_VALUE_COLOUR,
    VISIBLE_COLOUR,
    Values,
    depth_norm,
    draw_bar,
    notebook_figure,
    set_title,
    show_depth,
    show_grey,
    show_scale,
    show_signed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLAG_COLOURS = {
    Flag.BORDER: "#4c78a8",
    Flag.INVALID_INPUT: "#111111",
    Flag.SATURATED: "#b279a2",
    Flag.LOW_TEXTURE: "#f2cf5b",
    Flag.AMBIGUOUS: "#e45756",
    Flag.OUT_OF_RANGE: "#72b7b2",
    Flag.OCCLUDED: "#9d755d",
    Flag.INCONSISTENT: "#f58518",
    Flag.LOW_CONFIDENCE: "#54a24b",
    Flag.LARGE_SIGMA: "#ff9da6",
    Flag.CARRIED: "#b5cfe8",  # not grey: these pixels have a depth
    Flag.FILLED: "#c9b3e6",
}
"""Colour of each flag."""

# Scales end at this percentile, so that a few outliers do not set them.
_SCALE_PERCENTILE = 99.0
_LARGEST_PULL = 3.0


def plot_depth_map(pair: Pair, est: DepthMap) -> "Figure":
    """Figure of a depth map beside the ground truth of its simulated pair.

    Depth and true depth share one scale; grey is no depth. Of several flags of a pixel the first in
    the table of flags is shown.

    Raises
    ------
    InputError
        When the depth map and the pair differ in size.
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


def show_flags(axes: "Axes", est: DepthMap) -> None:
    """Show the first flag of each pixel, with a legend of the share of pixels with each flag."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    number = first_flag(est.flags)
    colours = [VISIBLE_COLOUR, *FLAG_COLOURS.values()]
    axes.imshow(
        number,
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=len(colours) - 0.5,
        interpolation="nearest",
    )
    set_title(axes, "Flags")
    shares = share_of_each(est.flags)
    present = [flag for flag in Flag if shares[str(flag.name)] > 0]
    handles = [
        Patch(facecolor=VISIBLE_COLOUR, edgecolor=NO_VALUE_COLOUR, label=f"depth {est.density:.0%}")
    ]
    handles += [
        Patch(facecolor=FLAG_COLOURS[flag], label=_flag_label(flag, shares)) for flag in present
    ]
    legend = axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.02),
        ncols=2,
        fontsize="x-small",
        frameon=False,
        handlelength=1.0,
        columnspacing=1.0,
        labelspacing=0.2,
    )
    legend.set_in_layout(False)  # it lies in the row of the colour bars


def _flag_label(flag: Flag, shares: dict[str, float]) -> str:
    return f"{str(flag.name).lower().replace('_', ' ')} {shares[str(flag.name)]:.1%}"


def first_flag(flags: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Number of the lowest flag in the table, from 1; 0 for no flag.

    A filled depth has the reasons why it was not measured too: FILLED comes first.
    """
    number = np.zeros(flags.shape, dtype=np.int64)
    for index, flag in reversed(list(enumerate(Flag, start=1))):
        number[(flags & flag) != 0] = index
    number[(flags & Flag.FILLED) != 0] = list(Flag).index(Flag.FILLED) + 1
    return number


def scale_end(values: Values) -> float:
    """99th percentile of the finite values; 1 if it is 0 or there are none."""
    known = values[np.isfinite(values)]
    return float(np.percentile(known, _SCALE_PERCENTILE)) or 1.0 if known.size else 1.0
