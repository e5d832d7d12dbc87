"""Mended rigs: a rig with its drift taken out.

A right view that lies lower, is turned or is larger is sampled where it is: the anchor of the right
view, `rectify_scale` and `rectify_angle_rad` change, so disparity is mended with the rows. Light
goes to the map of the right view, focus to the optical powers, half to each lens.
"""

from collections.abc import Mapping

import numpy as np

from d3s.errors import InputError
from d3s.rig import Calibration, LensMaps, Rig
from d3s.rig.calibration import view_to_raw_matrices
from d3s.rig.lens_maps import polynomial_at, polynomial_terms
from d3s.rig.variance import polynomial_degree

_LIGHT = ("gain", "shading_x", "shading_y", "shading_r")
_LIGHT_DEGREE, _GRID = 4, 25  # degree of a map of light, and places to fit it on, along each axis
_GEOMETRY = ("rows_px", "roll_rad", "scale", "turn_rad", "disparity_px")


def mended(rig: Rig, drift: Mapping[str, float]) -> Rig:
    """Return the rig without a drift; quantities that are not named do not change.

    The drift has the names of `d3s.check.drift_quantities.KINDS`.
    """
    optics = rig.optics
    changes: dict[str, float] = {}
    focus = drift.get("focus_dpt", 0.0)
    if focus:
        changes["optical_power_left_dpt"] = optics.optical_power_left_dpt - focus / 2
        changes["optical_power_right_dpt"] = optics.optical_power_right_dpt + focus / 2
    if drift.get("focal_baseline"):
        changes["baseline_m"] = optics.baseline_m * (1 + drift["focal_baseline"])
    if rig.calibration is None and drift.get("disparity_px"):
        changes["disparity_offset_px"] = optics.disparity_offset_px + drift["disparity_px"]
    rig = rig.replace(optics=optics.replace(**changes)) if changes else rig
    names = (*_GEOMETRY, *_LIGHT)
    if rig.calibration is None:
        if any(drift.get(name) for name in names if name != "disparity_px"):
            raise InputError(
                f"the rig {rig.name!r} has no calibration: its views were rectified elsewhere, and "
                "have to be rectified anew there."
            )
        return rig
    calibration = rig.calibration
    if any(drift.get(name) for name in _GEOMETRY):
        calibration = _with_geometry(calibration, drift)
    if any(drift.get(name) for name in _LIGHT):
        calibration = calibration.replace(lenses=_with_light(calibration, drift))
    return rig.replace(calibration=calibration)


def _with_geometry(calibration: Calibration, drift: Mapping[str, float]) -> Calibration:
    """Calibration with another rectification of the right view."""
    scale, roll, turn = (drift.get(name, 0.0) for name in ("scale", "roll_rad", "turn_rad"))
    moved = calibration.replace(
        rectify_scale=calibration.rectify_scale / (1 + scale),
        rectify_angle_rad=calibration.rectify_angle_rad - roll,
        baseline_angle_rad=calibration.baseline_angle_rad + turn,
    )
    linear = view_to_raw_matrices(moved)[1][:, :2]
    # More disparity than there should be: the right view lies to the left.
    shift = linear @ np.array([-drift.get("disparity_px", 0.0), drift.get("rows_px", 0.0)])
    anchor = np.array(calibration.anchor_right_px) + shift
    return moved.replace(anchor_right_px=(float(anchor[0]), float(anchor[1])))


def _with_light(calibration: Calibration, drift: Mapping[str, float]) -> LensMaps:
    """Maps of the lenses with another light of the right view."""
    half = max(calibration.crop_rows_px, calibration.crop_cols_px) / 2
    lenses = calibration.lenses or LensMaps(field_radius_px=half)
    ratio = lenses.field_radius_px / half
    gain, across, down, outwards = (drift.get(name, 0.0) for name in _LIGHT)
    before = np.asarray(lenses.illumination_right)
    if not (across or down or outwards):
        return lenses.replace(illumination_right=tuple((before * (1 + gain)).tolist()))
    degree = max(polynomial_degree(before.size), _LIGHT_DEGREE)
    reach = 1 / ratio
    x, y = (one.ravel() for one in np.meshgrid(*[np.linspace(-reach, reach, _GRID)] * 2))
    change = 1 + gain + ratio * (across * x + down * y) + outwards * ratio**2 * (x * x + y * y)
    wanted = change * polynomial_at(before, x, y)
    terms = polynomial_terms(x, y, degree).T
    after = np.linalg.lstsq(terms, wanted, rcond=None)[0]
    return lenses.replace(illumination_right=tuple(after.tolist()))
