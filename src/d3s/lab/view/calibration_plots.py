"""Figures of the report of a calibration: single quantities, and maps over the field."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from d3s.calibrate.baselines import ChosenBaselines
from d3s.calibrate.calibration_report import Report, RowsLeft
from d3s.calibrate.defocus import Defocus
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.matches import PairMatches
from d3s.calibrate.sensor_noise import Noise
from d3s.calibrate.tuning import Tuning
from d3s.calibrate.validation import FieldResiduals, Validation, mean_of_known
from d3s.calibrate.verdict import RULES
from d3s.lab.view.methods import styles_of
from d3s.lab.view.plots import new_axes, new_figure
from d3s.rig.lens_maps import LensMaps
from d3s.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, RIGHT, FIT, QUIET = "#1f6f8b", "#c8442d", "#222222", "#999999"
_BRIGHT = {"left": "#35c8f0", "right": "#ff7a4d"}  # visible on a black and white board
# On the screen of a telephone, 360 px wide, letters of 10 points are then 13 px high.
SIZE_IN = (3.8, 2.7)
LEGEND: dict[str, Any] = {"fontsize": 9, "frameon": False, "handlelength": 1.4, "borderpad": 0.2}
_ARROWS = 150
_ACCURATE_CM = 1.0
_COVERED = 100 * (1 - RULES["beyond_3_sigma"].good)


def plot_flow(report: Report) -> "Figure":
    """Fields, anchors and views in the raw frame, and the motion of places on the board."""
    rows, cols = report.shape
    figure, axes = new_axes(10.0, 10.0 * rows / cols)
    if report.overview is not None:
        axes.imshow(
            report.overview, cmap="gray", extent=(-0.5, cols - 0.5, rows - 0.5, -0.5), vmax=400
        )
    if report.matches is not None:
        _draw_arrows(axes, report.matches.left, _BRIGHT["left"])
        _draw_arrows(axes, report.matches.right, _BRIGHT["right"])
    for name, colour in _BRIGHT.items():
        _draw_view(axes, report, name, colour)
    axes.set(xlim=(0, cols), ylim=(rows, 0), xticks=[], yticks=[])
    return figure


def plot_rows(rows: RowsLeft) -> "Figure":
    """Vertical disparity of all places, before and after rectification."""
    figure, axes = new_axes(*SIZE_IN)
    widest = max(float(np.percentile(np.abs(rows.before_px), 99.5)), 0.5)
    bins = np.linspace(-widest, widest, 61).tolist()
    for values, name, colour in (
        (rows.before_px, "anchors only", QUIET),
        (rows.after_px, "rectified", LEFT),
    ):
        label = f"{name}: rms {np.sqrt(np.mean(values**2)):.2g} px"
        axes.hist(np.clip(values, -widest, widest), bins=bins, color=colour, label=label, alpha=0.8)
    axes.set(xlabel="vertical disparity (px)", ylabel="places", yscale="log")
    legend_above(axes, 1)
    return figure


def plot_rows_over_frames(rows: RowsLeft, distances_m: FloatArray) -> "Figure":
    """Vertical disparity after rectification over the distance (frames,) of the board."""
    figure, axes = new_axes(*SIZE_IN)
    frames = np.unique(rows.frame)
    middle, low, high = (
        np.array([np.percentile(rows.after_px[rows.frame == frame], share) for frame in frames])
        for share in (50, 16, 84)
    )
    depth_m = distances_m[frames]
    axes.fill_between(depth_m, low, high, color=LEFT, alpha=0.2, label="two thirds of all places")
    axes.plot(depth_m, middle, "o-", color=LEFT, markersize=3, label="median")
    axes.axhline(0, color=QUIET, linewidth=0.8)
    axes.set(xlabel="distance (m)", ylabel="vertical disparity left (px)")
    legend_above(axes)
    return figure


def plot_disparity(found: Geometry) -> "Figure":
    """Disparity over 1/Z with the fitted line."""
    figure, axes = new_axes(*SIZE_IN)
    frames = [one.frame for one in found.disparities if np.isfinite(found.depths_m[one.frame])]
    disparity = [one.disparity_px for one in found.disparities if one.frame in frames]
    vergence = 1 / found.depths_m[frames]
    line = np.array([0.0, vergence.max()])
    slope = found.focal_baseline_px_m
    axes.plot(vergence, disparity, "o", color=LEFT, markersize=3.5, label="frames")
    label = f"s0 B / p = {slope:.3f} px m"
    axes.plot(line, found.disparity_offset_px + slope * line, color=FIT, linewidth=1, label=label)
    axes.set(xlabel="1 / Z (1/m)", ylabel="disparity (px)")
    legend_above(axes)
    return figure


def plot_distances(found: Geometry) -> "Figure":
    """Distance by the ruler minus fitted depth, over depth."""
    figure, axes = new_axes(*SIZE_IN)
    axes.axhline(0, color=QUIET, linewidth=0.8)
    axes.plot(found.depths_m, 1e3 * found.distance_errors_m, "o", color=LEFT, markersize=3.5)
    axes.set(xlabel="distance (m)", ylabel="typed less found (mm)")
    return figure


def plot_defocus(found: Defocus) -> "Figure":
    """Difference of the blur variances over 1/Z, and the fit."""
    figure, axes = new_axes(SIZE_IN[0], 3.1)
    blur = found.relative
    axes.errorbar(
        blur.vergence_dpt, blur.measured_px2, blur.sd_px2,
        fmt="o", color=LEFT, markersize=3, linewidth=1, label="frames",
    )  # fmt: skip
    axes.plot(blur.vergence_dpt, blur.fitted_px2, color=FIT, linewidth=1, label="fit")
    lenses = zip(found.focus_dpt, ("left", "right"), (LEFT, RIGHT), strict=True)
    for vergence, name, colour in lenses:
        label = f"{name} sharp at {1 / vergence:.3f} m"
        axes.axvline(vergence, color=colour, linewidth=1, linestyle=":", label=label)
    axes.axhline(0, color=QUIET, linewidth=0.8)
    legend_above(axes, 1)
    axes.set(xlabel="1 / Z (1/m)", ylabel="blur variance,\nleft less right (px²)")
    return figure


def plot_errors(validation: Sequence[Validation]) -> "Figure":
    """Error, pixels with a depth, and errors within 3 sigma over distance, of each method.

    The sigma of a method is shaded, where it is known.
    """
    has_sigma = any(one.within_3_sigma is not None for one in validation)
    figure = new_figure(SIZE_IN[0], 4.6 if has_sigma else 3.8)
    panels = figure.subplots(
        2 + has_sigma, 1, sharex=True, height_ratios=(2.2, 1, 1)[: 2 + has_sigma]
    )
    styles = styles_of(one.method for one in validation)
    for one in validation:
        style = styles[one.method].of_line | {"linewidth": 1.4, "marker": "o", "markersize": 3}
        panels[0].plot(one.depths_m, 100 * one.mae_m, label=one.method, **style)
        panels[1].plot(one.depths_m, 100 * one.density, **style)
        if one.within_3_sigma is not None:
            panels[2].plot(one.depths_m, 100 * one.within_3_sigma, **style)
    for one in validation:
        if one.sigma_m is not None:
            colour, label = styles[one.method].colour, f"sigma of {one.method}"
            high = 100 * one.sigma_m
            panels[0].fill_between(
                one.depths_m, 0, high, color=colour, alpha=0.15, linewidth=0, label=label
            )
    panels[0].axhline(_ACCURATE_CM, color=QUIET, linewidth=1, linestyle="--")
    panels[0].set(ylabel="MAE (cm)", ylim=(0, None))
    legend_above(panels[0])
    panels[1].set(ylabel="pixels (%)", ylim=(0, 105))
    if has_sigma:
        panels[2].axhline(_COVERED, color=QUIET, linewidth=1, linestyle="--")
        panels[2].set(ylabel="in 3σ (%)", ylim=(0, 105))
    panels[-1].set_xlabel("distance (m)")
    return figure


def plot_noise(found: Noise) -> "Figure":
    """Standard deviation of the noise over intensity, and the fit."""
    figure, axes = new_axes(*SIZE_IN)
    smooth = np.linspace(0, max(1.1 * float(found.intensity.max()), 0.1), 100)
    fitted = 100 * np.sqrt(found.variance_at(smooth))
    axes.plot(smooth, fitted, color=FIT, linewidth=1, label="fit")
    sd = np.sqrt(np.maximum(found.variance, 0))
    spread = found.variance_std / np.maximum(2 * sd, 1e-9)
    for some, colour, name in (
        (found.is_fitted, LEFT, "levels of brightness"),
        (~found.is_fitted, QUIET, "with texture, left out"),
    ):
        if some.any():
            axes.errorbar(
                found.intensity[some], 100 * sd[some], 100 * spread[some],
                fmt="o", color=colour, markersize=3.5, label=name,
            )  # fmt: skip
    legend_above(axes)
    axes.set(xlabel="intensity, of full scale", ylabel="noise (% of full scale)")
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
    return figure


def plot_cubics(tuning: Tuning, chosen: ChosenBaselines | None) -> "Figure":
    """Scale a and offset b over the virtual baseline, with cubics."""
    figure = new_figure(*SIZE_IN)
    first, second = figure.subplots(2, 1, sharex=True)
    baselines_mm = 1e3 * tuning.virtual_baselines_m
    smooth = np.linspace(tuning.virtual_baselines_m[0], tuning.virtual_baselines_m[-1], 200)
    for axes, values, sd, cubic, name, colour in (
        (first, tuning.a_m_px, tuning.a_sd_m_px, tuning.a_cubic, "a (m px)", LEFT),
        (second, tuning.b_m, tuning.b_sd_m, tuning.b_cubic, "b (m)", RIGHT),
    ):
        axes.errorbar(baselines_mm, values, sd, fmt="o", color=colour, markersize=3, linewidth=1)
        fitted = np.polynomial.polynomial.polyval(smooth, cubic.coefficients)
        axes.plot(1e3 * smooth, fitted, color=FIT, linewidth=1, label=f"R² = {cubic.r2:.4f}")
        axes.set_ylabel(name)
        legend_above(axes)
        _shade_chosen(axes, chosen)
    second.set_xlabel("virtual baseline (mm)")
    return figure


def plot_tuned_error(tuning: Tuning, chosen: ChosenBaselines | None) -> "Figure":
    """Mean absolute error of the depth equation at the true shift, over the virtual baseline."""
    figure, axes = new_axes(*SIZE_IN)
    baselines_mm = 1e3 * tuning.virtual_baselines_m
    axes.plot(baselines_mm, 100 * tuning.mae_m, "o-", color=LEFT, markersize=3)
    _shade_chosen(axes, chosen)
    axes.set(xlabel="virtual baseline (mm)", ylabel="MAE (cm)", ylim=(0, None))
    return figure


def legend_above(axes: "Axes", cols: int = 2) -> None:
    """Legend above the axes, where it hides nothing."""
    axes.legend(**LEGEND, loc="lower left", bbox_to_anchor=(0, 1), ncols=cols, columnspacing=1.0)


def _draw_view(axes: "Axes", report: Report, name: str, colour: str) -> None:
    """Draw field, anchor and view of one lens."""
    from matplotlib.patches import Polygon, Rectangle

    if report.fields is not None:
        box = getattr(report.fields, name)
        corner = (box.col - 0.5, box.row - 0.5)
        axes.add_patch(Rectangle(corner, box.cols, box.rows, fill=False, edgecolor=colour))
    if report.anchors is not None:
        x, y = getattr(report.anchors, f"{name}_px")
        axes.plot(x, y, "+", color=colour, markersize=24, markeredgewidth=4)
    if report.outlines is not None:
        corners = getattr(report.outlines, name)
        axes.add_patch(Polygon(corners, fill=False, edgecolor=colour, linestyle="--"))


def _draw_arrows(axes: "Axes", pairs: Sequence[PairMatches], colour: str) -> None:
    """Draw the motion of some places from frame to frame as arrows."""
    if not pairs:
        return
    first = np.concatenate([pair.first_px for pair in pairs])
    second = np.concatenate([pair.second_px for pair in pairs])
    some = np.random.default_rng(0).permutation(len(first))[:_ARROWS]
    step = second[some] - first[some]
    axes.quiver(
        first[some, 0], first[some, 1], step[:, 0], step[:, 1],
        color=colour, angles="xy", scale_units="xy", scale=1, width=0.0025, alpha=0.9,
    )  # fmt: skip


def _shade_chosen(axes: "Axes", chosen: ChosenBaselines | None) -> None:
    if chosen is not None:
        chosen_mm = 1e3 * np.abs(chosen.chosen.virtual_baselines_m)
        axes.axvspan(chosen_mm.min(), chosen_mm.max(), color=QUIET, alpha=0.2, linewidth=0)


_SIDES = ("left", "right")
_PLACES = (33, 65)  # rows and columns at which the maps of lenses are drawn
_FIELD_ARROWS = (5, 9)
_LONGEST = 0.25  # arrow, of the half width of a view
_HALF_SIZE = (0.5, 1.0)  # of a view as that of the paper, with its half width as the radius


class FieldMap(NamedTuple):
    """One map of a figure, over the field."""

    title: str
    values: FloatArray  # (rows, cols)
    ninths: FloatArray | None = None  # (3, 3), written into the map


def plot_residuals(geometry: Geometry, left: FieldResiduals | None) -> "Figure":
    """Residual disparity over 1/Z: the frames of the fit, and other frames with their field.

    Bars are the standard deviation over the field, dots its ninths.
    """
    figure, axes = new_axes(*SIZE_IN)
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
    least, label = RULES["field_disparity_rms_px"].good, "residual disparity (px)"
    return _near_and_far_maps(left, left.residual_px, least, label, left.ninths_px)


def plot_rows_maps(left: FieldResiduals) -> "Figure":
    """Vertical disparity over the field, of the nearest and of the farthest frames."""
    least, label = RULES["vertical_rms_px"].good, "vertical disparity (px)"
    return _near_and_far_maps(left, left.rows_px, least, label)


def _near_and_far_maps(
    left: FieldResiduals,
    values: FloatArray,
    least: float,
    label: str,
    ninths: FloatArray | None = None,
) -> "Figure":
    """Means of the nearest and of the farthest third of the frames; `least` end of the scale."""
    order = np.argsort(left.depths_m)
    count = max(len(order) // 3, 1)
    parts = [order[:count], order[-count:]] if len(order) > 1 else [order]
    panels = []
    for name, some in zip(("nearest", "farthest"), parts, strict=False):
        ends = sorted({f"{left.depths_m[some[0]]:.2f}", f"{left.depths_m[some[-1]]:.2f}"})
        means = None if ninths is None else mean_of_known(ninths[some], 0)
        title = f"{name} frames, {' to '.join(ends)} m"
        panels.append(FieldMap(title, mean_of_known(values[some], 0), means))
    reach = _reach(panels, least)
    return _draw_maps(left.x, left.y, panels, label, (-reach, reach))


def plot_light_left(left: FieldResiduals) -> "Figure":
    """Light of the left over the right view after correction, over the field."""
    panel = FieldMap("left over right, corrected", 100 * (left.light_ratio - 1))
    reach = _reach([panel], 100 * RULES["light_ratio_rms"].good)
    label = "too bright in the left view (%)"
    return _draw_maps(left.x, left.y, [panel], label, (-reach, reach), "PuOr_r")


def plot_light(maps: LensMaps, half_size: tuple[float, float]) -> "Figure":
    """Light of both views over the field, relative to the axis of the left one."""
    x, y = _places(half_size, _PLACES)
    panels = [
        FieldMap(f"{name} view", 100 * maps.illumination(camera, x, y))
        for camera, name in enumerate(_SIDES)
    ]
    low = min(float(panel.values.min()) for panel in panels)
    high = max(float(panel.values.max()) for panel in panels)
    ends = min(low, 99.0), max(high, low + 1)
    return _draw_maps(x, y, panels, "light (%)", ends, "viridis")


def plot_distortion(maps: LensMaps, half_size: tuple[float, float]) -> "Figure":
    """Displacement of the image by distortion over the field, which is taken out."""
    x, y = _places(half_size, _PLACES)
    panels = []
    for camera, name in enumerate(_SIDES):
        step = maps.field_radius_px * (maps.distorted(camera, x, y) - np.stack([x, y]))
        panels.append(FieldMap(f"{name} view", np.hypot(*step)))
    high = max(1.0, *(float(panel.values.max()) for panel in panels))
    figure = _draw_maps(x, y, panels, "displacement (px)", (0, high), "Blues")
    x, y = _places((0.9 * half_size[0], 0.9 * half_size[1]), _FIELD_ARROWS)
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
        panels += [FieldMap(f"{name}, along rows", along_x), FieldMap(f"{name}, columns", along_y)]
    reach = _reach(panels, 0.1)
    return _draw_maps(x, y, panels, "focus nearer (dpt)", (-reach, reach), "PRGn", cols=2)


def half_size_of(report: Report) -> tuple[float, float]:
    """Half of the rows and columns of a view, in units of the radius of the field."""
    calibration = None if report.rig is None else report.rig.calibration
    if calibration is None or report.lens_maps is None:
        return _HALF_SIZE
    diameter = 2 * report.lens_maps.field_radius_px
    return calibration.crop_rows_px / diameter, calibration.crop_cols_px / diameter


def _reach(panels: Sequence[FieldMap], least: float) -> float:
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
    x: FloatArray,
    y: FloatArray,
    panels: Sequence[FieldMap],
    label: str,
    ends: tuple[float, float],
    colours: str = "RdBu_r",
    cols: int = 1,
) -> "Figure":
    """Maps below each other, or in columns, with one scale of colours; the label has the unit."""
    rows = len(panels) // cols
    (left, right), (top, bottom) = _ends(x, 1), _ends(y, 0)
    height_in = (SIZE_IN[0] - 0.2) / cols * abs((bottom - top) / (right - left)) + 0.32
    figure = new_figure(SIZE_IN[0], rows * height_in + 0.65)
    grid = figure.subplots(rows, cols, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=True):
        image = axes.imshow(
            panel.values, cmap=colours, vmin=ends[0], vmax=ends[1], aspect="equal",
            extent=(left, right, bottom, top), interpolation="nearest",
        )  # fmt: skip
        axes.set(xticks=[], yticks=[], facecolor="#dddddd")
        axes.set_title(panel.title, fontsize=10 if cols == 1 else 9, pad=3)
        if panel.ninths is not None:
            _write_ninths(axes, panel.ninths)
        else:
            axes.plot(0, 0, "+", color=FIT, markersize=7)
    figure.colorbar(image, ax=grid, orientation="horizontal", label=label, aspect=30, pad=0.02)
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
