"""Report of a calibration as one self-contained HTML page, with its numbers as JSON beside it."""

import json
from collections.abc import Iterator
from pathlib import Path

from d3s.atomic import write_text
from d3s.calibrate.report import Report
from d3s.view import calibration_plots as plots
from d3s.view.page import (
    figure_block,
    grid,
    heading,
    html_page,
    html_table,
    json_block,
    photo_block,
    verdict_block,
    words,
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
    numbers = path.with_suffix(".json")
    values = report.as_json()
    write_text(path, report_page(report), overwrite=overwrite)
    text = json.dumps(values, indent=1, allow_nan=False) + "\n"
    write_text(numbers, text, overwrite=overwrite)
    return numbers


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
    yield heading("What was found")
    rows = [(one.what, one.shown, one.spread_shown, one.kept) for one in report.findings]
    yield html_table(("what", "found", "spread", "from"), rows, numbers=(1, 2))
    yield from (words(note) for note in report.notes)
    yield from _error_part(report)
    yield from _geometry_part(report)
    yield from _alignment_part(report)
    yield from _tuning_part(report)
    yield from _noise_part(report)
    yield from _frames_part(report)
    yield json_block(report.as_json(), "numbers")


def _error_part(report: Report) -> Iterator[str]:
    if not report.validation:
        return
    yield heading("Error over distance")
    yield words(
        "Calibrated with every other frame, tested on those between: what to expect of boards that "
        "the calibration has never seen. Dashed: 1 cm."
    )
    errors = plots.plot_errors(report.validation)
    yield grid([figure_block(errors, "Mean absolute error, and pixels with a depth")])


def _geometry_part(report: Report) -> Iterator[str]:
    geometry, defocus = report.geometry, report.defocus
    if geometry is None:
        return
    yield heading("Geometry and focus")
    yield words(
        "Disparity is a straight line over 1/Z: its slope is s0 B / p, its height at 0 is the "
        "disparity of a point at infinity. Below it is how far the frames are from the line."
    )
    disparity, distances = plots.plot_disparity(geometry), plots.plot_distances(geometry)
    blocks = [
        figure_block(disparity, "Disparity against 1/Z, and residuals"),
        figure_block(distances, "Distances as typed, against what the frames say"),
    ]
    if defocus is not None:
        blocks.append(figure_block(plots.plot_defocus(defocus), "Relative blur of the two views"))
    yield grid(blocks)


def _alignment_part(report: Report) -> Iterator[str]:
    if report.matches is None or report.anchors is None:
        return
    yield heading("Anchors and rows")
    yield words(
        "Crosses: the anchors, towards which everything shrinks as the board goes away. Arrows: "
        "how places on the board moved between frames. Boxes: the fields of the lenses; dashed: "
        "what is cut from them."
    )
    blocks = [figure_block(plots.plot_flow(report), "Fields, anchors and flow", is_photo=True)]
    rows = report.rows
    if rows is not None:
        over_frames = plots.plot_rows_over_frames(rows, report.distances_m)
        blocks.append(figure_block(plots.plot_rows(rows), "Vertical disparity before and after"))
        blocks.append(figure_block(over_frames, "What is left, frame by frame"))
    yield grid(blocks)


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
