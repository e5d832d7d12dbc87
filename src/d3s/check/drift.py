"""Drift of rows, roll, scale, turn, light and focus from the blocks of all frames."""

from collections.abc import Sequence

import numpy as np

from d3s.check.blocks import Blocks
from d3s.check.fit import Fit, Samples, fit_groups
from d3s.check.quantities import Quantity, unknown
from d3s.rig import Rig
from d3s.types import FloatArray

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


def measure_drift(frames: Sequence[Blocks], rig: Rig, shape: tuple[int, int]) -> list[Quantity]:
    """Measure what the blocks of all frames tell of rectification, light and focus.

    They are blocks as `compare_blocks` returns them for views of `rig`; the shape is that of a
    view.
    """
    blocks = Blocks(*(np.concatenate(parts) for parts in zip(*frames, strict=True)))
    groups = _groups(frames, shape)
    side = max(shape) / 2
    return [
        *_rows(blocks, groups, rig, side),
        *_light(blocks, groups, side),
        _focus(blocks, groups, rig),
    ]


def _groups(frames: Sequence[Blocks], shape: tuple[int, int]) -> FloatArray:
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


def _rows(blocks: Blocks, groups: FloatArray, rig: Rig, side: float) -> list[Quantity]:
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
        words = _PLAIN.format(count=count, fewest=_FEWEST_BLOCKS)
        return [unknown(name, limit, words) for name, limit in limits.items()]
    x = ((blocks.x_px - blocks.disparity_px) / side)[good]
    y = (blocks.y_px / side)[good]
    depth = blocks.vergence_dpt[good] - MIDDLE_DPT
    terms = [np.ones_like(x), x, y, depth, x * x, x * y, y * y, depth * x, depth * y]
    free = [np.inf] * 3
    prior = np.array([*free, _TURN_PX_DPT, *[_BEND_PX] * 3, *[_BEND_PX_DPT] * 2])
    sigmas = np.hypot(blocks.rows_sigma_px, _BLOCK_ROWS_PX)[good]
    samples = Samples(np.stack(terms, axis=1), blocks.rows_px[good], sigmas, groups[good])
    fit = fit_groups(samples, prior)
    if fit is None:
        return [unknown(name, limit, _SPREAD) for name, limit in limits.items()]
    left = np.array([_LEFT_ROWS_PX, _LEFT_SIDE_PX, _LEFT_SIDE_PX, _LEFT_TURN_PX_DPT])
    # A turn of both views by an angle moves rows by minus the angle times the disparity.
    per_dpt = rig.optics.focal_length_px * rig.optics.baseline_m
    units = np.array([1.0, 1 / side, 1 / side, -1 / per_dpt])
    values, sigma = fit.values[:4] * units, np.hypot(fit.sigmas[:4], left) * np.abs(units)
    return [
        Quantity(name, float(value), float(one), limit)
        for (name, limit), value, one in zip(limits.items(), values, sigma, strict=True)
    ]


_SPREAD = (
    "the places with texture lie in one corner of the views. Take frames with texture all over."
)


def _light(blocks: Blocks, groups: FloatArray, side: float) -> list[Quantity]:
    """Gain and flat field: the ratio of the views over the place."""
    limits = {"gain": GAIN, "shading_x": SHADING, "shading_y": SHADING, "shading_r": SHADING}
    fit = None
    if blocks.size >= _FEWEST_BLOCKS:
        x, y = (blocks.x_px - blocks.disparity_px) / side, blocks.y_px / side
        terms = np.stack([np.ones_like(x), x, y, x * x + y * y], axis=1)
        sigmas = np.full(blocks.size, _BLOCK_LIGHT)
        prior = np.full(4, np.inf)
        fit = fit_groups(Samples(terms, blocks.light, sigmas, groups), prior)
    if fit is None:
        words = _PLAIN.format(count=blocks.size, fewest=_FEWEST_BLOCKS)
        return [unknown(name, limit, words) for name, limit in limits.items()]
    left = np.array([_LEFT_GAIN, *[_LEFT_SHADING] * 3])
    return [
        Quantity(name, float(value), float(sigma), limit)
        for (name, limit), value, sigma in zip(
            limits.items(), fit.values, np.hypot(fit.sigmas, left), strict=True
        )
    ]


def _focus(blocks: Blocks, groups: FloatArray, rig: Rig) -> Quantity:
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
        fit = fit_groups(Samples(terms, blocks.blur_px2[good], sigmas, groups[good]), prior)
    if fit is None:
        words = _PLAIN.format(count=count, fewest=_FEWEST_BLOCKS)
        return unknown("focus_dpt", FOCUS_DPT, words)
    sigma = float(np.hypot(fit.sigmas[0], _LEFT_FOCUS_DPT))
    return Quantity("focus_dpt", float(fit.values[0]), sigma, FOCUS_DPT)


def _blur_per_dpt_px2(blocks: Blocks, rig: Rig) -> FloatArray:
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
