"""Panels of figures: one image each, with a title, and a colour bar with its unit."""

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

HIDDEN_COLOUR, VISIBLE_COLOUR, NO_VALUE_COLOUR = "#c8442d", "#eeeeee", "#bbbbbb"

Values = NDArray[np.floating[Any]]
"""Image of numbers (rows, cols), NaN where there is no value."""

_DEPTH_TICKS_M = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100)


def show_grey(axes: "Axes", image: Values, title: str) -> None:
    """Show a view in grey levels from 0 to 1.

    Parameters
    ----------
    axes, title
        Axes to draw into, and title of the panel.
    image
        Intensities (rows, cols), full scale 1.
    """
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    set_title(axes, title)


def show_depth(axes: "Axes", depth_m: Values, norm: "Normalize", title: str) -> "AxesImage":
    """Show depth in colours, near yellow and far violet.

    Parameters
    ----------
    axes, title
        Axes to draw into, and title of the panel.
    depth_m
        Depth (rows, cols) in metres, NaN where there is none.
    norm
        Colour scale, such as `depth_norm` gives; several panels may share it.
    """
    return _show(axes, depth_m, title, cmap=colour_map("viridis_r"), norm=norm)


def show_scale(axes: "Axes", values: Values, ends: tuple[float, float], title: str) -> "AxesImage":
    """Show values in colours.

    Parameters
    ----------
    axes, title
        Axes to draw into, and title of the panel.
    values
        Image (rows, cols), NaN where there is no value.
    ends
        Values at both ends of the scale, such as `value_range` gives.
    """
    low, high = ends
    return _show(axes, values, title, cmap=colour_map("viridis"), vmin=low, vmax=high)


def show_signed(axes: "Axes", values: Values, widest: float, title: str) -> "AxesImage":
    """Show values of either sign: blue below 0, red above.

    Parameters
    ----------
    axes, title
        Axes to draw into, and title of the panel.
    values
        Image (rows, cols), NaN where there is no value.
    widest
        Absolute value at both ends of the scale, in the unit of `values`.
    """
    return _show(axes, values, title, cmap=colour_map("coolwarm"), vmin=-widest, vmax=widest)


def show_hidden(axes: "Axes", hidden: NDArray[np.bool_], title: str) -> None:
    """Show a mask in two colours.

    Parameters
    ----------
    axes, title
        Axes to draw into, and title of the panel.
    hidden
        True where a pixel is occluded (rows, cols).
    """
    from matplotlib.colors import ListedColormap

    colours = ListedColormap([VISIBLE_COLOUR, HIDDEN_COLOUR])
    _show(axes, hidden, title, cmap=colours, vmin=0, vmax=1)


def _show(axes: "Axes", values: NDArray[Any], title: str, **scale: Any) -> "AxesImage":
    shown = axes.imshow(values, interpolation="nearest", **scale)
    set_title(axes, title)
    return shown


def set_tight(figure: "Figure") -> None:
    """Lay out the panels of a figure with little space between them."""
    figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0, hspace=0)


def set_title(axes: "Axes", title: str) -> None:
    """Set the title of a panel and remove its ticks."""
    axes.set_title(title, fontsize="small", pad=3)
    axes.set(xticks=[], yticks=[])


def add_bar(shown: "AxesImage", unit: str) -> None:
    """Add a colour bar with its unit below a panel."""
    figure = shown.axes.figure
    bar = figure.colorbar(shown, ax=shown.axes, location="bottom", aspect=30, pad=0.03)
    bar.set_label(unit)
    set_depth_ticks(bar)


def draw_bar(shown: "AxesImage", axes: "Axes", unit: str, extend: str = "neither") -> "Colorbar":
    """Draw a horizontal colour bar into axes of its own.

    Parameters
    ----------
    shown
        Image that the bar explains.
    axes
        Axes that the bar fills.
    unit
        Label of the bar.
    extend
        Ends with a point, where values exceed the scale: "neither", "min", "max" or "both".
    """
    bar = shown.axes.figure.colorbar(shown, cax=axes, orientation="horizontal", extend=extend)
    bar.set_label(unit, fontsize="small")
    axes.tick_params(labelsize="small")
    set_depth_ticks(bar)
    return bar


def need_matplotlib() -> None:
    """Refuse figures where Matplotlib is not installed, before there is any work for them.

    Raises
    ------
    InputError
        Which says how it is installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingPackageError("figures and reports need the package matplotlib", "plot")


def colour_map(name: str) -> "Colormap":
    """Matplotlib's colour map of this name, with grey for NaN."""
    import matplotlib as mpl

    return mpl.colormaps[name].with_extremes(bad=NO_VALUE_COLOUR)


def depth_norm(depth_m: Values) -> "Normalize":
    """Logarithmic colour scale from the smallest to the largest depth in metres."""
    from matplotlib.colors import LogNorm

    return LogNorm(*value_range(depth_m))


def value_range(values: Values) -> tuple[float, float]:
    """Smallest and largest value, widened by 1 % of it if they are nearly equal."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.01 * max(abs(low), abs(high)) or 0.01
    return (low, high) if high - low > room else (low - room, high + room)


def set_depth_ticks(bar: "Colorbar") -> None:
    """Set ticks at round depths on a logarithmic scale, whose default ticks overlap."""
    from matplotlib.colors import LogNorm

    if not isinstance(bar.norm, LogNorm):
        return
    low, high = bar.norm.vmin or 1.0, bar.norm.vmax or 1.0
    ticks = [tick for tick in _DEPTH_TICKS_M if low <= tick <= high]
    if len(ticks) < 3:
        ticks = np.geomspace(low, high, 3).tolist()
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    bar.minorticks_off()


def notebook_figure(size: tuple[float, float]) -> "Figure":
    """Figure that a notebook shows even where pyplot has never been imported."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """Figure with the PNG that notebooks ask for."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=90)
            return buffer.getvalue()

    return NotebookFigure(figsize=size)
