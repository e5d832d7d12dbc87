"""Tolerances of a camera: what mounting errors and warmth do to depth, and how much is allowed.

Each cause is a number with a unit, and acts in proportion to it: it moves the views against each
other along rows or columns, changes their scale, or moves the focus. Before calibration that makes
an error of depth. A calibration measures the geometry and the focus and takes it away; what remains
is a blur that is not as designed. Warmth acts after the calibration; `d3s check` with a wall at a
known distance takes the shift of the views away.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s.errors import DesignError, RigError
from d3s.estimate.candidates import WIDEST_BLUR_PX
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.design.error_model import (
    LARGEST_DIFFERENCE_PX,
    MAE_PER_SIGMA,
    defocus_slope_px,
    error_model,
    natural_table,
)
from d3s.lab.design.limits import WAVELENGTH_M
from d3s.lab.design.predict import ErrorLimit, Prediction
from d3s.lab.design.wall import NATURAL_CONTRAST
from d3s.lab.design.window_fit import window_errors
from d3s.optics.psf import optical_cutoff
from d3s.rig import Optics
from d3s.types import FloatArray

EXPANSION_PER_K = {"aluminium": 23.6e-6, "steel": 11.7e-6, "printed plastic": 74e-6}
"""Linear thermal expansion: alloy 6061, steel A36, and ABS."""
WARMTH_K = 10.0
"""Warmth of the table, in kelvins."""
ACHROMAT_CURVATURE = 1.18
"""Shift of the image at the squared tangent of a field angle, over the focal length.

It is that of the traced achromat of `d3s.lab.twin.lens_errors`, the mean of sagittal and
tangential (0.76 and 1.60). Thin lenses with a stop at the lens have about the same, whatever their
glass.
"""

_SILICON_PER_K = 2.6e-6
_CALIBRATED_PX = 0.01  # disparity that calibrations leave at least, as `Calibration` says
_RULER_M = 1e-3  # standard deviation of the distance of a wall, as `d3s check` assumes
CHANGES = (0.5, 0.7, 1.4, 2.0)
"""Factors of `changed_errors_m`."""
_CHANGED = {
    "baseline": "baseline_m",
    "focal length": "focal_length_m",
    "f-number": "f_number",
    "focus": "focus_m",
}
_MOST_AMOUNTS = 512  # of the table, up to which the loosest is looked for
_SIDE_PX, _DEPTHS = 256, 6  # of the pictures and depths at which errors before calibration are told
_MOST_ROWS_PX = 2.0  # between the views, beyond which windows do not match


@dataclass(frozen=True)
class Tolerance:
    """Effect of one cause on depth, over the reach of a prediction.

    Errors are at the depth where they are largest compared with the wish; infinite if no depth is
    found, or nothing is known of so much blur.
    """

    cause: str
    unit: str
    amount: float  # of the cause, in its unit
    before_m: float  # error before calibration; NaN for what happens after it
    calibrated_m: float  # error after calibration
    checked_m: float  # error after `d3s check` with a wall
    loosest: float  # largest amount that keeps the wish, in its unit; 0 if none does


class ErrorCause(NamedTuple):
    """Cause of an error of depth, and what one unit of it changes of views and focus."""

    name: str
    unit: str
    amount: float  # of the table
    offset_px: float = 0.0  # of the disparity
    rows_px: float = 0.0  # by which the right view is lower
    scale: float = 0.0  # of all disparities, as a share
    focus_dpt: tuple[float, float] = (0.0, 0.0)  # of the vergences in focus, left and right
    is_later: bool = False  # happens after the calibration
    has_sign: bool = False  # acts in one direction only

    def effects(self, amount: float) -> list["ErrorCause"]:
        """Changes by an amount, in both directions if it may have either."""
        left, right = self.focus_dpt
        return [
            self._replace(
                offset_px=times * self.offset_px,
                rows_px=times * self.rows_px,
                scale=times * self.scale,
                focus_dpt=(times * left, times * right),
            )
            for times in ((amount,) if self.has_sign else (amount, -amount))
        ]


def tolerances(prediction: Prediction, wish: ErrorLimit) -> list[Tolerance]:
    """Effects of mounting errors and of warmth, and the loosest values that keep a wish.

    Parameters
    ----------
    prediction
        Result of `predict`.
    wish
        Largest error.
    """
    return [_tolerance(cause, prediction, wish) for cause in causes(prediction.camera)]


def causes(camera: Camera) -> list[ErrorCause]:
    """Mounting errors and warmth that a camera may have.

    With warmth, on one sensor both views move apart with the lens plate, and the sensor hardly
    grows. Two sensors move with their lenses. The sensor distance grows, and the focus moves.
    """
    optics, is_one = camera.optics, camera.sensors == 1
    distance, baseline, pitch = optics.sensor_distance_m, optics.baseline_m, optics.pixel_pitch_m
    um, degree = 1e-6, np.radians(1.0)
    top_px, side_px = (0.5 * size for size in camera.view_px)
    side_m, dpt = side_px * pitch, 1 / distance**2  # for each metre of the sensor distance
    curved = ACHROMAT_CURVATURE * (side_m / distance) ** 2 / distance
    roll = ErrorCause(
        "sensors rolled against each other, at the top", "degrees", 0.1, top_px * degree
    )
    if is_one:
        rows_px = baseline / pitch * degree
        roll = ErrorCause("lens plate rolled against the sensor", "degrees", 0.02, rows_px=rows_px)
    tilt = (side_m * degree * dpt,) * 2
    return [
        ErrorCause("lens beside its place, along the baseline", "um", 50.0, um / pitch),
        ErrorCause("lens beside its place, across the baseline", "um", 1.0, rows_px=um / pitch),
        roll,
        ErrorCause("baseline longer than designed", "um", 50.0, scale=um / baseline),
        ErrorCause("one view larger, at the side", "%", 0.1, 0.01 * side_px),
        ErrorCause(
            "sensor farther from the lenses",
            "um",
            20.0,
            scale=um / distance,
            focus_dpt=(um * dpt, um * dpt),
        ),
        ErrorCause(
            "focus difference missed", "um", 5.0, focus_dpt=(0.5 * um * dpt, -0.5 * um * dpt)
        ),
        ErrorCause("sensor tilted, at the side", "degrees", 0.5, focus_dpt=tilt),
        ErrorCause(
            "field curvature, at the side", "achromat", 1.0, focus_dpt=(curved,) * 2, has_sign=True
        ),
        *(
            ErrorCause(
                f"warmth, {material}",
                "K",
                WARMTH_K,
                offset_px=baseline * (per_k - _SILICON_PER_K) / pitch if is_one else 0.0,
                scale=per_k * camera.sensors,
                focus_dpt=(per_k / distance,) * 2,
                is_later=True,
            )
            for material, per_k in EXPANSION_PER_K.items()
        ),
    ]


def _tolerance(cause: ErrorCause, prediction: Prediction, wish: ErrorLimit) -> Tolerance:
    from scipy.optimize import bisect  # here, to keep `import d3s` fast

    depth, amount = prediction.depth_m, cause.amount

    def at_worst(errors: FloatArray, depth_m: FloatArray = depth) -> float:
        return float(errors[int(np.argmax(errors / wish.limit_m(depth_m)))])

    def excess(amount: float) -> float:
        errors = calibrated_error_m(prediction, cause, amount)
        return float(np.minimum(np.max(errors / wish.limit_m(depth)) - 1, 1))

    before = float("nan")
    if not cause.is_later:
        few = depth[np.unique(np.linspace(0, depth.size - 1, _DEPTHS).astype(int))]
        left_m = _CALIBRATED_PX * few**2 / _px_m(prediction.camera.optics)
        before = at_worst(np.hypot(error_before_m(prediction, cause, amount, few), left_m), few)
    loosest = amount if excess(0.0) <= 0 else 0.0
    while loosest and loosest < _MOST_AMOUNTS * amount and excess(loosest) <= 0:
        loosest *= 2
    if loosest and excess(loosest) > 0:
        loosest = bisect(excess, 0.0, loosest, xtol=1e-6 * amount)
    return Tolerance(
        cause=cause.name,
        unit=cause.unit,
        amount=amount,
        before_m=before,
        calibrated_m=at_worst(calibrated_error_m(prediction, cause, amount)),
        checked_m=at_worst(calibrated_error_m(prediction, cause, amount, is_checked=True)),
        loosest=loosest,
    )


def calibrated_error_m(
    prediction: Prediction,
    cause: ErrorCause,
    amount: float,
    *,
    left_px: float = _CALIBRATED_PX,
    is_checked: bool = False,
) -> FloatArray:
    """Mean absolute error at each depth after a calibration, in metres.

    What happens after the calibration counts in full, unless `d3s check` with a wall has seen it.
    The calibration leaves `left_px` of disparity.
    """
    depth, optics, effects = prediction.depth_m, prediction.camera.optics, cause.effects(amount)

    def shift_m(effects: list[ErrorCause]) -> FloatArray:
        """Error by disparities that are off; the largest of the effects."""
        seen = [_seen_m(depth, optics, one) for one in effects]
        return np.asarray(np.max(np.abs(seen - depth), axis=0))

    shifted_m = shift_m(effects) if cause.is_later else 0.0
    if cause.is_later and is_checked:
        # The wall stands at the farthest depth, where its distance tells most.
        known_m = depth**2 / depth[-1] ** 2 * _RULER_M
        scaled_m = shift_m([one._replace(offset_px=0.0) for one in effects])
        shifted_m = np.minimum(np.hypot(known_m, scaled_m), shifted_m)
    blurred = [_errors_px(prediction, _refocused(optics, one.focus_dpt)) for one in effects]
    blurred_m = prediction.mae_m * np.max(blurred, axis=0) / _errors_px(prediction, optics)
    left_m = left_px * depth**2 / _px_m(optics)
    return np.asarray(np.sqrt(blurred_m**2 + shifted_m**2 + left_m**2))


def _px_m(optics: Optics) -> float:
    """Disparity times depth, in pixels times metres."""
    return optics.focal_length_px * optics.baseline_m


def _seen_m(
    depth_m: ArrayLike, optics: Optics, effect: ErrorCause, more_px: FloatArray | float = 0.0
) -> FloatArray:
    """Depth that disparities which are off stand for; infinite from infinity on."""
    infinity_px = optics.disparity_offset_px
    parallax = optics.disparity_px(depth_m) - infinity_px
    seen = optics.depth_m((1 + effect.scale) * parallax + effect.offset_px + more_px + infinity_px)
    return np.where(np.isnan(seen), np.inf, seen)


def error_before_m(
    prediction: Prediction, cause: ErrorCause, amount: float, depths_m: FloatArray
) -> FloatArray:
    """Mean absolute error at depths of an estimator that takes the camera as designed, in metres.

    It is infinite where no depth is found.
    """
    from scipy.special import erf  # here, to keep `import d3s` fast

    optics = prediction.camera.optics
    plan = make_plan(optics, JointOptions(), (_SIDE_PX, _SIDE_PX))

    def error_m(effect: ErrorCause, depth_m: float) -> float:
        moved = _refocused(optics, effect.focus_dpt)
        if abs(effect.rows_px) > _MOST_ROWS_PX or _is_beyond(moved, depth_m):
            return float("inf")
        picture = prediction.wall.picture(optics, depth_m, _SIDE_PX)
        windows = window_errors(picture, depth_m, plan, lenses=moved, rows_px=effect.rows_px)
        bias_m = _seen_m(depth_m, optics, effect, windows.misfit_px) - depth_m
        by_noise = windows.means._replace(misfit_px=0.0)
        sigma_px = error_model().sigma_px(by_noise, prediction.noise_sigma)
        sigma_m = float(depth_m**2 / _px_m(optics) * sigma_px)
        share = np.abs(bias_m) / sigma_m
        by_both_m = sigma_m * MAE_PER_SIGMA * np.exp(-0.5 * share**2)
        return float(np.mean(by_both_m + np.abs(bias_m) * erf(share / np.sqrt(2))))

    effects = cause.effects(amount)
    found = [[error_m(one, float(depth)) for depth in depths_m] for one in effects]
    return np.asarray(np.max(found, axis=0))


def _refocused(optics: Optics, change_dpt: tuple[float, float]) -> Optics:
    """Optics whose lenses focus elsewhere, by a change of vergence each."""
    return optics.replace(
        optical_power_left_dpt=optics.optical_power_left_dpt + change_dpt[0],
        optical_power_right_dpt=optics.optical_power_right_dpt + change_dpt[1],
    )


def _errors_px(
    prediction: Prediction, optics: Optics, noise_sigma: float | None = None
) -> FloatArray:
    """Errors of the disparity on natural texture; infinite beyond the table."""
    left, right = (optics.blur_radius_px(prediction.depth_m, lens) for lens in (0, 1))
    contrast = prediction.wall.contrast / NATURAL_CONTRAST if prediction.wall.is_natural else 1.0
    cutoff = optical_cutoff(optics.lens(0), WAVELENGTH_M)
    errors = natural_table().at((left, right), cutoff, defocus_slope_px(optics), contrast)
    sigma = error_model().sigma_px(errors, noise_sigma or prediction.noise_sigma)
    return np.where(_is_beyond(optics, prediction.depth_m), np.inf, sigma)


def changed_errors_m(prediction: Prediction) -> dict[str, dict[float, FloatArray]]:
    """Mean absolute error at each depth with one number of the camera times a factor.

    By the title of the number and the factor; cameras that cannot be are left out. The prediction
    is scaled by what the table of the natural texture says of the change.
    """
    camera = prediction.camera
    designed = camera.optics
    numbers: dict[str, Any] = {
        "focal_length_m": camera.focal_length_m,
        "f_number": camera.f_number,
        "baseline_m": designed.baseline_m,
        "focus_m": np.array(designed.focus_distances_m),
    }
    px = _errors_px(prediction, designed)
    per_depth = designed.focal_length_px * designed.baseline_m / px * prediction.mae_m
    found: dict[str, dict[float, FloatArray]] = {}
    for title, name in _CHANGED.items():
        found[title] = {}
        for factor in CHANGES:
            with suppress(DesignError, RigError):
                new = Camera.of_lenses(
                    **{**numbers, name: factor * numbers[name]},
                    pixel_pitch_m=designed.pixel_pitch_m,
                    sensor_px=camera.sensor_px,
                ).optics
                slope = new.focal_length_px * new.baseline_m
                found[title][factor] = per_depth * _errors_px(prediction, new) / slope
    sigma, mae_m = prediction.noise_sigma, prediction.mae_m
    noisy = {one: mae_m * _errors_px(prediction, designed, one * sigma) / px for one in CHANGES}
    return {**found, "noise": noisy}


def _is_beyond(optics: Optics, depth_m: ArrayLike) -> NDArray[np.bool_]:
    """Whether views are blurred beyond the table."""
    left, right = (optics.blur_radius_px(depth_m, lens) for lens in (0, 1))
    widest = np.maximum(np.abs(left), np.abs(right))
    is_wide = 2 * widest > WIDEST_BLUR_PX + 2
    return np.asarray(is_wide | (np.abs(left - right) > LARGEST_DIFFERENCE_PX))
