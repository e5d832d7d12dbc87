"""Errors of the disparity that a calibration cannot exclude, beside those that its test shows.

The map of remaining disparity is fitted to what the board shows. An error of the board's depth or
shape, and coma that was not found, are therefore in the map, and frames of the same board cannot
reveal them. Each such error is known by its standard deviation, from the fit that left it, and by
what it does to the disparity over the field and 1/Z: maps of the terms 1, u, u² of the vergence u.
"""

from collections.abc import Sequence

import numpy as np

from d3s.calibrate.coma import detail_shift, spectrum
from d3s.calibrate.coma_fit import Coma
from d3s.calibrate.geometry import Geometry
from d3s.estimate.lens_field import LensField
from d3s.rig import LensMaps, Optics
from d3s.rig.lens_maps import polynomial_terms
from d3s.types import FloatArray

Maps = tuple[tuple[float, ...], ...]
"""Maps of the terms 1, u, u², as in `LensMaps`."""

# Slopes of the spectra of textures: contrast of photographs falls with the frequency, more or less.
_SLOPES = (0.5, 1.0, 1.5)
_PLACES, _VERGENCES = 9, 7  # along each side of the field, and over 1/Z
_DEGREE, _POWERS = 4, 3  # of maps in x and y, and their number
_NEGLIGIBLE_PX = 1e-4


def distance_errors_px(geometry: Geometry) -> list[Maps]:
    """Errors by the distances of the boards, alike all over the field."""
    return [tuple((float(value),) for value in row) for row in geometry.disparity_errors_px]


def board_errors_px(
    geometry: Geometry, bend_sigma_per_m: Sequence[float], optics: Optics, field_radius_px: float
) -> list[Maps]:
    """Errors by the tilt of the board, which grow with 1/Z, and by its bend, which do not.

    `bend_sigma_per_m` are the standard deviations of the bend along X, mixed and along Y.
    """
    radius = field_radius_px / optics.focal_length_px
    per_dpt_px = optics.focal_length_px * optics.baseline_m
    lean_x, lean_y = (per_dpt_px * radius * sigma for sigma in geometry.tilt_sigma_rad)
    along, mixed, down = (per_dpt_px * radius**2 * sigma for sigma in bend_sigma_per_m)
    return [
        ((0.0,), (0.0, lean_x, 0.0)),
        ((0.0,), (0.0, 0.0, lean_y)),
        ((0.0, 0.0, 0.0, along, 0.0, 0.0),),
        ((0.0, 0.0, 0.0, 0.0, mixed, 0.0),),
        ((0.0, 0.0, 0.0, 0.0, 0.0, down),),
    ]


def texture_errors_px(
    coma: Coma, lenses: LensMaps, optics: Optics, vergences_dpt: tuple[float, float]
) -> list[Maps]:
    """Errors by coma that is not known, on textures other than that of the board.

    Coma shifts coarse detail otherwise than fine detail. The map holds the shift of the board's
    detail; that of another texture differs by its slope: on average, and from texture to texture.

    `vergences_dpt` are the least and largest 1/Z of the boards.
    """
    side = np.linspace(-1, 1, _PLACES)
    over = np.linspace(*vergences_dpt, _VERGENCES)
    u, y, x = (one.ravel() for one in np.meshgrid(over, side, side, indexing="ij"))
    board, *others = (
        coma.sigma_px * _shift_px(slope, lenses, optics, x, y, u)
        for slope in (coma.board_slope, *_SLOPES)
    )
    mean = np.mean(others, axis=0)
    spread = np.std(others, axis=0) * np.sign(others[-1] - others[0])
    terms = np.concatenate([u**power * polynomial_terms(x, y, _DEGREE) for power in range(_POWERS)])
    errors = [np.linalg.lstsq(terms.T, one, rcond=None)[0] for one in (mean - board, spread)]
    return [
        tuple(tuple(part.tolist()) for part in np.split(values, _POWERS))
        for values in errors
        if float(np.abs(values @ terms).max()) > _NEGLIGIBLE_PX
    ]


def _shift_px(
    slope: float, lenses: LensMaps, optics: Optics, x: FloatArray, y: FloatArray, u: FloatArray
) -> FloatArray:
    """Disparity that coma of one pixel at the field radius adds, by the joint method."""
    moved = x - np.asarray(optics.disparity_px(1 / u)) / lenses.field_radius_px
    blurs = (
        lenses.blur_radii_px(0, x, y, u, optics),
        lenses.blur_radii_px(1, moved, y, u, optics),
    )
    field = LensField(lenses, optics, (1, 1))
    scales = field.fitting_scales(x, y, u)
    out = np.zeros(x.shape)
    for scale in np.unique(scales).tolist():
        here = scales == scale
        found = detail_shift(
            (blurs[0][:, here], blurs[1][:, here]),
            (np.stack([x, y])[:, here], np.stack([moved, y])[:, here]),
            spectrum(slope, field.smoothing_px[scale]),
        )
        out[here] = (found.first_px - found.second_px)[:, 0]
    return out
