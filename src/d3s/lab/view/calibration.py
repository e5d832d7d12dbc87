"""Report of a calibration as one self-contained HTML page, with its numbers as JSON beside it."""

from collections.abc import Iterator
from pathlib import Path

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
    """Write the page and its numbers; returns the path of the JSON file.

    Parameters
    ----------
    report
        Result of `d3s.calibrate`, or of a calibration that failed.
    path
        Path of the HTML page. The JSON file has the same name with the suffix .json.
    overwrite
        Replace files that exist.

    Raises
    ------
    OutputError
        If a file cannot be written, or exists and `overwrite` is false.
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
    yield from _measures_part(report)
    yield from _error_part(report)
    yield from _disparity_part(report)
    yield from _rows_part(report)
    yield from _light_part(report)
    yield from _lenses_part(report)
    yield from _geometry_part(report)
    yield from _tuning_part(report)
    yield from _noise_part(report)
    yield from _frames_part(report)
    yield from _notes_part(report)
    yield from _findings_part(report)
    yield json_block(report.as_json(), "numbers")


def _measures_part(report: Report) -> Iterator[str]:
    lines = report.table_of_measures
    rows = [(one.title_with_unit, one.value, one.good, one.usable, one.grade) for one in lines]
    headings = ("measure", "value", "good to", "usable to", "")
    yield html_table(headings, rows, numbers=(1, 2, 3), kinds=[one.grade for one in lines])
    yield words(NOTE_ON_MEASURES, "small")


def _error_part(report: Report) -> Iterator[str]:
    if not report.validation:
        return
    yield heading("Error over distance")
    yield words(
        "Calibrated with every other frame, tested on those between: what to expect of boards that "
        "the calibration has never seen. Shaded: sigma, as the method predicts it. Dashed: 1 cm, "
        "and 95 %."
    )
    errors = plots.plot_errors(report.validation)
    caption = "Mean absolute error, pixels with a depth, and errors within 3 sigma"
    yield grid([figure_block(errors, caption)])


def _disparity_part(report: Report) -> Iterator[str]:
    geometry, left = report.geometry, report.field_residuals
    if geometry is None:
        return
    yield heading("Residual disparity")
    yield words(
        "Measured minus predicted disparity. A bend over 1/Z means that distances are measured "
        "from the wrong plane, a single point that one distance is wrong, a pattern over the field "
        f"that lenses are not described. {_depth_of_a_residual(geometry)}"
    )
    residuals = plots.plot_residuals(geometry, left)
    blocks = [figure_block(residuals, "Residual disparity over 1/Z")]
    if left is not None:
        maps = plots.plot_residual_maps(left)
        caption = "Residual disparity over the field of other frames, with the means of its ninths"
        blocks.append(figure_block(maps, caption))
    yield grid(blocks)


def _depth_of_a_residual(geometry: Geometry) -> str:
    """Sentence: the depth that a residual at the limit is at the farthest board."""
    limit_px = RULES["disparity_rms_px"].good
    farthest_m = float(np.nanmax(geometry.depths_m))
    error_cm = 100 * limit_px * farthest_m**2 / geometry.focal_baseline_px_m
    return f"At {farthest_m:.2g} m, {limit_px:g} px are {error_cm:.2g} cm of depth."


def _rows_part(report: Report) -> Iterator[str]:
    rows, left = report.rows, report.field_residuals
    blocks = []
    if left is not None:
        maps = plots.plot_rows_maps(left)
        blocks.append(figure_block(maps, "Vertical disparity left over the field of other frames"))
    if rows is not None:
        over_frames = plots.plot_rows_over_frames(rows, report.distances_m)
        blocks.append(figure_block(over_frames, "Vertical disparity left, frame by frame"))
        blocks.append(figure_block(plots.plot_rows(rows), "Vertical disparity before and after"))
    if blocks:
        yield heading("Rows")
        yield words("The same point has to be in the same row of both views, all over the field.")
        yield grid(blocks)


def _light_part(report: Report) -> Iterator[str]:
    maps, left = report.lens_maps, report.field_residuals
    blocks = []
    if maps is not None:
        light = plots.plot_light(maps, plots.half_size_of(report))
        blocks.append(figure_block(light, "Light of both views, of that on the left axis"))
    if left is not None:
        ratio = plots.plot_light_left(left)
        blocks.append(figure_block(ratio, "What is left of their ratio"))
    if blocks:
        yield heading("Flat field")
        yield words(
            "Lenses are darker towards the sides, and one may be darker than the other. Views are "
            "divided by these maps; what is left should be even."
        )
        yield grid(blocks)


def _lenses_part(report: Report) -> Iterator[str]:
    maps = report.lens_maps
    if maps is None:
        return
    half_size = plots.half_size_of(report)
    yield heading("Lenses")
    yield words(
        "Distortion is taken out when a raw frame is split. Focus changes over the field, and "
        "differs along rows and columns: methods take the blur that follows into account. "
        "Crosses: the axes."
    )
    distortion = plots.plot_distortion(maps, half_size)
    focus = plots.plot_focus(maps, half_size)
    yield grid(
        [
            figure_block(distortion, "Displacement by distortion; arrows are enlarged"),
            figure_block(focus, "Focus against that on the axis"),
        ]
    )


def _geometry_part(report: Report) -> Iterator[str]:
    geometry, defocus = report.geometry, report.defocus
    blocks = []
    if geometry is not None:
        disparity, distances = plots.plot_disparity(geometry), plots.plot_distances(geometry)
        blocks += [
            figure_block(disparity, "Disparity over 1/Z"),
            figure_block(distances, "Distances as typed, against what the frames say"),
        ]
    if defocus is not None:
        blocks.append(figure_block(plots.plot_defocus(defocus), "Relative blur of the two views"))
    if blocks:
        yield heading("Geometry and focus")
        yield words(
            "Disparity is a straight line over 1/Z: its slope is s0 B / p, its height at 0 is the "
            "disparity of a point at infinity."
        )
        yield grid(blocks)
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
    if tuning is None:
        return
    yield heading("Tuned depth equation")
    yield words(
        "Scale a and offset b of the depth equation that the method consensus uses, over the "
        "virtual baseline, with the cubics that stand for them. Shaded: the virtual baselines "
        "that were chosen."
    )
    cubics, error = plots.plot_cubics(tuning, chosen), plots.plot_tuned_error(tuning, chosen)
    yield grid(
        [
            figure_block(cubics, "a and b with their cubics"),
            figure_block(error, "Error of the depth equation alone"),
        ]
    )


def _noise_part(report: Report) -> Iterator[str]:
    if report.noise is not None:
        yield heading("Noise")
        noise = plots.plot_noise(report.noise)
        yield grid([figure_block(noise, "Noise of the sensor over intensity")])


def _notes_part(report: Report) -> Iterator[str]:
    if report.notes:
        yield heading("Remarks")
        yield from (words(note) for note in report.notes)


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
    caption = f"{report.names[frame]}\n{report.distances_m[frame]:g} m"
    is_out = frame in report.left_out
    return photo_block(
        report.thumbnails[frame],
        f"{caption}, left out" if is_out else caption,
        kind="out" if is_out else "",
    )
