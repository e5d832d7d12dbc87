"""Report of a design: predictions, answers, tolerances and measurements; and its rig file."""

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
    tolerances: tuple[Tolerance, ...] = ()

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
        prediction, search = self.prediction, self.search
        bound, blur_px = prediction.bound, prediction.blur_radius_px
        names = ("depth_m", "sigma_m", "mae_m", "noise_m", "misfit_m", "density", "disparity_px")
        values = {
            "camera": camera_json(prediction.camera),
            "wish": self.wish._asdict(),
            "working_range_m": self.working_range_m,
            "frames_per_s": self.frames_per_s,
            "noise_sigma": prediction.noise_sigma,
            **{name: getattr(prediction, name) for name in (*names, "scatter")},
            "bound_m": bound.total_m,
            "bound_stereo_m": bound.stereo_m,
            "bound_defocus_m": bound.defocus_m,
            "blur_left_px": blur_px[0],
            "blur_right_px": blur_px[1],
            "answers": [answer_json(one) for one in search.answers] if search else [],
            "front": [answer_json(one) for one in search.front] if search else [],
            "measured": [asdict(one) for one in self.measured],
            "tolerances": [asdict(one) for one in self.tolerances],
        }
        return {name: _plain(value) for name, value in values.items()}


def camera_json(camera: Camera) -> dict[str, Any]:
    """Numbers of a camera."""
    optics = camera.optics
    names = (
        *("name", "focal_length_m", "f_number", "focus_difference_m", "sensor_px", "sensors"),
        *("view_px", "field_of_view_rad", "box_m", "light_um2"),
    )
    return {
        "baseline_m": optics.baseline_m,
        "focus_m": optics.focus_distances_m,
        "pixel_pitch_m": optics.pixel_pitch_m,
        **{name: getattr(camera, name) for name in names},
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """Numbers of an answer of a search."""
    return {**vars(answer), "camera": camera_json(answer.camera)}


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


def _plain(value: Any) -> Any:
    """Value as JSON can hold it."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def save_design(
    path: str | os.PathLike[str],
    camera: Camera,
    remarks: Sequence[str] = (),
    *,
    overwrite: bool = False,
) -> None:
    """Write the rig file of a design, with remarks as comments; `Rig.load` reads it.

    A file that exists is replaced only if told to.
    """
    rows, cols = camera.sensor_px
    box = " x ".join(f"{1e3 * side:.2f}" for side in camera.box_m)
    facts = (
        f"{camera.name}, designed by d3s design.",
        f"{camera.sensors} sensor{'s' if camera.sensors > 1 else ''} of {cols} x {rows} px; "
        f"lenses of {1e3 * camera.focal_length_m:.2f} mm at f/{camera.f_number:.2f}; one of them "
        f"moved by {1e6 * camera.focus_difference_m:.1f} um for the focus difference; lenses and "
        f"sensor take {box} mm.",
        *remarks,
    )
    head = "\n".join(textwrap.indent(textwrap.fill(one, 96), "# ") for one in facts)
    text = RIG_FILE.format(camera.rig.model_dump(exclude_none=True))
    write_text(path, f"{head}\n\n{text}", overwrite=overwrite)
