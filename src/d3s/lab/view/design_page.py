"""Report of a design as one self-contained HTML page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from d3s.atomic import write_text
from d3s.lab.design.error_model import error_model
from d3s.lab.design.limits import WAVELENGTH_M
from d3s.lab.design.report import DesignReport, answer_cells, tolerance_cells
from d3s.lab.view.design import plot_changes, plot_design, plot_front
from d3s.lab.view.page import (
    figure_block,
    grid,
    heading,
    html_page,
    html_table,
    json_block,
    verdict_block,
    words,
)


def write_design(report: DesignReport, path: Path, *, overwrite: bool = False) -> None:
    """Write the page of a design.

    A file that exists is replaced only if told to.
    """
    write_text(path, design_page(report), overwrite=overwrite)


def design_page(report: DesignReport) -> str:
    """HTML page with everything embedded."""
    return html_page(f"Design: {report.prediction.camera.name}", _parts(report))


def _parts(report: DesignReport) -> Iterator[str]:
    camera = report.prediction.camera
    yield heading(f"Design: {camera.name}", 1)
    yield words(
        "Computed for perfect lenses, in the middle of the field; see the notes at the end.",
        "small",
    )
    yield _verdict(report)
    yield html_table(("", ""), report.facts())
    yield from _depth_part(report)
    yield from _change_part(report)
    yield from _search_part(report)
    yield from _tolerance_part(report)
    yield from _notes(report)
    yield json_block(_data(report), "design")


def _verdict(report: DesignReport) -> str:
    found = report.working_range_m
    depth = report.prediction.depth_m
    if found is None:
        return verdict_block("bad", f"No depth is within the wish, {report.wish}.", ())
    is_whole = found[0] <= depth[0] * 1.001 and found[1] >= depth[-1] * 0.999
    summary = f"Error within {report.wish} from {found[0]:.3g} to {found[1]:.3g} m, predicted."
    missed = [one for one in report.measured if not one.meets(report.wish)]
    remarks = []
    if report.measured:
        met = len(report.measured) - len(missed)
        remarks.append(f"On the twin, {met} of {len(report.measured)} planes are within the wish.")
    return verdict_block("good" if is_whole and not missed else "usable", summary, remarks)


def _change_part(report: DesignReport) -> Iterator[str]:
    yield heading("Change it")
    yield words("Error over depth with one number of the camera changed, the others as designed.")
    figure = plot_changes(report.prediction, report.wish)
    yield figure_block(figure, "Computed by the table of the natural texture.")


def _depth_part(report: DesignReport) -> Iterator[str]:
    prediction = report.prediction
    yield heading("Over depth")
    figure = plot_design(prediction, report.wish, report.measured)
    yield figure_block(figure, "As designed. The band is the scatter of predictions.")
    headings = (
        "depth (m)",
        "error (mm)",
        "sigma (mm)",
        "by noise",
        "by blur model",
        "stereo alone",
        "defocus alone",
        "bound",
        "disparity (px)",
        "blur radii (px)",
        "density",
    )
    yield html_table(headings, report.depth_rows(), numbers=range(len(headings)))


def _search_part(report: DesignReport) -> Iterator[str]:
    search = report.search
    if search is None:
        return
    yield heading("Cameras for the wish")
    yield grid([figure_block(plot_front(search), "None is smaller, brighter and farther.")])
    told = [{"camera": one.goal, **answer_cells(one)} for one in (*search.answers, *search.front)]
    rows = [tuple(one.values()) for one in told]
    yield html_table(tuple(told[0]), rows, numbers=range(3, len(rows[0])))


def _tolerance_part(report: DesignReport) -> Iterator[str]:
    if not report.tolerances:
        return
    yield heading("Tolerances")
    headings = (
        "cause",
        "amount",
        "before calibration",
        "calibrated",
        "checked with a wall",
        "loosest that keeps the wish",
    )
    rows = [tolerance_cells(one) for one in report.tolerances]
    yield html_table(headings, rows, numbers=range(1, len(headings)))
    yield words(
        "Largest error over the reach. Warmth acts after the calibration; a check needs a wall at "
        "the farthest depth, known to a millimetre.",
        "small",
    )


def _notes(report: DesignReport) -> Iterator[str]:
    wall, model = report.prediction.wall, error_model()
    yield heading("Notes")
    texture = (
        f"a natural texture of {100 * wall.contrast:.0f} % contrast"
        if wall.is_natural
        else f"the texture {wall.texture}"
    )
    yield words(
        f"Errors are those of joint on a wall with {texture}, in light of "
        f"{1e9 * WAVELENGTH_M:.0f} nm, with diffraction and without aberrations. The ratio of "
        f"measured to computed errors is from {model.cameras} simulated cameras."
    )
    yield words(
        "They are for the middle of the field. Towards the sides real lenses are worse: see the "
        "row of field curvature among the tolerances, and docs/design.md."
    )


def _data(report: DesignReport) -> dict[str, Any]:
    """Numbers for programs."""
    prediction = report.prediction
    return {
        "depth": prediction.depth_m.tolist(),
        "mae": prediction.mae_m.tolist(),
        "measured": [(one.depth_m, one.mae_m) for one in report.measured if one.density > 0],
        "wish": report.wish._asdict(),
    }
