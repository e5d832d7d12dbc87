"""Report of a design as one self-contained HTML page, and its figures.

Errors, disparity and blur over depth, and the front of a search.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from d3s.atomic import write_text
from d3s.lab.design.camera import Camera
from d3s.lab.design.error_model import error_model
from d3s.lab.design.limits import WAVELENGTH_M
from d3s.lab.design.predict import ErrorLimit, Prediction
from d3s.lab.design.report import DesignReport, answer_cells, tolerance_cells
from d3s.lab.design.search import Search
from d3s.lab.design.tolerances import CHANGES, changed_errors_m
from d3s.lab.design.verify import MeasuredErrors
from d3s.lab.view.page import figure_block, json_block, render
from d3s.lab.view.plots import ACCENT, GREEN, LEFT, PURPLE, RIGHT, new_axes, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write_design(report: DesignReport, path: Path, *, overwrite: bool = False) -> None:
    """Write the page of a design.

    A file that exists is replaced only if told to.
    """
    write_text(path, design_page(report), overwrite=overwrite)


def design_page(report: DesignReport) -> str:
    """HTML page with everything embedded."""
    over_depth = plot_design(report.prediction, report.wish, report.measured)
    changes = plot_changes(report.prediction, report.wish)
    grade, summary, remarks = _verdict(report)
    search = report.search
    found = (*search.answers, *search.front) if search else ()
    answers = [{"camera": one.goal, **answer_cells(one)} for one in found]
    caption = "None is smaller, brighter and farther."
    return render(
        "design.html",
        report=report,
        grade=grade,
        summary=summary,
        remarks=remarks,
        over_depth=figure_block(over_depth, "As designed. The band is the scatter of predictions."),
        changes=figure_block(changes, "Computed by the table of the natural texture."),
        front=figure_block(plot_front(search), caption) if search else "",
        answers=answers,
        answer_rows=[list(one.values()) for one in answers],
        tolerances=[tolerance_cells(one) for one in report.tolerances],
        wavelength_nm=1e9 * WAVELENGTH_M,
        cameras=error_model().cameras,
        numbers=json_block(_data(report), "design"),
    )


def _verdict(report: DesignReport) -> tuple[str, str, list[str]]:
    """Grade of a design, its summary, and remarks."""
    found = report.working_range_m
    depth = report.prediction.depth_m
    if found is None:
        return "bad", f"No depth is within the wish, {report.wish}.", []
    is_whole = found[0] <= depth[0] * 1.001 and found[1] >= depth[-1] * 0.999
    summary = f"Error within {report.wish} from {found[0]:.3g} to {found[1]:.3g} m, predicted."
    missed = [one for one in report.measured if not one.meets(report.wish)]
    remarks = []
    if report.measured:
        met = len(report.measured) - len(missed)
        remarks.append(f"On the twin, {met} of {len(report.measured)} planes are within the wish.")
    return "good" if is_whole and not missed else "usable", summary, remarks


def _data(report: DesignReport) -> dict[str, Any]:
    """Numbers for programs."""
    prediction = report.prediction
    return {
        "depth": prediction.depth_m.tolist(),
        "mae": prediction.mae_m.tolist(),
        "measured": [(one.depth_m, one.mae_m) for one in report.measured if one.density > 0],
        "wish": report.wish._asdict(),
    }


def plot_design(
    prediction: Prediction, wish: ErrorLimit, measured: Sequence[MeasuredErrors] = ()
) -> "Figure":
    """Figure of the predicted errors, the disparity and the blur over depth."""
    figure = new_figure(9, 3.6)
    figure.suptitle(f"{prediction.camera.name}; computed, perfect lenses", fontsize="medium")
    error, blur = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _plot_errors(error, prediction, wish, measured)
    _plot_blur(blur, prediction)
    for axes in (error, blur):
        axes.set(xlabel="depth (m)", xlim=(prediction.depth_m[0], prediction.depth_m[-1]))
        axes.grid(alpha=0.25)
    return figure


def _plot_errors(
    axes: "Axes", prediction: Prediction, wish: ErrorLimit, measured: Sequence[MeasuredErrors]
) -> None:
    depth, mae_mm = prediction.depth_m, 1e3 * prediction.mae_m
    spread = np.exp(prediction.scatter)
    axes.fill_between(depth, mae_mm / spread, mae_mm * spread, color=ACCENT, alpha=0.15, lw=0)
    axes.semilogy(depth, mae_mm, color=ACCENT, label="error of joint, predicted")
    per_sigma = prediction.mae_m / prediction.sigma_m
    axes.semilogy(
        depth,
        1e3 * per_sigma * prediction.bound.total_m,
        color=ACCENT,
        ls=":",
        label="least possible",
    )
    axes.semilogy(
        depth,
        1e3 * per_sigma * np.minimum(prediction.by_cue_m[1], 1e3),
        color=PURPLE,
        ls="--",
        label="defocus alone",
    )
    axes.semilogy(depth, 1e3 * wish.limit_m(depth), color=GREEN, lw=1, label=f"wish, {wish}")
    if measured:
        axes.semilogy(
            [one.depth_m for one in measured],
            [1e3 * one.mae_m for one in measured],
            "o",
            color=RIGHT,
            ms=4,
            label="measured on the twin",
        )
    axes.set(title="Mean absolute error", ylabel="mm")
    low = 0.5 * float(np.nanmin(1e3 * per_sigma * prediction.bound.total_m))
    high = 2 * float(max(np.nanmax(mae_mm), np.max(1e3 * wish.limit_m(depth))))
    axes.set_ylim(low, high)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize="small")


def _plot_blur(axes: "Axes", prediction: Prediction) -> None:
    depth = prediction.depth_m
    axes.plot(depth, prediction.disparity_px, color=ACCENT, label="disparity")
    for name, colour, radius in zip(
        ("left", "right"), (LEFT, RIGHT), prediction.blur_radius_px, strict=True
    ):
        axes.plot(depth, 2 * np.abs(radius), color=colour, label=f"blur disk, {name}")
    axes.set(title="Disparity and blur", ylabel="px", ylim=(0, None))
    axes.legend(frameon=False, fontsize="small")


def plot_front(search: Search) -> "Figure":
    """Figure of the cameras that no other beats in size, light and reach."""
    figure, axes = new_axes(6.4, 3.8)
    size = [1e3 * one.size_m for one in search.front]
    light = [one.light_um2 for one in search.front]
    far = [one.farthest_m for one in search.front]
    dots = axes.scatter(size, light, c=far, cmap="viridis", s=36, zorder=3)
    figure.colorbar(dots, label="reaches (m)")
    for one, marker in zip(search.answers, "sD^", strict=True):
        axes.plot(
            1e3 * one.size_m, one.light_um2, marker, mfc="none", mec=RIGHT, ms=11, label=one.goal
        )
    axes.set(
        xlabel="longest side (mm)",
        ylabel="light (pixel area / f-number², µm²)",
        title="Size, light and reach",
    )
    axes.set_yscale("log")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize="small")
    return figure


def plot_changes(prediction: Prediction, wish: ErrorLimit) -> "Figure":
    """Figure of the errors with one number of the camera changed, and the camera from above."""
    figure = new_figure(9, 5.4)
    *panels, above = figure.subplots(2, 3).ravel()
    depth = prediction.depth_m
    colours = dict(zip(CHANGES, (LEFT, "#8fbfe0", "#eba08f", RIGHT), strict=True))
    for axes, (title, errors) in zip(panels, changed_errors_m(prediction).items(), strict=True):
        for factor, error_m in errors.items():
            label = f"{factor:g} times"
            axes.semilogy(depth, 1e3 * error_m, color=colours[factor], label=label)
        axes.semilogy(depth, 1e3 * prediction.mae_m, "--", color=ACCENT, label="as designed")
        axes.semilogy(depth, 1e3 * wish.limit_m(depth), color=GREEN, lw=1, label="wish")
        axes.set(title=title, xlabel="depth (m)", ylabel="error (mm)")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.25)
    panels[-1].legend(frameon=False, fontsize="x-small")  # which has all factors
    _draw_camera(above, prediction.camera)
    return figure


def _draw_camera(axes: "Axes", camera: Camera) -> None:
    """Draw lenses, sensor and light from above, to scale."""
    from matplotlib.patches import Ellipse

    optics, (diameter_m, thick_m) = camera.optics, camera.outer_lens_m
    behind_mm, wide_mm = (
        1e3 * one for one in (optics.sensor_distance_m, camera.view_px[1] * optics.pixel_pitch_m)
    )
    opening_mm = 2e3 * optics.aperture_radius_m
    for sign, colour in ((-0.5, LEFT), (0.5, RIGHT)):
        x = 1e3 * sign * optics.baseline_m
        ends = [x - opening_mm / 2, x + opening_mm / 2, x + wide_mm / 2, x - wide_mm / 2]
        axes.fill(ends, [0, 0, -behind_mm, -behind_mm], color=colour, alpha=0.15, lw=0)
        axes.plot(ends[2:], [-behind_mm, -behind_mm], color="black", lw=3)
        axes.add_patch(
            Ellipse((x, 0), 1e3 * diameter_m, 1e3 * thick_m, facecolor="#e8f1fa", edgecolor=ACCENT)
        )
    axes.set(title="from above, to scale", xlabel="mm", aspect="equal", yticks=[])
