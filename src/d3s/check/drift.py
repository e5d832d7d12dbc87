"""Drift from the blocks of all frames: rows, roll, scale, turn, light and focus; and from walls.

Errors of blocks of one frame are alike: the same wrong depth, the same lens error at its depth. So
the sigma of the robust fits is from fits that leave out one frame after the other (the jackknife);
with few frames, one ninth of a frame after the other. Terms may have a prior standard deviation
around zero: what lenses add that no calibration describes. It enters sigma too.

A lens that has moved by pixels leaves few places with a depth. Blocks are then looked for by
correlation, on other rows too, and what they say is taken out before the first measurement.

Walls at known distances tell the disparity of infinity, and focal length times baseline: disparity
is d∞ + K / Z. A plane is fitted to the disparity over the view, so that a wall need not be quite
square to the axis; its distance is that on the axis, from the plane of the lenses.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from d3s.check.compared_blocks import ComparedBlocks
from d3s.check.drift_quantities import Quantity, unknown
from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.diagnosis.blocks import match_blocks
from d3s.estimate.diagnosis.light import robust_fit
from d3s.rig import Rig
from d3s.types import FloatArray, Image

_ROUNDS = 6
_BISQUARE = 4.685  # Tukey's constant: 95 % as precise as least squares if errors are normal
_MAD_TO_SIGMA = 1.4826


class BlockSamples(NamedTuple):
    """Measured values of the blocks of all frames, with the terms that explain them."""

    terms: FloatArray  # (blocks, terms)
    values: FloatArray  # (blocks,)
    sigmas: FloatArray  # (blocks,)
    groups: FloatArray  # (blocks,): number of the frame, or of the part of a frame, from 0


class Fit(NamedTuple):
    """Factors of the terms; each has a standard deviation."""

    values: FloatArray  # (terms,)
    sigmas: FloatArray  # (terms,)


def fit_groups(samples: BlockSamples, prior_sigmas: FloatArray) -> Fit | None:
    """Fit the terms to all groups; None with fewer than two groups.

    `prior_sigmas` (terms,) are the standard deviations of each factor around zero before any
    measurement; infinite for a factor of which nothing is known.
    """
    numbers, group = np.unique(samples.groups, return_inverse=True)
    if numbers.size < 2:
        return None
    prior = np.diag(1 / np.square(prior_sigmas))
    terms = samples.terms / samples.sigmas[:, np.newaxis]
    target = samples.values / samples.sigmas
    values, weight, scale = _robust(terms, target, prior)
    normals = np.zeros((numbers.size, prior.shape[0], prior.shape[0]))
    rights = np.zeros(normals.shape[:2])
    weighted = weight[:, np.newaxis] * terms / scale**2
    for number in range(numbers.size):
        own = group == number
        normals[number] = weighted[own].T @ terms[own]
        rights[number] = weighted[own].T @ target[own]
    whole = np.linalg.pinv(normals.sum(axis=0) + prior, hermitian=True)
    without = np.stack(
        [
            np.linalg.pinv(normals.sum(axis=0) - one + prior, hermitian=True)
            @ (rights.sum(axis=0) - right)
            for one, right in zip(normals, rights, strict=True)
        ]
    )
    count = numbers.size
    scatter = (count - 1) / count * np.square(without - without.mean(axis=0)).sum(axis=0)
    # Both hold the noise of blocks; the second also the prior, the first common errors of frames.
    return Fit(values, np.sqrt(np.maximum(scatter, np.diag(whole))))


def _robust(
    terms: FloatArray, target: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Factors, weights of the blocks, and the size of errors over their sigmas, at least 1."""
    weight, scale = np.ones(target.size), 1.0
    for _ in range(_ROUNDS):
        normal = terms.T @ (weight[:, np.newaxis] * terms) / scale**2 + prior
        right = terms.T @ (weight * target) / scale**2
        values = np.linalg.pinv(normal, hermitian=True) @ right
        residual = target - terms @ values
        scale = max(_MAD_TO_SIGMA * float(np.median(np.abs(residual))), 1.0)
        weight = np.square(np.maximum(1 - np.square(residual / (_BISQUARE * scale)), 0))
    return values, weight, scale


_FEWEST_COARSE = 10
_LEAST_COARSE_PX = 0.4  # less is measured better where depth is known
_COARSE_SIGMAS = 5.0


def coarse_drift(views: Sequence[tuple[Image, Image]]) -> dict[str, float]:
    """Rows, roll and scale by the blocks of all frames; empty if they agree or nothing is found."""
    found = [(blocks, pair[0].shape) for pair in views if (blocks := match_blocks(*pair))]
    parts = [
        np.stack(
            [one.x * shape[1] / 2 - one.disparity_px, one.y * shape[0] / 2, one.rows_px], axis=1
        )[one.is_sure]
        for one, shape in found
    ]
    places = np.concatenate(parts) if parts else np.empty((0, 3))
    if len(places) < _FEWEST_COARSE:
        return {}
    side = max(views[0][0].shape) / 2
    terms = np.column_stack([np.ones(len(places)), places[:, :2] / side])
    fit = robust_fit(terms, places[:, 2])
    if fit is None:
        return {}
    units = {"rows_px": 1.0, "roll_rad": 1 / side, "scale": 1 / side}
    return {
        name: float(value * unit)
        for (name, unit), value, sigma in zip(units.items(), *fit, strict=True)
        if abs(value) > max(_LEAST_COARSE_PX, _COARSE_SIGMAS * sigma)
    }


# Changes that matter: rows and disparity in pixels at the side of a view, shares of the light, and
# focus in dioptres. Rows of 0.15 px, and 0.1 px at a side, are about what sigma holds.
ROWS_PX, SIDE_PX, TURN_RAD, GAIN, SHADING, FOCUS_DPT = 0.15, 0.1, 5e-3, 0.01, 0.03, 0.04
# What good calibrations leave, in the same units; the turn is rows per dioptre. From simulated
# cameras with typical lenses and tuning textures.
_LEFT_ROWS_PX, _LEFT_SIDE_PX, _LEFT_TURN_PX_DPT = 0.03, 0.02, 0.05
_LEFT_GAIN, _LEFT_SHADING, _LEFT_FOCUS_DPT = 0.002, 0.003, 0.005
# Rows that lenses add and no rectification takes out: bends over the view, and a change with the
# depth; in pixels at the side of a view, and per dioptre.
_BEND_PX, _BEND_PX_DPT = 0.05, 0.03
_TURN_PX_DPT = 0.2  # rows per dioptre by a turn, before any measurement: half a degree
_EXTRA_BLUR_PX2 = 0.3  # difference of blur that a change of focus does not explain
MIDDLE_DPT = 1.5
"""1/Z at which rows are measured: in the middle of the range of a calibration."""
_BLOCK_ROWS_PX = 0.03  # error of the rows of a block that its residual does not show
_BLOCK_LIGHT, _BLOCK_BLUR_PX2 = 0.003, 0.05
_LARGEST_SIGMA_PX, _LARGEST_SIGMA_PX2 = 1.0, 5.0  # blocks that say less are left out
_FEWEST_BLOCKS = 40
_FEW_FRAMES = 5  # below: sigma from the ninths of frames
_PLAIN = (
    "only {count} places have enough texture and a depth, and {fewest} are needed. Take frames of "
    "other scenes, with texture all over."
)


def measure_drift(
    frames: Sequence[ComparedBlocks], rig: Rig, shape: tuple[int, int]
) -> list[Quantity]:
    """Measure what the blocks of all frames tell of rectification, light and focus.

    They are blocks as `compare_blocks` returns them for views of `rig`; the shape is that of a
    view.
    """
    blocks = ComparedBlocks(*(np.concatenate(parts) for parts in zip(*frames, strict=True)))
    groups = _groups(frames, shape)
    side = max(shape) / 2
    return [
        *_rows(blocks, groups, rig, side),
        *_light(blocks, groups, side),
        _focus(blocks, groups, rig),
    ]


def _unknowns(limits: Mapping[str, float], reason: str) -> list[Quantity]:
    return [unknown(name, limit, reason) for name, limit in limits.items()]


def _found(limits: Mapping[str, float], values: FloatArray, sigmas: FloatArray) -> list[Quantity]:
    """Quantities of the first so many limits."""
    rows = zip(limits.items(), values, sigmas, strict=False)
    return [Quantity(name, float(one), float(sigma), limit) for (name, limit), one, sigma in rows]


def _groups(frames: Sequence[ComparedBlocks], shape: tuple[int, int]) -> FloatArray:
    """Number of the group of each block: its frame, or a ninth of it if there are few frames."""
    numbers = [np.full(one.size, float(number)) for number, one in enumerate(frames)]
    if len(frames) >= _FEW_FRAMES:
        return np.concatenate(numbers)
    ninths = []
    for number, one in zip(numbers, frames, strict=True):
        across = np.clip(np.floor(3 * (one.x_px / shape[1] + 0.5)), 0, 2)
        down = np.clip(np.floor(3 * (one.y_px / shape[0] + 0.5)), 0, 2)
        ninths.append(9 * number + 3 * down + across)
    return np.concatenate(ninths)


def _rows(blocks: ComparedBlocks, groups: FloatArray, rig: Rig, side: float) -> list[Quantity]:
    """Rows, roll, scale and turn: residual rows over place and disparity."""
    limits = {
        "rows_px": ROWS_PX,
        "roll_rad": SIDE_PX / side,
        "scale": SIDE_PX / side,
        "turn_rad": TURN_RAD,
    }
    good = blocks.rows_sigma_px < _LARGEST_SIGMA_PX
    count = int(good.sum())
    if count < _FEWEST_BLOCKS:
        return _unknowns(limits, _PLAIN.format(count=count, fewest=_FEWEST_BLOCKS))
    x = ((blocks.x_px - blocks.disparity_px) / side)[good]
    y = (blocks.y_px / side)[good]
    depth = blocks.vergence_dpt[good] - MIDDLE_DPT
    terms = [np.ones_like(x), x, y, depth, x * x, x * y, y * y, depth * x, depth * y]
    free = [np.inf] * 3
    prior = np.array([*free, _TURN_PX_DPT, *[_BEND_PX] * 3, *[_BEND_PX_DPT] * 2])
    sigmas = np.hypot(blocks.rows_sigma_px, _BLOCK_ROWS_PX)[good]
    samples = BlockSamples(np.stack(terms, axis=1), blocks.rows_px[good], sigmas, groups[good])
    fit = fit_groups(samples, prior)
    if fit is None:
        return _unknowns(limits, _SPREAD)
    left = np.array([_LEFT_ROWS_PX, _LEFT_SIDE_PX, _LEFT_SIDE_PX, _LEFT_TURN_PX_DPT])
    # A turn of both views by an angle moves rows by minus the angle times the disparity.
    per_dpt = rig.optics.focal_length_px * rig.optics.baseline_m
    units = np.array([1.0, 1 / side, 1 / side, -1 / per_dpt])
    return _found(limits, fit.values[:4] * units, np.hypot(fit.sigmas[:4], left) * np.abs(units))


_SPREAD = (
    "the places with texture lie in one corner of the views. Take frames with texture all over."
)


def _light(blocks: ComparedBlocks, groups: FloatArray, side: float) -> list[Quantity]:
    """Gain and flat field: the ratio of the views over the place."""
    limits = {"gain": GAIN, "shading_x": SHADING, "shading_y": SHADING, "shading_r": SHADING}
    fit = None
    if blocks.size >= _FEWEST_BLOCKS:
        x, y = (blocks.x_px - blocks.disparity_px) / side, blocks.y_px / side
        terms = np.stack([np.ones_like(x), x, y, x * x + y * y], axis=1)
        sigmas = np.full(blocks.size, _BLOCK_LIGHT)
        prior = np.full(4, np.inf)
        fit = fit_groups(BlockSamples(terms, blocks.light, sigmas, groups), prior)
    if fit is None:
        return _unknowns(limits, _PLAIN.format(count=blocks.size, fewest=_FEWEST_BLOCKS))
    left = np.array([_LEFT_GAIN, *[_LEFT_SHADING] * 3])
    return _found(limits, fit.values, np.hypot(fit.sigmas, left))


def _focus(blocks: ComparedBlocks, groups: FloatArray, rig: Rig) -> Quantity:
    """Focus difference: residual blur over the distance from the focus."""
    if rig.optics.aperture_radius_m == 0:
        reason = "the rig has no aperture, so its views have no blur to compare."
        return unknown("focus_dpt", FOCUS_DPT, reason)
    good = blocks.blur_sigma_px2 < _LARGEST_SIGMA_PX2
    count = int(good.sum())
    fit: Fit | None = None
    if count >= _FEWEST_BLOCKS:
        per_dpt = _blur_per_dpt_px2(blocks, rig)[good]
        sigmas = np.hypot(blocks.blur_sigma_px2, _BLOCK_BLUR_PX2)[good]
        terms = np.stack([per_dpt, np.ones_like(per_dpt)], axis=1)
        prior = np.array([np.inf, _EXTRA_BLUR_PX2])
        fit = fit_groups(BlockSamples(terms, blocks.blur_px2[good], sigmas, groups[good]), prior)
    if fit is None:
        words = _PLAIN.format(count=count, fewest=_FEWEST_BLOCKS)
        return unknown("focus_dpt", FOCUS_DPT, words)
    sigma = float(np.hypot(fit.sigmas[0], _LEFT_FOCUS_DPT))
    return Quantity("focus_dpt", float(fit.values[0]), sigma, FOCUS_DPT)


def _blur_per_dpt_px2(blocks: ComparedBlocks, rig: Rig) -> FloatArray:
    """Change of half the difference of blur variances with the difference of the powers."""
    optics = rig.optics
    focus = 0.5 * (optics.optical_power_left_dpt + optics.optical_power_right_dpt)
    from_focus = blocks.vergence_dpt - (focus - 1 / optics.sensor_distance_m)
    lenses = None if rig.calibration is None else rig.calibration.lenses
    if lenses is not None:
        x, y = blocks.x_px / lenses.field_radius_px, blocks.y_px / lenses.field_radius_px
        both = [lenses.focus_dpt(camera, x, y)[[0, 2]].mean(axis=0) for camera in (0, 1)]
        from_focus = from_focus - 0.5 * (both[0] + both[1])
    gain = optics.aperture_gaussian_width * optics.focal_length_px * optics.aperture_radius_m
    return np.asarray(-(gain**2) * from_focus)


DISPARITY_PX, FOCAL_BASELINE = 0.05, 0.003  # changes that matter
RULER_M = 1e-3
"""Standard deviation of a distance, unless it is said."""
_MAP_SHARE = 0.3  # of the sigma of the disparity over the field: what its mean has left
_LEAST_SIGMA_PX = 0.005
_LEAST_DENSITY = 0.2
_MANY = 20_000
_LEAST_SPAN = 0.2  # of 1/Z between two walls, relative to the larger one


class WallOffset(NamedTuple):
    """Disparity of one wall on the axis, less that of its distance."""

    distance_m: float
    excess_px: float
    sigma_px: float


def wall_of(depth_map: DepthMap, distance_m: float, ruler_m: float = RULER_M) -> WallOffset | None:
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
    return WallOffset(
        distance_m, excess, float(np.sqrt(_LEAST_SIGMA_PX**2 + left_px**2 + ruler_px**2))
    )


def measure_walls(walls: Sequence[WallOffset | None], rig: Rig) -> list[Quantity]:
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
    return _found(limits, values, np.sqrt(np.diag(covariance)))


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
