"""Report of a calibration as one self-contained HTML page, with its numbers as JSON beside it."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from d3s.calibrate.calibration_report import Report
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.verdict import NOTE_ON_MEASURES, RULES
from d3s.lab.view import calibration_plots as plots
from d3s.lab.view.page import figure_block, json_block, photo_block, render, write_with_numbers


def write_report(report: Report, path: Path, *, overwrite: bool = False) -> Path:
    """Write the page, and its numbers as JSON beside it; returns the path of the JSON file.

    The report may be that of a calibration that failed. Files that exist are replaced only if told
    to.
    """
    return write_with_numbers(path, report_page(report), report.as_json(), overwrite=overwrite)


def report_page(report: Report) -> str:
    """HTML page with all figures embedded."""
    measures = report.table_of_measures
    left_out = report.not_read | {report.names[n]: why for n, why in report.left_out.items()}
    return render(
        "calibration.html",
        report=report,
        remarks=[f"{one.words} {one.remedy}" for one in report.verdict.remarks],
        measures=[
            (one.title_with_unit, one.value, one.good, one.usable, one.grade) for one in measures
        ],
        grades=[one.grade for one in measures],
        note_on_measures=NOTE_ON_MEASURES,
        depth_of_a_residual=_depth_of_a_residual(report.geometry),
        figures=_figures(report),
        left_out=list(left_out.items()),
        left_out_by_step=[
            (f"{step}: {report.names[frame]}", why)
            for step, frames in report.left_out_by_step.items()
            for frame, why in frames.items()
        ],
        thumbnails=[_thumbnail(report, frame) for frame in sorted(report.thumbnails)],
        findings=[(one.what, one.shown, one.spread_shown, one.kept) for one in report.findings],
        numbers=json_block(report.as_json(), "numbers"),
    )


def _depth_of_a_residual(geometry: Geometry | None) -> str:
    """Sentence: the depth that a residual at the limit is at the farthest board."""
    if geometry is None:
        return ""
    limit_px = RULES["disparity_rms_px"].good
    farthest_m = float(np.nanmax(geometry.depths_m))
    error_cm = 100 * limit_px * farthest_m**2 / geometry.focal_baseline_px_m
    return f"At {farthest_m:.2g} m, {limit_px:g} px are {error_cm:.2g} cm of depth."


def _figures(report: Report) -> Mapping[str, list[str]]:
    """Figures of each section, with their captions; none for steps that were not reached."""
    geometry, left, maps = report.geometry, report.field_residuals, report.lens_maps
    half_size = plots.half_size_of(report)
    found: defaultdict[str, list[str]] = defaultdict(list)

    def add(section: str, figure: Any, caption: str, *, is_photo: bool = False) -> None:
        found[section].append(figure_block(figure, caption, is_photo=is_photo))

    if report.validation:
        caption = "Mean absolute error, pixels with a depth, and errors within 3 sigma"
        add("error", plots.plot_errors(report.validation), caption)
    if geometry is not None:
        add("residual", plots.plot_residuals(geometry, left), "Residual disparity over 1/Z")
        add("geometry", plots.plot_disparity(geometry), "Disparity over 1/Z")
        caption = "Distances as typed, against what the frames say"
        add("geometry", plots.plot_distances(geometry), caption)
    if left is not None:
        if geometry is not None:
            caption = "Residual disparity over the field of other frames, with its ninths"
            add("residual", plots.plot_residual_maps(left), caption)
        caption = "Vertical disparity left over the field of other frames"
        add("rows", plots.plot_rows_maps(left), caption)
    if report.rows is not None:
        over_frames = plots.plot_rows_over_frames(report.rows, report.distances_m)
        add("rows", over_frames, "Vertical disparity left, frame by frame")
        add("rows", plots.plot_rows(report.rows), "Vertical disparity before and after")
    if maps is not None:
        add(
            "light",
            plots.plot_light(maps, half_size),
            "Light of both views, of that on the left axis",
        )
        caption = "Displacement by distortion; arrows are enlarged"
        add("lenses", plots.plot_distortion(maps, half_size), caption)
        add("lenses", plots.plot_focus(maps, half_size), "Focus against that on the axis")
    if left is not None:
        add("light", plots.plot_light_left(left), "What is left of their ratio")
    if report.defocus is not None:
        add("geometry", plots.plot_defocus(report.defocus), "Relative blur of the two views")
    if report.matches is not None and report.anchors is not None:
        caption = "Fields, anchors and flow: left lens blue, right lens orange"
        add("flow", plots.plot_flow(report), caption, is_photo=True)
    if report.tuning is not None:
        tuned = report.tuning, report.baselines
        add("tuning", plots.plot_cubics(*tuned), "a and b with their cubics")
        add("tuning", plots.plot_tuned_error(*tuned), "Error of the depth equation alone")
    if report.noise is not None:
        add("noise", plots.plot_noise(report.noise), "Noise of the sensor over intensity")
    return found


def _thumbnail(report: Report, frame: int) -> str:
    is_out = frame in report.left_out
    caption = f"{report.names[frame]}\n{report.distances_m[frame]:g} m" + ", left out" * is_out
    return photo_block(report.thumbnails[frame], caption, kind="out" * is_out)
