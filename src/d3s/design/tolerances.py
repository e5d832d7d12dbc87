"""Tolerances of a camera: what mounting errors and warmth do to depth, and how much is allowed.

Each cause is a number with a unit. Before calibration it makes an error of depth that is the same
in every frame. A calibration measures the geometry and takes that away; what remains is a blur that
is not as designed. Warmth acts after the calibration; `d3s check` with a wall at a known distance
takes the shift of the views away.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from d3s.design.camera import Camera
from d3s.design.error_model import error_model
from d3s.design.predict import WAVELENGTH_M, ErrorWish, Prediction
from d3s.design.table import LARGEST_DIFFERENCE_PX, defocus_slope_px, natural_table
from d3s.design.window_fit import window_errors
from d3s.estimate.candidates import WIDEST_BLUR_PX
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.options import JointOptions
from d3s.optics.psf import optical_cutoff
from d3s.types import FloatArray

EXPANSION_PER_K = {"aluminium": 23.6e-6, "steel": 11.7e-6, "printed plastic": 74e-6}
"""Linear thermal expansion: alloy 6061, steel A36, and ABS."""
WARMTH_K = 10.0
"""Warmth of the table, in kelvins."""

_SILICON_PER_K = 2.6e-6
_CALIBRATED_PX = 0.01  # disparity that calibrations leave at least, as `Calibration` says
_RULER_M = 1e-3  # standard deviation of the distance of a wall, as `d3s check` assumes
_CONTRAST = 0.15  # of the natural texture of the table
_ROUNDS = 40  # of the bisection
_SIDE_PX, _DEPTHS = 256, 6  # of the pictures and depths at which an unknown blur is computed


@dataclass(frozen=True)
class Tolerance:
    """Effect of one cause on depth, over the reach of a prediction.

    Errors are at the depth where they are largest compared with the wish.
    """

    cause: str
    unit: str
    amount: float  # of the cause, in its unit
    before_m: float  # error before calibration; NaN for what happens after it
    calibrated_m: float  # error after calibration
    checked_m: float  # error after `d3s check` with a wall
    loosest: float  # largest amount that keeps the wish, in its unit; 0 if none does


_Effect = Callable[[float], FloatArray]


@dataclass(frozen=True)
class _Cause:
    """Cause with its effects: errors of depth that are alike in every frame, in metres."""

    name: str
    unit: str
    amount: float
    shift_m: _Effect  # of the geometry, which a calibration measures
    focus: Callable[[float], tuple[float, float]]  # change of both vergences in focus, in dioptres
    is_later: bool = False  # happens after the calibration
    is_zeroed: _Effect | None = None  # what a check leaves of the shift; nothing if None


def tolerances(prediction: Prediction, wish: ErrorWish) -> list[Tolerance]:
    """Effects of mounting errors and of warmth, and the loosest values that keep a wish.

    Parameters
    ----------
    prediction
        Result of `predict`.
    wish
        Largest error.
    """
    return [_tolerance(cause, prediction, wish) for cause in _causes(prediction)]


def _causes(prediction: Prediction) -> list[_Cause]:
    camera, depth = prediction.camera, prediction.depth_m
    optics = camera.optics
    distance, pitch, baseline = optics.sensor_distance_m, optics.pixel_pitch_m, optics.baseline_m
    per_px = depth**2 / (optics.focal_length_px * baseline)
    side_m = 0.5 * camera.view_px[1] * pitch
    um = 1e-6

    def both(change: float) -> tuple[float, float]:
        return change, change

    causes = [
        _Cause(
            "lens beside its place, along the baseline",
            "um",
            50.0,
            lambda x: per_px * x * um / pitch,
            lambda x: (0.0, 0.0),
        ),
        _Cause(
            "baseline longer than designed",
            "um",
            50.0,
            lambda x: depth * x * um / baseline,
            lambda x: (0.0, 0.0),
        ),
        _Cause(
            "sensor farther from the lenses",
            "um",
            20.0,
            lambda x: depth * x * um / distance,
            lambda x: both(x * um / distance**2),
        ),
        _Cause(
            "focus difference missed",
            "um",
            5.0,
            lambda x: 0.0 * depth,
            lambda x: (0.5 * x * um / distance**2, -0.5 * x * um / distance**2),
        ),
        _Cause(
            "sensor tilted, at the side of the view",
            "degrees",
            0.5,
            lambda x: 0.0 * depth,
            lambda x: both(side_m * np.radians(x) / distance**2),
        ),
    ]
    if camera.sensors == 2:
        rows_px = 0.5 * camera.view_px[0]
        causes.append(
            _Cause(
                "sensors rolled against each other, at the top of the view",
                "degrees",
                0.1,
                lambda x: per_px * rows_px * np.radians(x),
                lambda x: (0.0, 0.0),
            )
        )
    return causes + [_warmth(prediction, material) for material in EXPANSION_PER_K]


def _warmth(prediction: Prediction, material: str) -> _Cause:
    """Warmth of a camera whose plate and housing are of one material.

    On one sensor, both views move apart with the lens plate, and the sensor hardly grows. Two
    sensors move with their lenses. The sensor distance grows, and the focus moves.
    """
    camera, depth = prediction.camera, prediction.depth_m
    optics, per_k = camera.optics, EXPANSION_PER_K[material]
    per_px = depth**2 / (optics.focal_length_px * optics.baseline_m)
    offset_px = optics.baseline_m * (per_k - _SILICON_PER_K) / optics.pixel_pitch_m
    apart_m = per_px * offset_px if camera.sensors == 1 else 0.0 * depth
    scale_m = depth * per_k * (1 if camera.sensors == 1 else 2)
    # The wall stands at the farthest depth, where its distance tells most.
    known_m = depth**2 / depth[-1] ** 2 * _RULER_M
    return _Cause(
        f"warmth, {material}",
        "K",
        WARMTH_K,
        lambda x: x * (apart_m + scale_m),
        lambda x: (x * per_k / optics.sensor_distance_m,) * 2,
        is_later=True,
        is_zeroed=lambda x: np.minimum(np.hypot(known_m, x * scale_m), x * (apart_m + scale_m)),
    )


def _tolerance(cause: _Cause, prediction: Prediction, wish: ErrorWish) -> Tolerance:
    depth = prediction.depth_m
    limit = wish.limit_m(depth)
    optics = prediction.camera.optics
    left_m = depth**2 / (optics.focal_length_px * optics.baseline_m) * _CALIBRATED_PX

    def errors_m(amount: float, shift_m: FloatArray) -> FloatArray:
        blurred = prediction.mae_m * blur_ratio(prediction, cause.focus(amount))
        return np.sqrt(blurred**2 + shift_m**2 + left_m**2)

    def calibrated(amount: float) -> FloatArray:
        return errors_m(amount, cause.shift_m(amount) if cause.is_later else 0.0 * depth)

    def at_worst(errors: FloatArray) -> float:
        return float(errors[int(np.argmax(errors / limit))])

    zeroed = cause.is_zeroed(cause.amount) if cause.is_zeroed else 0.0 * depth
    unknown = np.hypot(
        cause.shift_m(cause.amount), unknown_blur_m(prediction, cause.focus(cause.amount))
    )
    before = errors_m(cause.amount, unknown)
    return Tolerance(
        cause=cause.name,
        unit=cause.unit,
        amount=cause.amount,
        before_m=float("nan") if cause.is_later else at_worst(before),
        calibrated_m=at_worst(calibrated(cause.amount)),
        checked_m=at_worst(errors_m(cause.amount, zeroed)),
        loosest=_loosest(lambda x: bool(np.all(calibrated(x) <= limit)), cause.amount),
    )


def _loosest(is_met: Callable[[float], bool], start: float) -> float:
    """Largest amount that meets a condition, at most a thousand times the start."""
    if not is_met(0.0):
        return 0.0
    low, high = 0.0, start
    while is_met(high):
        low, high = high, 2 * high
        if high > 1e3 * start:
            return low
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return low


def blur_ratio(prediction: Prediction, change_dpt: tuple[float, float]) -> FloatArray:
    """Error at each depth with the focus moved, over that as designed.

    Parameters
    ----------
    prediction
        Result of `predict`.
    change_dpt
        Change of the vergence in focus of the left and the right lens. Both signs are tried, and
        the larger error counts.
    """
    if change_dpt == (0.0, 0.0):
        return np.ones_like(prediction.depth_m)
    designed = _errors_px(prediction, (0.0, 0.0))
    moved = [
        _errors_px(prediction, (sign * change_dpt[0], sign * change_dpt[1])) for sign in (1, -1)
    ]
    return np.asarray(np.maximum(*moved) / designed)


def unknown_blur_m(prediction: Prediction, change_dpt: tuple[float, float]) -> FloatArray:
    """Error at each depth by a focus that has moved without the estimator knowing it, in metres.

    Parameters
    ----------
    prediction
        Result of `predict`.
    change_dpt
        Change of the vergence in focus of the left and the right lens.
    """
    if change_dpt == (0.0, 0.0):
        return np.zeros_like(prediction.depth_m)
    optics, wall = prediction.camera.optics, prediction.wall
    moved = optics.replace(
        optical_power_left_dpt=optics.optical_power_left_dpt + change_dpt[0],
        optical_power_right_dpt=optics.optical_power_right_dpt + change_dpt[1],
    )
    plan = make_plan(optics, JointOptions(), (_SIDE_PX, _SIDE_PX))
    places = np.unique(np.linspace(0, prediction.depth_m.size - 1, _DEPTHS).astype(int))
    depths = prediction.depth_m[places]
    found = []
    for depth in depths:
        picture = wall.picture(optics, float(depth), _SIDE_PX)
        errors = window_errors(picture, float(depth), plan, lenses=moved).means
        found.append(float(errors.misfit_px))
    per_px = prediction.depth_m**2 / (optics.focal_length_px * optics.baseline_m)
    return np.asarray(per_px * np.interp(prediction.depth_m, depths, found))


def _errors_px(prediction: Prediction, change_dpt: tuple[float, float]) -> FloatArray:
    """Errors of the disparity on natural texture, with the focus moved."""
    camera: Camera = prediction.camera
    optics = camera.optics
    per_dpt = optics.focal_length_px * optics.aperture_radius_m
    radii = tuple(
        optics.blur_radius_px(prediction.depth_m, lens) - per_dpt * change_dpt[lens]
        for lens in (0, 1)
    )
    apart = abs(
        optics.optical_power_left_dpt
        + change_dpt[0]
        - optics.optical_power_right_dpt
        - change_dpt[1]
    )
    as_designed = abs(optics.optical_power_left_dpt - optics.optical_power_right_dpt)
    slope = 0.0
    if as_designed > 0:
        slope = defocus_slope_px(optics) * apart / as_designed
    contrast = prediction.wall.contrast / _CONTRAST if prediction.wall.is_natural else 1.0
    cutoff = optical_cutoff(optics.lens(0), WAVELENGTH_M)
    errors = natural_table().at((radii[0], radii[1]), cutoff, slope, contrast)
    sigma = error_model().sigma_px(errors, prediction.noise_sigma)
    # Beyond the table nothing is known, and little would be found.
    widest = np.maximum(np.abs(radii[0]), np.abs(radii[1]))
    return np.where(
        (2 * widest > WIDEST_BLUR_PX + 2) | (np.abs(radii[0] - radii[1]) > LARGEST_DIFFERENCE_PX),
        1e3 * sigma,
        sigma,
    )
