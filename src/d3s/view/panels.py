"""Panels of which pictures are made: a view, a depth, a signed number, each with its unit."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

HIDDEN, SEEN, NOTHING = "#c8442d", "#eeeeee", "#bbbbbb"

Values = NDArray[np.floating[Any]]

_DEPTH_TICKS_M = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100)


def show_grey(axes: "Axes", image: Values, title: str) -> None:
    """A view, from black to full scale."""
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    finish(axes, title)


def show_depth(axes: "Axes", depth_m: Values, norm: "Normalize", title: str) -> "AxesImage":
    """Depth on a scale that several panels may share."""
    shown = axes.imshow(depth_m, cmap=colour_map("viridis_r"), norm=norm, interpolation="nearest")
    finish(axes, title)
    return shown


def show_scale(axes: "Axes", values: Values, title: str) -> "AxesImage":
    """Numbers from the smallest to the largest."""
    low, high = span(values)
    shown = axes.imshow(
        values, cmap=colour_map("viridis"), vmin=low, vmax=high, interpolation="nearest"
    )
    finish(axes, title)
    return shown


def show_signed(axes: "Axes", values: Values, widest: float, title: str) -> "AxesImage":
    """Numbers of either sign, with zero in the middle of the scale."""
    shown = axes.imshow(
        values, cmap=colour_map("coolwarm"), vmin=-widest, vmax=widest, interpolation="nearest"
    )
    finish(axes, title)
    return shown


def show_hidden(axes: "Axes", hidden: NDArray[np.bool_], title: str) -> None:
    """What is hidden in one colour, all else in another."""
    from matplotlib.colors import ListedColormap

    axes.imshow(
        hidden, cmap=ListedColormap([SEEN, HIDDEN]), vmin=0, vmax=1, interpolation="nearest"
    )
    finish(axes, title)


def set_tight(figure: "Figure") -> None:
    """Panels close to each other, none on top of another."""
    figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0, hspace=0)


def finish(axes: "Axes", title: str) -> None:
    """Title, and no ticks."""
    axes.set_title(title, fontsize="small", pad=3)
    axes.set(xticks=[], yticks=[])


def add_bar(shown: "AxesImage", unit: str) -> None:
    """Scale of a panel below it, with its unit."""
    from matplotlib.colors import LogNorm

    figure = shown.axes.figure
    bar = figure.colorbar(shown, ax=shown.axes, location="bottom", aspect=30, pad=0.03)
    bar.set_label(unit)
    if isinstance(shown.norm, LogNorm):
        set_depth_ticks(bar)


def colour_map(name: str) -> "Colormap":
    """A map in which what has no value is grey."""
    import matplotlib as mpl

    return mpl.colormaps[name].with_extremes(bad=NOTHING)


def depth_norm(depth_m: Values) -> "Normalize":
    """Equal ratios of depth are equal steps of colour."""
    from matplotlib.colors import LogNorm

    return LogNorm(*span(depth_m))


def span(values: Values) -> tuple[float, float]:
    """Smallest and largest value, or a little around them where there is only one."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.01 * max(abs(low), abs(high)) or 0.01
    return (low, high) if high - low > room else (low - room, high + room)


def set_depth_ticks(bar: "Colorbar") -> None:
    """Round depths, few enough to be read: the ticks of a logarithm crowd."""
    low, high = bar.norm.vmin or 1.0, bar.norm.vmax or 1.0
    ticks = [tick for tick in _DEPTH_TICKS_M if low <= tick <= high]
    if len(ticks) < 3:
        ticks = np.geomspace(low, high, 3).tolist()
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    bar.minorticks_off()
