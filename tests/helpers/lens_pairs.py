"""Planes seen through lenses with field curvature and astigmatism, for tests of the estimators."""

from functools import lru_cache

import numpy as np
from scipy import fft, special

import d3s
from calibrations import calibration
from d3s.rig.lens_maps import LensMaps

RIG = d3s.Rig.paper_prototype()
# A stock achromat: sagittal and tangential change of focus at the side of a view of 1802 px.
ACHROMAT = LensMaps(
    field_radius_px=902.0,
    focus_left_dpt=(0.0, 0.0, 1.5, 3.0),
    focus_right_dpt=(0.0, 0.0, 1.5, 3.0),
)
_STEP, _SIDE = 16, 96  # distance and side of the tiles of constant blur: the blur is 30 px wide


def lens_rig(lenses: LensMaps | None = ACHROMAT, rig: d3s.Rig = RIG, **known) -> d3s.Rig:
    """A rig that knows its lenses."""
    return rig.replace(calibration=calibration(lenses=lenses, **known))


def lens_pair(
    depth_m, lenses=ACHROMAT, *, shape=(200, 1802), texture="gravel", noise=0.01, seed=0, rig=RIG
) -> tuple[np.ndarray, np.ndarray]:
    """Left and right view of a plane: elliptical disks by place, then white noise."""
    sharp = _sharp(depth_m, texture, seed, shape, rig)
    rng = np.random.default_rng(seed + 1000)
    views = (_blurred(view, camera, depth_m, lenses, rig) for camera, view in enumerate(sharp))
    left, right = ((view + noise * rng.standard_normal(shape)).astype(np.float32) for view in views)
    return left, right


@lru_cache(maxsize=8)
def _sharp(depth_m, texture, seed, shape, rig) -> tuple[np.ndarray, np.ndarray]:
    """Views of the plane without blur, with a margin that the blur reaches into."""
    optics = rig.optics.replace(aperture_radius_m=0.0)
    wide = tuple(size + 2 * _SIDE for size in shape)
    scene = d3s.Plane(depth_m=depth_m, texture=texture)
    pair = d3s.simulate(scene, rig.replace(optics=optics), noise=0.0, seed=seed, shape=wide)
    return pair.left, pair.right


def _blurred(view, camera, depth_m, lenses, rig) -> np.ndarray:
    optics, shape = rig.optics, [size - 2 * _SIDE for size in view.shape]
    lens = optics.lens(camera)
    on_axis = 1 / depth_m - (lens.optical_power_dpt - 1 / lens.sensor_distance_m)
    per_dpt = optics.focal_length_px * optics.aperture_radius_m * (1.0, lenses.blur_ratio)[camera]
    down, across = fft.fftfreq(_SIDE)[:, None], fft.rfftfreq(_SIDE)[None, :]
    weight = np.maximum(1 - np.abs(np.arange(_SIDE) - (_SIDE - 1) / 2) / _STEP, 0)
    weight = np.outer(weight, weight)
    total, weights = np.zeros(view.shape), np.zeros(view.shape)
    for row in range(_SIDE // 2 - _STEP, view.shape[0] - 3 * _SIDE // 2 + 2 * _STEP, _STEP):
        for col in range(_SIDE // 2 - _STEP, view.shape[1] - 3 * _SIDE // 2 + 2 * _STEP, _STEP):
            cut = slice(row, row + _SIDE), slice(col, col + _SIDE)
            y, x = (
                (at + (_SIDE - 1) / 2 - _SIDE - (size - 1) / 2) / lenses.field_radius_px
                for at, size in zip((row, col), shape, strict=True)
            )
            xx, xy, yy = lenses.focus_dpt(camera, x, y)
            radius = per_dpt * np.hypot(
                (on_axis - xx) * across - xy * down, (on_axis - yy) * down - xy * across
            )
            argument = np.maximum(2 * np.pi * radius, 1e-9)
            transfer = 2 * special.j1(argument) / argument
            tile = fft.irfft2(fft.rfft2(view[cut]) * transfer, s=(_SIDE, _SIDE))
            total[cut] += weight * tile
            weights[cut] += weight
    inner = slice(_SIDE, -_SIDE), slice(_SIDE, -_SIDE)
    return total[inner] / weights[inner]
