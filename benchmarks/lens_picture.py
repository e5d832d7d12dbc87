"""Picture of the error and the density of `joint` over the field of a typical lens."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibration_field import MAP_DEPTHS_M
from d3s.types import FloatArray

PICTURE_SET = "lens1"
_SIZE_IN = (8.0, 5.4)
_NOTHING = "0.85"
_LIMITS_CM = (0.01, 3.0)


def draw(perfect: Mapping[str, FloatArray], typical: Mapping[str, FloatArray]) -> Figure:
    """Maps of error and density at three depths, with perfect lenses and typical ones.

    Parameters
    ----------
    perfect, typical
        `error_cm` and `share` (depths, rows, cols) of both cameras, and the size `crop_px`.
    """
    figure = Figure(figsize=_SIZE_IN, layout="constrained")
    grid = figure.subplots(len(MAP_DEPTHS_M), 4)
    norm = mpl.colors.LogNorm(*_LIMITS_CM)
    for depth_m, line, number in zip(MAP_DEPTHS_M, grid, range(len(MAP_DEPTHS_M)), strict=True):
        for axes, (maps, key) in zip(
            line,
            [(maps, key) for key in ("error_cm", "share") for maps in (perfect, typical)],
            strict=True,
        ):
            is_error = key == "error_cm"
            scale = {"norm": norm} if is_error else {"vmin": 0.0, "vmax": 100.0}
            values = maps[key][number] if is_error else 100 * maps[key][number]
            colours = "viridis" if is_error else "cividis"
            axes.imshow(
                values, cmap=colours, extent=_extent(maps), interpolation="nearest", **scale
            )
            axes.set(xticks=[], yticks=[], facecolor=_NOTHING)
            axes.set_xlabel(_label(values, is_error=is_error), fontsize=8)
        line[0].set_ylabel(f"{depth_m:.2f} m")
    titles = (
        "error, perfect lenses",
        "error, typical lenses",
        "density, perfect",
        "density, typical",
    )
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title, fontsize=9)
    _bars(figure, grid)
    return figure


def _extent(maps: Mapping[str, FloatArray]) -> tuple[float, float, float, float]:
    rows, cols = maps["crop_px"]
    return -cols / 2, cols / 2, rows / 2, -rows / 2


def _label(values: FloatArray, *, is_error: bool) -> str:
    """Value in the middle and at the worse side, in words."""
    rows, cols = values.shape
    middle = float(np.nanmean(values[rows // 3 : -(rows // 3), cols // 3 : -(cols // 3)]))
    if is_error:
        return f"middle {middle:.2f}, worst {np.nanmax(values):.2f} cm"
    return f"middle {middle:.0f}, all {np.mean(values):.0f} %"


def _bars(figure: Figure, grid: "np.ndarray[tuple[int, int], np.dtype[np.object_]]") -> None:
    """Colour bars below the columns of errors and of densities."""
    for first, label in ((0, "mean absolute error (cm)"), (2, "pixels with a depth (%)")):
        some: list[Axes] = list(grid[:, first : first + 2].ravel())
        bar = figure.colorbar(
            some[0].images[0], ax=some, location="bottom", shrink=0.7, aspect=40, pad=0.02
        )
        bar.set_label(label, fontsize=8)
        bar.ax.tick_params(labelsize=8)
