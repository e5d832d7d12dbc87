"""Report of a design as one self-contained HTML page, with sliders that redraw its curves."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from d3s.atomic import write_text
from d3s.estimate.candidates import WIDEST_BLUR_PX
from d3s.estimate.lens_field import BLUR_RADIUS_PX, DEFOCUS_PX2
from d3s.lab.design.camera import CLEAR_SHARE, THICKNESS_SHARE
from d3s.lab.design.error_model import error_model, natural_table
from d3s.lab.design.limits import WAVELENGTH_M
from d3s.lab.design.report import DesignReport, tolerance_cells
from d3s.lab.view.design import plot_design, plot_front
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

_SCRIPT = Path(__file__).with_name("design_page.js")
_CONTRAST = 0.15  # of the natural texture of the table
_STYLE = """<style>
.sliders { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr));
  gap: 0.4rem 1.2rem; margin: 0.6rem 0; }
.sliders label { display: grid; grid-template-columns: 7rem 1fr 5rem; gap: 0.5rem;
  align-items: center; }
.sliders output { text-align: right; font-variant-numeric: tabular-nums; }
.sliders input { width: 100%; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
#shown { display: none; }
#told { min-height: 1.5em; font-weight: 600; }
</style>"""
_SLIDERS = {
    "baseline": "baseline",
    "focal": "focal length",
    "fnumber": "f-number",
    "focus": "focus",
    "noise": "noise",
}


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
    yield _STYLE
    yield heading(f"Design: {camera.name}", 1)
    yield words(
        "Computed for perfect lenses, in the middle of the field; see the notes at the end.",
        "small",
    )
    yield _verdict(report)
    yield html_table(("", ""), report.facts())
    yield from _interactive(report)
    yield from _depth_part(report)
    yield from _search_part(report)
    yield from _tolerance_part(report)
    yield from _notes(report)
    yield json_block(_data(report), "design")
    yield f"<script>\n{_SCRIPT.read_text(encoding='utf-8')}</script>"


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


def _interactive(report: DesignReport) -> Iterator[str]:
    yield heading("Change it")
    yield words(
        "Move a slider, and the curves follow. Their middle is the design, which is drawn dashed; "
        "green is the wish, red points are measured on the twin."
    )
    rows = "".join(
        f'<label>{escape(title)}<input type="range" id="slider-{name}" min="0" max="1000" '
        f'value="500" aria-label="{escape(title)}"><output id="value-{name}"></output></label>'
        for name, title in _SLIDERS.items()
    )
    yield f'<div class="sliders">{rows}</div>'
    yield '<button id="reset" type="button">Back to the design</button><p id="told"></p>'
    charts = (
        ("errors", "0 0 640 300", "Mean absolute error of joint over depth"),
        ("blur", "0 0 640 300", "Disparity (grey) and blur disks, left (blue) and right (red)"),
        ("camera", "0 0 640 300", "The camera from above, to scale: lenses, sensor, light"),
    )
    yield grid(
        f'<figure><svg id="{name}" viewBox="{view}" role="img" aria-label="{escape(caption)}">'
        f"</svg><figcaption>{escape(caption)}</figcaption></figure>"
        for name, view, caption in charts
    )
    yield '<div id="shown"></div>'


def _depth_part(report: DesignReport) -> Iterator[str]:
    prediction = report.prediction
    yield heading("Over depth")
    figure = plot_design(prediction, report.wish, report.measured)
    yield figure_block(figure, "As designed. The band is the scatter of predictions.")
    stereo, defocus = prediction.by_cue_m
    places = np.unique(np.linspace(0, prediction.depth_m.size - 1, 10).astype(int))
    rows = [
        (
            f"{prediction.depth_m[i]:.3g}",
            *(
                f"{1e3 * one[i]:.3g}"
                for one in (
                    prediction.mae_m,
                    prediction.sigma_m,
                    prediction.noise_m,
                    prediction.misfit_m,
                    stereo,
                    defocus,
                    prediction.bound.total_m,
                )
            ),
            f"{prediction.disparity_px[i]:.1f}",
            ", ".join(f"{one[i]:.1f}" for one in prediction.blur_radius_px),
            f"{prediction.density[i]:.0%}",
        )
        for i in places
    ]
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
    yield html_table(headings, rows, numbers=range(len(headings)))


def _search_part(report: DesignReport) -> Iterator[str]:
    search = report.search
    if search is None:
        return
    yield heading("Cameras for the wish")
    yield grid([figure_block(plot_front(search), "None is smaller, brighter and farther.")])
    rows = [
        (
            one.goal,
            one.sensor,
            one.lens or "any",
            f"{1e3 * one.camera.focal_length_m:.2f}",
            f"{one.camera.f_number:.2f}",
            f"{1e3 * one.camera.optics.baseline_m:.2f}",
            ", ".join(f"{focus:.3g}" for focus in one.camera.optics.focus_distances_m),
            f"{1e3 * one.size_m:.1f}",
            f"{one.light_um2:.3g}",
            f"{one.worst:.2f}",
            f"{one.farthest_m:.2f}",
        )
        for one in (*search.answers, *search.front)
    ]
    headings = (
        "camera",
        "sensor",
        "lens",
        "f (mm)",
        "f/",
        "baseline (mm)",
        "focus (m)",
        "size (mm)",
        "light (µm²)",
        "error / wish",
        "reaches (m)",
    )
    yield html_table(headings, rows, numbers=range(3, len(headings)))


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
    if not wall.is_natural:
        yield words("Sliders change the curve by as much as that of a natural texture.")


def _data(report: DesignReport) -> dict[str, Any]:
    """Numbers for the script."""
    prediction, camera, model = report.prediction, report.prediction.camera, error_model()
    optics = camera.optics
    vergences = [1 / one for one in optics.focus_distances_m]
    nominal = {
        "baseline": optics.baseline_m,
        "focal": camera.focal_length_m,
        "fnumber": camera.f_number,
        "focus": 2 / sum(vergences),
        "noise": prediction.noise_sigma,
    }
    near, far = float(prediction.depth_m[0]), float(prediction.depth_m[-1])
    focus = nominal["focus"]
    ranges = {
        "baseline": (nominal["baseline"] / 4, nominal["baseline"] * 4),
        "focal": (nominal["focal"] / 2.5, nominal["focal"] * 2.5),
        "fnumber": (nominal["fnumber"] / 3, nominal["fnumber"] * 3),
        "focus": (min(0.7 * near, 0.7 * focus), max(2 * far, 1.5 * focus)),
        "noise": (nominal["noise"] / 10, min(nominal["noise"] * 10, 0.5)),
    }
    return {
        "nominal": nominal,
        "ranges": ranges,
        "depth": prediction.depth_m.tolist(),
        "mae": prediction.mae_m.tolist(),
        "measured": [(one.depth_m, one.mae_m) for one in report.measured if one.density > 0],
        "wish": report.wish._asdict(),
        "pitch": optics.pixel_pitch_m,
        "rows": camera.sensor_px[0],
        "cols": camera.sensor_px[1],
        "apart": vergences[0] - vergences[1],
        "wavelength": WAVELENGTH_M,
        "contrast": prediction.wall.contrast / _CONTRAST if prediction.wall.is_natural else 1.0,
        "lens_diameter": camera.lens_diameter_m,
        "lens_length": camera.lens_length_m,
        "clear": CLEAR_SHARE,
        "thickness": THICKNESS_SHARE,
        "model": {
            "ratio": {str(scale): one for scale, one in model.ratio.items()},
            "floor_px": model.floor_px,
            "blur_radius_px": {str(scale): one for scale, one in BLUR_RADIUS_PX.items()},
            "defocus_px2": DEFOCUS_PX2,
            "widest_px": WIDEST_BLUR_PX,
        },
        "table": natural_table().as_json(),
    }
