"""Colours and legend of flags, and the end of a scale."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from d3s.estimate import DepthMap, Flag
from d3s.estimate.flags import share_of_each
from d3s.estimate.plot.panels import NO_VALUE_COLOUR, VISIBLE_COLOUR, Values, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    Flag.ENCLOSED: "#d67195",
}
"""Colour of each flag."""

# Scales end at this percentile, so that a few outliers do not set them.
_SCALE_PERCENTILE = 99.0


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
