"""Tolerances on the twin: cameras with one mounting error each, measured and predicted.

Each error is put into the twin as it happens, a lens shifted, a sensor farther away, a plate that
is warm, and `joint` measures planes: once with the rig as designed, once with a rig that knows the
focus and the geometry. For what grows towards the side or the top of the view, the view is there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from d3s.estimate.methods import estimate_quietly
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.design.predict import Prediction, predict
from d3s.lab.design.tolerances import (
    EXPANSION_PER_K,
    ErrorCause,
    calibrated_error_m,
    causes,
    error_before_m,
)
from d3s.lab.evaluate.truth import within_frames
from d3s.lab.twin.geometry import PERFECT, Mount
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane
from d3s.lab.twin.sensor import expose_pair
from d3s.rig import Optics

DEPTHS_M = (0.4, 0.8, 1.6)
AMOUNTS = {
    "lens beside its place, along the baseline": 1.0,
    "field curvature, at the side": 0.25,
}
"""Amounts that leave a depth, where those of the table do not."""
_COMMON_PX, _BORDER_PX = 280, 31
_SEEDS = (0, 1)  # of texture and noise
_SILICON_PER_K = 2.6e-6
# Shift of the image of the traced achromat over f tan²: across and along the radius.
_SAGITTAL, _TANGENTIAL = 0.765, 1.60


@dataclass(frozen=True)
class Mounted:
    """Camera of the twin with a mounting error, and a view of it."""

    optics: Optics
    known: Optics  # what a calibration would find
    right: Mount = PERFECT
    lens: LensErrors = PERFECT_LENS
    place_px: tuple[int, int] = (0, 0)  # middle of what is judged, below and right of the axis


def cameras() -> dict[str, Camera]:
    """The prototype on one sensor, and a camera of two sensors."""
    return {
        "prototype": Camera.paper_prototype(),
        "two sensors": Camera.of_lenses(
            focal_length_m=8e-3,
            f_number=4.0,
            baseline_m=20e-3,
            focus_m=(0.7, 0.76),
            pixel_pitch_m=3e-6,
            sensor_px=(800, 1280),
        ),
    }


def mounted(camera: Camera, cause: ErrorCause, amount: float) -> Mounted:
    """Camera with an amount of a cause, as it is built."""
    optics = camera.optics
    pitch, distance = optics.pixel_pitch_m, optics.sensor_distance_m
    um, radians = 1e-6 * amount, np.radians(amount)
    top, side = (size // 2 for size in camera.view_px)
    good = Mounted(optics, optics)

    def both(**changes: float) -> Mounted:
        changed = optics.replace(**changes)
        return Mounted(changed, changed)

    def refocused(left: float, right: float) -> Optics:
        return optics.replace(
            optical_power_left_dpt=optics.optical_power_left_dpt + left,
            optical_power_right_dpt=optics.optical_power_right_dpt + right,
        )

    def tilted() -> Mounted:
        dpt = side * pitch * np.tan(radians) / distance**2
        lens = LensErrors(field_radius_px=side, focus_tilt_x_dpt=dpt)
        return Mounted(optics, refocused(dpt, dpt), lens=lens, place_px=(0, side))

    def curved() -> Mounted:
        dpt = amount * (side * pitch / distance) ** 2 / distance
        across, along = _SAGITTAL * dpt, _TANGENTIAL * dpt
        lens = LensErrors(
            field_radius_px=side, focus_sagittal_dpt=across, focus_tangential_dpt=along
        )
        mean = (across + along) / 2
        return Mounted(optics, refocused(mean, mean), lens=lens, place_px=(0, side))

    def warm() -> Mounted:
        per_k = EXPANSION_PER_K[cause.name.removeprefix("warmth, ")]
        apart = amount * (per_k - _SILICON_PER_K) * optics.baseline_m / pitch
        return Mounted(
            optics.replace(
                baseline_m=optics.baseline_m * (1 + amount * per_k),
                sensor_distance_m=distance * (1 + amount * per_k),
            ),
            optics,
            right=Mount(shift_x_px=-apart if camera.sensors == 1 else 0.0),
        )

    shift_px = um / pitch
    built: dict[str, Callable[[], Mounted]] = {
        "lens beside its place, along": lambda: replace(good, right=Mount(shift_x_px=shift_px)),
        "lens beside its place, across": lambda: replace(good, right=Mount(shift_y_px=shift_px)),
        "lens plate rolled": lambda: replace(
            good, right=Mount(shift_y_px=optics.baseline_m / pitch * np.sin(radians))
        ),
        "sensors rolled": lambda: replace(good, right=Mount(roll_rad=radians), place_px=(top, 0)),
        "baseline longer": lambda: both(baseline_m=optics.baseline_m + um),
        "one view larger": lambda: replace(
            good, right=Mount(scale=1 + 0.01 * amount), place_px=(0, side)
        ),
        "sensor farther": lambda: both(sensor_distance_m=distance + um),
        "focus difference": lambda: Mounted(
            known := refocused(0.5 * um / distance**2, -0.5 * um / distance**2), known
        ),
        "sensor tilted": tilted,
        "field curvature": curved,
        "warmth": warm,
    }
    return next(make() for name, make in built.items() if cause.name.startswith(name))


def measured_m(twin: Mounted, rig_optics: Optics, depth_m: float, prediction: Prediction) -> float:
    """Mean absolute error of `joint` with a rig, on planes that the twin sees."""
    camera = prediction.camera
    down, right = twin.place_px
    disparity = int(np.ceil(float(camera.optics.disparity_px(depth_m))))
    cols = _COMMON_PX + disparity
    rig = camera.rig.replace(optics=rig_optics)
    options = JointOptions(depth_range_m=(0.2, 4.0))
    has_errors = twin.lens != PERFECT_LENS
    # Errors of a lens have a centre of their own; mounting errors need the whole field.
    lens = twin.lens.replace(centre_x_px=-float(right)) if has_errors else twin.lens
    if has_errors:
        down = right = 0
    elif right:
        right += disparity // 2  # the part that both views share is left of the middle, at right
    shape = _COMMON_PX + 2 * down, cols + 2 * right
    errors = []
    for seed in _SEEDS:
        plane = Plane(
            depth_m=depth_m, texture=prediction.wall.surface(camera.optics, depth_m, seed)
        )
        clean = simulate(
            plane,
            camera.rig.replace(optics=twin.optics),
            shape=shape,
            psf="diffraction",
            mounts=(PERFECT, twin.right),
            lenses=(lens, lens),
        )
        cut = (slice(2 * down, None), slice(2 * right, None))
        left, other = expose_pair(
            clean.left[cut], clean.right[cut], prediction.light.sensor(camera), (seed, 7)
        )
        found = estimate_quietly(left, other, rig, options=options)
        kept = within_frames(clean.disparity_px[cut], _BORDER_PX) & found.valid
        if kept.mean() < 0.2:
            return float("nan")
        errors.append(np.abs(found.depth_m[kept] - depth_m).mean())
    return float(np.mean(errors))


def tolerance_figures() -> dict[str, Any]:
    """Errors with the rig as designed and with one that knows, measured and predicted, in mm."""
    rows = []
    for name, camera in cameras().items():
        prediction = predict(camera, depths_m=DEPTHS_M)
        for cause in causes(camera):
            if cause.name.startswith("warmth") and "aluminium" not in cause.name:
                continue
            amount = AMOUNTS.get(cause.name, cause.amount)
            row = _row(prediction, cause, amount)
            rows.append({"camera": name, "cause": cause.name, "unit": cause.unit, **row})
            print(rows[-1], flush=True)
    return {"depths_m": list(DEPTHS_M), "rows": rows}


def _row(prediction: Prediction, cause: ErrorCause, amount: float) -> dict[str, Any]:
    depths = np.array(DEPTHS_M)
    signs = (1,) if cause.has_sign or cause.is_later else (1, -1)
    twins = [mounted(prediction.camera, cause, sign * amount) for sign in signs]
    design = prediction.camera.optics

    def largest(rig_of: Callable[[Mounted], Optics]) -> list[float]:
        return [
            1e3 * float(np.max([measured_m(one, rig_of(one), depth, prediction) for one in twins]))
            for depth in DEPTHS_M
        ]

    found: dict[str, Any] = {"amount": amount}
    if cause.is_later:
        # A calibration knew the camera as designed: that is the error after it.
        told = calibrated_error_m(prediction, cause, amount, left_px=0.0)
        found["calibrated"] = {"measured": largest(lambda _: design), "predicted": 1e3 * told}
    else:
        before = error_before_m(prediction, cause, amount, depths)
        found["before"] = {"measured": largest(lambda _: design), "predicted": 1e3 * before}
        if cause.focus_dpt != (0.0, 0.0):
            told = calibrated_error_m(prediction, cause, amount, left_px=0.0)
            found["calibrated"] = {
                "measured": largest(lambda twin: twin.known),
                "predicted": 1e3 * told,
            }
    for kind in ("before", "calibrated"):
        if kind in found:
            found[kind]["predicted"] = [float(one) for one in found[kind]["predicted"]]
    return found
