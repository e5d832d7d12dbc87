"""Report of a design: predictions, answers, tolerances and measurements; and its rig file."""

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from d3s.atomic import write_text
from d3s.lab.design.camera import Camera
from d3s.lab.design.predict import ErrorLimit, Prediction
from d3s.lab.design.search import Answer, Search
from d3s.lab.design.tolerances import Tolerance
from d3s.lab.design.verify import MeasuredErrors
from d3s.rig.rig import RIG_FILE

_LARGEST_ERROR_M = 1.0  # that is told as a number
_ANY = 400  # times the amount of the table: no limit that a builder would meet


@dataclass(frozen=True, kw_only=True)
class DesignReport:
    """Prediction of a camera, with the search that found it, and what was made of it."""

    prediction: Prediction
    wish: ErrorLimit
    frames_per_s: float = math.nan
    search: Search | None = None
    measured: tuple[MeasuredErrors, ...] = ()
    tolerances: tuple[Tolerance, ...] = field(default=())

    @property
    def working_range_m(self) -> tuple[float, float] | None:
        """Longest interval of depths whose error is within the wish."""
        return self.prediction.working_range_m(self.wish)

    def facts(self) -> list[tuple[str, str]]:
        """Names and values of what does not depend on depth."""
        prediction, camera = self.prediction, self.prediction.camera
        optics = camera.optics
        vertical, horizontal = (math.degrees(one) for one in camera.field_of_view_rad)
        rows, cols = camera.view_px
        focus = " and ".join(f"{one:.3g} m" for one in optics.focus_distances_m)
        box = " x ".join(f"{1e3 * side:.1f}" for side in camera.box_m)
        sensors = "one sensor" if camera.sensors == 1 else "two sensors"
        pitch_um = 1e6 * optics.pixel_pitch_m
        return [
            ("baseline", f"{1e3 * optics.baseline_m:.3g} mm"),
            ("lenses", f"{1e3 * camera.focal_length_m:.3g} mm, f/{camera.f_number:.3g}"),
            ("focus", f"{focus}; one lens moved by {1e6 * camera.focus_difference_m:.1f} um"),
            (
                "sensor",
                f"{sensors} of {camera.sensor_px[1]} x {camera.sensor_px[0]} px, {pitch_um:.3g} um",
            ),
            ("views", f"{cols} x {rows} px, {horizontal:.1f} x {vertical:.1f} degrees"),
            ("size", f"{box} mm, width x height x length of lenses and sensor"),
            ("light", f"{camera.light_um2:.3g} um2, pixel area over squared f-number"),
            ("noise", f"{100 * prediction.noise_sigma:.2g} % of full scale"),
            ("sharp within a pixel", _range_words(prediction.depth_of_field_m)),
            ("diffraction", f"spot of {prediction.airy_radius_px:.2g} px radius in focus"),
            ("working range", f"{_range_words(self.working_range_m)} for {self.wish}"),
            (
                "frames per second",
                "unknown"
                if math.isnan(self.frames_per_s)
                else f"{self.frames_per_s:.2g} on this machine",
            ),
        ]

    def as_json(self) -> dict[str, Any]:
        """Numbers as JSON can hold them; None for NaN and infinity."""
        prediction, camera = self.prediction, self.prediction.camera
        arrays = {
            "depth_m": prediction.depth_m,
            "sigma_m": prediction.sigma_m,
            "mae_m": prediction.mae_m,
            "noise_m": prediction.noise_m,
            "misfit_m": prediction.misfit_m,
            "bound_m": prediction.bound.total_m,
            "bound_stereo_m": prediction.bound.stereo_m,
            "bound_defocus_m": prediction.bound.defocus_m,
            "density": prediction.density,
            "disparity_px": prediction.disparity_px,
            "blur_left_px": prediction.blur_radius_px[0],
            "blur_right_px": prediction.blur_radius_px[1],
            "scatter": prediction.scatter,
        }
        search = self.search
        return {
            "camera": camera_json(camera),
            "wish": self.wish._asdict(),
            "working_range_m": self.working_range_m,
            "frames_per_s": _number(self.frames_per_s),
            "noise_sigma": prediction.noise_sigma,
            **{name: [_number(one) for one in values] for name, values in arrays.items()},
            "answers": [] if search is None else [answer_json(one) for one in search.answers],
            "front": [] if search is None else [answer_json(one) for one in search.front],
            "measured": [_plain(asdict(one)) for one in self.measured],
            "tolerances": [_plain(asdict(one)) for one in self.tolerances],
        }


def camera_json(camera: Any) -> dict[str, Any]:
    """Numbers of a camera."""
    optics = camera.optics
    return {
        "name": camera.name,
        "baseline_m": optics.baseline_m,
        "focal_length_m": camera.focal_length_m,
        "f_number": camera.f_number,
        "focus_m": list(optics.focus_distances_m),
        "focus_difference_m": camera.focus_difference_m,
        "pixel_pitch_m": optics.pixel_pitch_m,
        "sensor_px": list(camera.sensor_px),
        "sensors": camera.sensors,
        "view_px": list(camera.view_px),
        "field_of_view_rad": list(camera.field_of_view_rad),
        "box_m": list(camera.box_m),
        "light_um2": camera.light_um2,
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """Numbers of an answer of a search."""
    figures = {name: value for name, value in asdict(answer).items() if name != "camera"}
    return {**figures, "camera": camera_json(answer.camera)}


def tolerance_cells(one: Tolerance) -> tuple[str, ...]:
    """Cells of the row of a tolerance: cause, amount, errors, and the loosest amount."""
    told = (_error_words(error) for error in (one.before_m, one.calibrated_m, one.checked_m))
    loosest = f"{one.loosest:.3g} {one.unit}" if one.loosest > 0 else "none"
    if one.loosest > _ANY * one.amount:
        loosest = "any"
    return one.cause, f"{one.amount:g} {one.unit}", *told, loosest


def _error_words(error_m: float) -> str:
    if math.isnan(error_m):
        return "-"
    # An error as large as the range is no depth.
    return f"{1e3 * error_m:.3g} mm" if error_m < _LARGEST_ERROR_M else "no depth"


def _range_words(ends: tuple[float, float] | None) -> str:
    if ends is None or math.isnan(ends[0]):
        return "none"
    far = "infinity" if math.isinf(ends[1]) else f"{ends[1]:.3g} m"
    return f"{ends[0]:.3g} to {far}"


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: _number(v) if isinstance(v, float) else v for k, v in values.items()}


def design_text(camera: Camera, remarks: Sequence[str] = ()) -> str:
    """Text of a rig file of a camera, with remarks as comments; `Rig.load` reads it."""
    lines = [f"# {camera.name}, designed by d3s design."]
    rows, cols = camera.sensor_px
    box = " x ".join(f"{1e3 * side:.2f}" for side in camera.box_m)
    facts = [
        f"{camera.sensors} sensor{'s' if camera.sensors > 1 else ''} of {cols} x {rows} px; "
        f"lenses of {1e3 * camera.focal_length_m:.2f} mm at f/{camera.f_number:.2f}; one of them "
        f"moved by {1e6 * camera.focus_difference_m:.1f} um for the focus difference; lenses and "
        f"sensor take {box} mm.",
        *remarks,
    ]
    for fact in facts:
        lines += textwrap.wrap(fact, 98, initial_indent="# ", subsequent_indent="# ")
    values = camera.rig.model_dump(exclude_none=True)
    return "\n".join(lines) + "\n\n" + RIG_FILE.format(values)


def save_design(
    path: str | os.PathLike[str],
    camera: Camera,
    remarks: Sequence[str] = (),
    *,
    overwrite: bool = False,
) -> None:
    """Write the rig file of a design, completely or not at all.

    Parameters
    ----------
    path
        File to write.
    camera
        Camera on paper.
    remarks
        Sentences for the top of the file.
    overwrite
        Replace a file that exists.

    Raises
    ------
    OutputError
        If the file cannot be written, or has other content and `overwrite` is not set.
    """
    write_text(path, design_text(camera, remarks), overwrite=overwrite)
