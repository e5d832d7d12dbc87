"""Walls at known distances: the disparity of infinity, and focal length times baseline.

Disparity is d∞ + K / Z. A plane is fitted to the disparity over the view, so that a wall need not
be quite square to the axis; its distance is that on the axis, from the plane of the lenses.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from d3s.check.quantities import Quantity, unknown
from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.diagnosis.light import robust_fit
from d3s.rig import Rig

DISPARITY_PX, FOCAL_BASELINE = 0.05, 0.003  # changes that matter
RULER_M = 1e-3
"""Standard deviation of a distance, unless it is said."""
_MAP_SHARE = 0.3  # of the sigma of the disparity over the field: what its mean has left
_LEAST_SIGMA_PX = 0.005
_LEAST_DENSITY = 0.2
_MANY = 20_000
_LEAST_SPAN = 0.2  # of 1/Z between two walls, relative to the larger one


class Wall(NamedTuple):
    """Disparity of one wall on the axis, less that of its distance."""

    distance_m: float
    excess_px: float
    sigma_px: float


def wall_of(depth_map: DepthMap, distance_m: float, ruler_m: float = RULER_M) -> Wall | None:
    """Measure one wall; None if too few pixels have a depth.

    Distances are on the axis, from the plane of the lenses; `ruler_m` is their standard deviation.
    """
    if depth_map.density < _LEAST_DENSITY:
        return None
    optics = depth_map.rig.optics
    step = max(int(np.sqrt(depth_map.depth_m.size / _MANY)), 1)
    depth_m = depth_map.depth_m[::step, ::step].astype(np.float64)
    y, x = np.nonzero(np.isfinite(depth_m))
    disparity = optics.disparity_px(depth_m[y, x])
    rows, cols = depth_m.shape
    terms = np.stack([np.ones(x.size), 2 * (x + 0.5) / cols - 1, 2 * (y + 0.5) / rows - 1], axis=1)
    found = robust_fit(terms, disparity)
    if found is None:
        return None
    excess = float(found[0][0]) - float(optics.disparity_px(distance_m))
    calibration = depth_map.rig.calibration
    lenses = None if calibration is None else calibration.lenses
    left_px = 0.0 if lenses is None else _MAP_SHARE * lenses.disparity_sigma_px
    ruler_px = optics.focal_length_px * optics.baseline_m / distance_m**2 * ruler_m
    return Wall(distance_m, excess, float(np.sqrt(_LEAST_SIGMA_PX**2 + left_px**2 + ruler_px**2)))


def measure_walls(walls: Sequence[Wall | None], rig: Rig) -> list[Quantity]:
    """Fit the disparity of infinity, and K if walls have different distances."""
    known = [wall for wall in walls if wall is not None]
    if not known:
        reason = "too little of the wall has a depth. Use one with texture, such as newspaper."
        return [unknown("disparity_px", DISPARITY_PX, reason)]
    vergence = np.array([1 / wall.distance_m for wall in known])
    excess = np.array([wall.excess_px for wall in known])
    sigmas = np.array([wall.sigma_px for wall in known])
    per_dpt = rig.optics.focal_length_px * rig.optics.baseline_m
    terms = [np.ones_like(vergence)]
    if np.ptp(vergence) > _LEAST_SPAN * vergence.max():
        terms.append(vergence * per_dpt)
    weighted = np.stack(terms, axis=1) / sigmas[:, np.newaxis]
    covariance = np.linalg.inv(weighted.T @ weighted)
    values = covariance @ (weighted.T @ (excess / sigmas))
    limits = {"disparity_px": DISPARITY_PX, "focal_baseline": FOCAL_BASELINE}
    return [
        Quantity(name, float(value), float(np.sqrt(variance)), limit)
        for (name, limit), value, variance in zip(
            limits.items(), values, np.diag(covariance), strict=False
        )
    ]


def checked_distances(distances_m: Sequence[float], frames: int) -> tuple[float, ...]:
    """Return one distance for each frame."""
    wrong = next((one for one in distances_m if not 0.02 <= one <= 100), None)
    if wrong is not None:
        raise InputError(
            f"distances_m has {wrong:g}: it must be 0.02 to 100. Did you pass millimetres?"
        )
    if len(distances_m) not in (0, 1, frames):
        raise InputError(
            f"distances_m has {len(distances_m)} values for {frames} frames. Give one for all "
            "frames, or one for each."
        )
    return tuple(distances_m) * (frames if len(distances_m) == 1 else 1)
