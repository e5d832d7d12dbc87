"""Figures of the report of a calibration over the field: disparity, rows, light and lenses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.geometry import Geometry
from d3s.calibrate.report import Report
from d3s.calibrate.validation import FieldResiduals, mean_of_known
from d3s.calibrate.verdict import RULES
from d3s.lab.view.calibration_plots import (
    FIT,
    LEFT,
    QUIET,
    RIGHT,
    SIZE_IN,
    legend_above,
    new_figure,
)
from d3s.rig.lens_maps import LensMaps
from d3s.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_SIDES = ("left", "right")
_PLACES = (33, 65)  # rows and columns at which the maps of lenses are drawn
_ARROWS = (5, 9)
_LONGEST = 0.25  # arrow, of the half width of a view
_HALF_SIZE = (0.5, 1.0)  # of a view as that of the paper, with its half width as the radius


class Panel(NamedTuple):
    """One map of a figure, over the field."""

    title: str
    values: FloatArray  # (rows, cols)
    ninths: FloatArray | None = None  # (3, 3), written into the map


class Scale(NamedTuple):
    """Colours of the maps of a figure."""

    label: str  # with the unit
    low: float
    high: float
    colours: str = "RdBu_r"


def plot_residuals(geometry: Geometry, left: FieldResiduals | None) -> "Figure":
    """Residual disparity over 1/Z: the frames of the fit, and other frames with their field.

    Parameters
    ----------
    geometry
        Residuals of the frames that the line was fitted to.
    left
        Residuals of other frames: bars are the standard deviation over the field, dots the ninths.
    """
    figure = new_figure(SIZE_IN)
    axes = figure.subplots()
    limit = RULES["disparity_rms_px"].good
    axes.axhspan(-limit, limit, color=QUIET, alpha=0.15, linewidth=0, label=f"± {limit:g} px")
    axes.axhline(0, color=QUIET, linewidth=0.8)
    vergence, residual = 1 / geometry.depths_m, geometry.residuals_px
    axes.plot(vergence, residual, "o", color=LEFT, markersize=3.5, label="frames of the fit")
    if left is not None:
        tested = 1 / left.depths_m
        ninths = left.ninths_px.reshape(len(tested), -1)
        axes.plot(tested, ninths, ".", color=QUIET, markersize=3)
        axes.errorbar(
            tested, left.frame_mean_px, left.frame_spread_px,
            fmt="s", color=RIGHT, markersize=3.5, linewidth=1, label="other frames, field",
        )  # fmt: skip
        axes.plot([], [], ".", color=QUIET, label="their ninths")
    axes.set(xlabel="1 / Z (1/m)", ylabel="residual disparity (px)")
    legend_above(axes)
    return figure


def plot_residual_maps(left: FieldResiduals) -> "Figure":
    """Residual disparity over the field, of the nearest and of the farthest frames."""
    panels = [
        Panel(
            title, mean_of_known(left.residual_px[some], 0), mean_of_known(left.ninths_px[some], 0)
        )
        for title, some in _near_and_far(left.depths_m)
    ]
    reach = _reach(panels, RULES["field_disparity_rms_px"].good)
    return _draw_maps(left.x, left.y, panels, Scale("residual disparity (px)", -reach, reach))


def plot_rows_maps(left: FieldResiduals) -> "Figure":
    """Vertical disparity over the field, of the nearest and of the farthest frames."""
    panels = [
        Panel(title, mean_of_known(left.rows_px[some], 0))
        for title, some in _near_and_far(left.depths_m)
    ]
    reach = _reach(panels, RULES["vertical_rms_px"].good)
    return _draw_maps(left.x, left.y, panels, Scale("vertical disparity (px)", -reach, reach))


def plot_light_left(left: FieldResiduals) -> "Figure":
    """Light of the left over the right view after correction, over the field."""
    panel = Panel("left over right, corrected", 100 * (left.light_ratio - 1))
    reach = _reach([panel], 100 * RULES["light_ratio_rms"].good)
    scale = Scale("too bright in the left view (%)", -reach, reach, "PuOr_r")
    return _draw_maps(left.x, left.y, [panel], scale)


def plot_light(maps: LensMaps, half_size: tuple[float, float]) -> "Figure":
    """Light of both views over the field, relative to the axis of the left one."""
    x, y = _places(half_size, _PLACES)
    panels = [
        Panel(f"{name} view", 100 * maps.illumination(camera, x, y))
        for camera, name in enumerate(_SIDES)
    ]
    low = min(float(panel.values.min()) for panel in panels)
    high = max(float(panel.values.max()) for panel in panels)
    scale = Scale("light (%)", min(low, 99.0), max(high, low + 1), "viridis")
    return _draw_maps(x, y, panels, scale)


def plot_distortion(maps: LensMaps, half_size: tuple[float, float]) -> "Figure":
    """Displacement of the image by distortion over the field, which is taken out."""
    x, y = _places(half_size, _PLACES)
    panels = []
    for camera, name in enumerate(_SIDES):
        step = maps.field_radius_px * (maps.distorted(camera, x, y) - np.stack([x, y]))
        panels.append(Panel(f"{name} view", np.hypot(*step)))
    high = max(1.0, *(float(panel.values.max()) for panel in panels))
    figure = _draw_maps(x, y, panels, Scale("displacement (px)", 0, high, "Blues"))
    x, y = _places((0.9 * half_size[0], 0.9 * half_size[1]), _ARROWS)
    steps = [maps.distorted(camera, x, y) - np.stack([x, y]) for camera in range(len(_SIDES))]
    longest = max(float(np.hypot(*step).max()) for step in steps)
    for axes, step in zip(figure.axes, steps, strict=False):
        if longest > 0:
            axes.quiver(
                x, y, *step, color=FIT, angles="xy", pivot="mid", width=0.006,
                scale_units="xy", scale=longest / (_LONGEST * half_size[1]),
            )  # fmt: skip
    return figure


def plot_focus(maps: LensMaps, half_size: tuple[float, float]) -> "Figure":
    """Change of focus over the field in dioptres, along rows and along columns."""
    x, y = _places(half_size, _PLACES)
    panels = []
    for camera, name in enumerate(_SIDES):
        along_x, _, along_y = maps.focus_dpt(camera, x, y)
        panels += [Panel(f"{name}, along rows", along_x), Panel(f"{name}, columns", along_y)]
    reach = _reach(panels, 0.1)
    return _draw_maps(x, y, panels, Scale("focus nearer (dpt)", -reach, reach, "PRGn"), cols=2)


def half_size_of(report: Report) -> tuple[float, float]:
    """Half of the rows and columns of a view, in units of the radius of the field."""
    calibration = None if report.rig is None else report.rig.calibration
    if calibration is None or report.lens_maps is None:
        return _HALF_SIZE
    diameter = 2 * report.lens_maps.field_radius_px
    return calibration.crop_rows_px / diameter, calibration.crop_cols_px / diameter


def _near_and_far(depths_m: FloatArray) -> list[tuple[str, NDArray[np.intp]]]:
    """Titles and numbers of the nearest and of the farthest third of the frames."""
    order = np.argsort(depths_m)
    count = max(len(order) // 3, 1)
    parts = [order[:count], order[-count:]] if len(order) > 1 else [order]
    titles = []
    for name, some in zip(("nearest", "farthest"), parts, strict=False):
        ends = sorted({f"{depths_m[some[0]]:.2f}", f"{depths_m[some[-1]]:.2f}"})
        titles.append(f"{name} frames, {' to '.join(ends)} m")
    return list(zip(titles, parts, strict=True))


def _reach(panels: Sequence[Panel], least: float) -> float:
    """Ends of a scale around zero: all values but a few outliers, and the limit of a measure."""
    values = np.abs(np.concatenate([panel.values.ravel() for panel in panels]))
    known = values[np.isfinite(values)]
    return max(least, float(np.percentile(known, 98))) if known.size else least


def _places(
    half_size: tuple[float, float], count: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Places x, y (rows, cols) on a grid over a view."""
    y, x = np.meshgrid(
        *(np.linspace(-half, half, number) for half, number in zip(half_size, count, strict=True)),
        indexing="ij",
    )
    return x, y


def _draw_maps(
    x: FloatArray, y: FloatArray, panels: Sequence[Panel], scale: Scale, cols: int = 1
) -> "Figure":
    """Maps below each other, or in columns, with one scale of colours."""
    rows = len(panels) // cols
    (left, right), (top, bottom) = _ends(x, 1), _ends(y, 0)
    height_in = (SIZE_IN[0] - 0.2) / cols * abs((bottom - top) / (right - left)) + 0.32
    figure = new_figure((SIZE_IN[0], rows * height_in + 0.65))
    grid = figure.subplots(rows, cols, squeeze=False)
    image: AxesImage | None = None
    for axes, panel in zip(grid.flat, panels, strict=True):
        image = axes.imshow(
            panel.values, cmap=scale.colours, vmin=scale.low, vmax=scale.high, aspect="equal",
            extent=(left, right, bottom, top), interpolation="nearest",
        )  # fmt: skip
        axes.set(xticks=[], yticks=[], facecolor="#dddddd")
        axes.set_title(panel.title, fontsize=10 if cols == 1 else 9, pad=3)
        if panel.ninths is not None:
            _write_ninths(axes, panel.ninths)
        else:
            axes.plot(0, 0, "+", color=FIT, markersize=7)
    if image is not None:
        figure.colorbar(
            image, ax=grid, orientation="horizontal", label=scale.label, aspect=30, pad=0.02
        )
    return figure


def _ends(places: FloatArray, axis: int) -> tuple[float, float]:
    """Ends of the cells whose middles these are, along one axis."""
    first, last = float(places.flat[0]), float(places.flat[-1])
    count = places.shape[axis]
    half = 0.5 * (last - first) / (count - 1) if count > 1 else 0.5
    return first - half, last + half


def _write_ninths(axes: "Axes", ninths: FloatArray) -> None:
    """Write the mean of each ninth into it, and draw its sides."""
    for edge in (1 / 3, 2 / 3):
        axes.plot([edge, edge], [0, 1], color=FIT, linewidth=0.5, transform=axes.transAxes)
        axes.plot([0, 1], [edge, edge], color=FIT, linewidth=0.5, transform=axes.transAxes)
    for (row, col), value in np.ndenumerate(ninths):
        if np.isfinite(value):
            axes.text(
                (col + 0.5) / 3, 1 - (row + 0.5) / 3, f"{value:+.3f}", transform=axes.transAxes,
                ha="center", va="center", fontsize=9.5,
                bbox={"facecolor": "white", "alpha": 0.6, "linewidth": 0, "pad": 1.0},
            )  # fmt: skip
