"""Report of a calibration as one self-contained HTML page, with its numbers as JSON beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from d3s.calibrate.calibration_report import Report
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.verdict import NOTE_ON_MEASURES, RULES
from d3s.lab.view import calibration_plots as plots
from d3s.lab.view.page import (
    figure_block,
    grid,
    heading,
    html_page,
    html_table,
    json_block,
    photo_block,
    verdict_block,
    words,
    write_with_numbers,
)


def write_report(report: Report, path: Path, *, overwrite: bool = False) -> Path:
    """Write the page, and its numbers as JSON beside it; returns the path of the JSON file.

    The report may be that of a calibration that failed. Files that exist are replaced only if told
    to.
    """
    return write_with_numbers(path, report_page(report), report.as_json(), overwrite=overwrite)


def report_page(report: Report) -> str:
    """HTML page with all figures embedded."""
    return html_page(f"Calibration of {report.name}", _parts(report))


def _parts(report: Report) -> Iterator[str]:
    yield heading(f"Calibration of {report.name}", 1)
    yield words(
        f"{len(report.names)} frames of {report.shape[1]} x {report.shape[0]} px, board from "
        f"{report.distances_m[0]:g} to {report.distances_m[-1]:g} m. Made {report.created} by "
        f"d3s {report.version}.",
        "small",
    )
    verdict = report.verdict
    remarks = [f"{one.words} {one.remedy}" for one in verdict.remarks]
    yield verdict_block(verdict.grade, verdict.summary, remarks)
    for part in (
        *(_measures_part, _error_part, _disparity_part, _rows_part, _light_part, _lenses_part),
        *(_geometry_part, _tuning_part, _noise_part, _frames_part, _notes_part, _findings_part),
    ):
        yield from part(report)
    yield json_block(report.as_json(), "numbers")


def _measures_part(report: Report) -> Iterator[str]:
    lines = report.table_of_measures
    rows = [(one.title_with_unit, one.value, one.good, one.usable, one.grade) for one in lines]
    headings = ("measure", "value", "good to", "usable to", "")
    yield html_table(headings, rows, numbers=(1, 2, 3), kinds=[one.grade for one in lines])
    yield words(NOTE_ON_MEASURES, "small")


def _section(title: str, text: str, figures: Sequence[tuple[Any, str]]) -> Iterator[str]:
    """Heading, text and figures with their captions; nothing without figures."""
    if figures:
        yield heading(title)
        if text:
            yield words(text)
        yield grid(figure_block(figure, caption) for figure, caption in figures)


def _error_part(report: Report) -> Iterator[str]:
    if report.validation:
        caption = "Mean absolute error, pixels with a depth, and errors within 3 sigma"
        yield from _section(
            "Error over distance",
            "Calibrated with every other frame, tested on those between: what to expect of boards "
            "that the calibration has never seen. Shaded: sigma, as the method predicts it. "
            "Dashed: 1 cm, and 95 %.",
            [(plots.plot_errors(report.validation), caption)],
        )


def _disparity_part(report: Report) -> Iterator[str]:
    geometry, left = report.geometry, report.field_residuals
    if geometry is None:
        return
    figures = [(plots.plot_residuals(geometry, left), "Residual disparity over 1/Z")]
    if left is not None:
        caption = "Residual disparity over the field of other frames, with the means of its ninths"
        figures.append((plots.plot_residual_maps(left), caption))
    yield from _section(
        "Residual disparity",
        "Measured minus predicted disparity. A bend over 1/Z means that distances are measured "
        "from the wrong plane, a single point that one distance is wrong, a pattern over the field "
        f"that lenses are not described. {_depth_of_a_residual(geometry)}",
        figures,
    )


def _depth_of_a_residual(geometry: Geometry) -> str:
    """Sentence: the depth that a residual at the limit is at the farthest board."""
    limit_px = RULES["disparity_rms_px"].good
    farthest_m = float(np.nanmax(geometry.depths_m))
    error_cm = 100 * limit_px * farthest_m**2 / geometry.focal_baseline_px_m
    return f"At {farthest_m:.2g} m, {limit_px:g} px are {error_cm:.2g} cm of depth."


def _rows_part(report: Report) -> Iterator[str]:
    rows, left = report.rows, report.field_residuals
    figures = []
    if left is not None:
        maps = plots.plot_rows_maps(left)
        figures.append((maps, "Vertical disparity left over the field of other frames"))
    if rows is not None:
        over_frames = plots.plot_rows_over_frames(rows, report.distances_m)
        figures.append((over_frames, "Vertical disparity left, frame by frame"))
        figures.append((plots.plot_rows(rows), "Vertical disparity before and after"))
    text = "The same point has to be in the same row of both views, all over the field."
    yield from _section("Rows", text, figures)


def _light_part(report: Report) -> Iterator[str]:
    maps, left = report.lens_maps, report.field_residuals
    figures = []
    if maps is not None:
        light = plots.plot_light(maps, plots.half_size_of(report))
        figures.append((light, "Light of both views, of that on the left axis"))
    if left is not None:
        figures.append((plots.plot_light_left(left), "What is left of their ratio"))
    yield from _section(
        "Flat field",
        "Lenses are darker towards the sides, and one may be darker than the other. Views are "
        "divided by these maps; what is left should be even.",
        figures,
    )


def _lenses_part(report: Report) -> Iterator[str]:
    maps, half_size = report.lens_maps, plots.half_size_of(report)
    if maps is not None:
        distortion = plots.plot_distortion(maps, half_size)
        yield from _section(
            "Lenses",
            "Distortion is taken out when a raw frame is split. Focus changes over the field, and "
            "differs along rows and columns: methods take the blur that follows into account. "
            "Crosses: the axes.",
            [
                (distortion, "Displacement by distortion; arrows are enlarged"),
                (plots.plot_focus(maps, half_size), "Focus against that on the axis"),
            ],
        )


def _geometry_part(report: Report) -> Iterator[str]:
    geometry, defocus = report.geometry, report.defocus
    figures = []
    if geometry is not None:
        distances = plots.plot_distances(geometry)
        figures.append((plots.plot_disparity(geometry), "Disparity over 1/Z"))
        figures.append((distances, "Distances as typed, against what the frames say"))
    if defocus is not None:
        figures.append((plots.plot_defocus(defocus), "Relative blur of the two views"))
    yield from _section(
        "Geometry and focus",
        "Disparity is a straight line over 1/Z: its slope is s0 B / p, its height at 0 is the "
        "disparity of a point at infinity.",
        figures,
    )
    if report.matches is not None and report.anchors is not None:
        yield words(
            "Crosses: the anchors, towards which everything shrinks as the board goes away. "
            "Arrows: how places on the board moved between frames. Boxes: the fields of the "
            "lenses; dashed: what is cut from them."
        )
        caption = "Fields, anchors and flow: left lens blue, right lens orange"
        yield grid([figure_block(plots.plot_flow(report), caption, is_photo=True)])


def _tuning_part(report: Report) -> Iterator[str]:
    tuning, chosen = report.tuning, report.baselines
    if tuning is not None:
        error = plots.plot_tuned_error(tuning, chosen)
        yield from _section(
            "Tuned depth equation",
            "Scale a and offset b of the depth equation that the method consensus uses, over the "
            "virtual baseline, with the cubics that stand for them. Shaded: the virtual baselines "
            "that were chosen.",
            [
                (plots.plot_cubics(tuning, chosen), "a and b with their cubics"),
                (error, "Error of the depth equation alone"),
            ],
        )


def _noise_part(report: Report) -> Iterator[str]:
    if report.noise is not None:
        caption = "Noise of the sensor over intensity"
        yield from _section("Noise", "", [(plots.plot_noise(report.noise), caption)])


def _notes_part(report: Report) -> Iterator[str]:
    if report.notes:
        yield heading("Remarks")
        yield from map(words, report.notes)


def _findings_part(report: Report) -> Iterator[str]:
    if report.findings:
        yield heading("Parameters")
        rows = [(one.what, one.shown, one.spread_shown, one.kept) for one in report.findings]
        yield html_table(("what", "found", "spread", "from"), rows, numbers=(1, 2))


def _frames_part(report: Report) -> Iterator[str]:
    yield heading("Frames")
    left_out = report.not_read | {report.names[n]: why for n, why in report.left_out.items()}
    if left_out:
        yield html_table(("left out", "why"), list(left_out.items()))
    else:
        yield words("All frames fit each other.")
    single = [
        (f"{step}: {report.names[frame]}", why)
        for step, frames in report.left_out_by_step.items()
        for frame, why in frames.items()
    ]
    if single:
        yield html_table(("left out by one step", "why"), single)
    yield grid((_thumbnail(report, frame) for frame in sorted(report.thumbnails)), "frames")


def _thumbnail(report: Report, frame: int) -> str:
    is_out = frame in report.left_out
    caption = f"{report.names[frame]}\n{report.distances_m[frame]:g} m" + ", left out" * is_out
    return photo_block(report.thumbnails[frame], caption, kind="out" * is_out)
