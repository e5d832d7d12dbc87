"""Parts of figures that several of them have."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(width_in: float, height_in: float) -> "Figure":
    """Empty figure."""
    from matplotlib.figure import Figure  # not pyplot: no global state, no screen

    return Figure(figsize=(width_in, height_in), layout="constrained")


def new_axes(width_in: float, height_in: float) -> "tuple[Figure, Axes]":
    """Figure of one panel, and the panel."""
    figure = new_figure(width_in, height_in)
    return figure, figure.subplots()


def note(
    axes: "Axes", text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any
) -> None:
    """Write small text at a distance, in points, from a place in a panel."""
    given = {"fontsize": "x-small", **style}
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **given)


def show_grid(axes: "Axes") -> None:
    """Draw the grid behind everything else, and no frame at the top and the right."""
    axes.grid(which="major", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
