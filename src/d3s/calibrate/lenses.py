"""Lens steps: light, focus and remaining disparity over the field, from rectified views.

Detail is shifted by blur that changes over the field. So the places on the board are corrected as
soon as the focus is known, and all that follows from them is found again.
"""

from typing import NamedTuple

import numpy as np

from d3s.calibrate.alignment import (
    Alignment,
    Setup,
    align_matches,
    bowl_doubt_per_m,
    calibration_of,
    draft_rig,
    lens_maps_of,
    with_lenses,
    without_blur_shift,
)
from d3s.calibrate.coma import BoardBlur, board_spectrum, scaled, without_coma
from d3s.calibrate.coma_fit import Coma, find_coma
from d3s.calibrate.defocus import Defocus, find_defocus
from d3s.calibrate.disparity_map import (
    CellDisparity,
    DisparityMap,
    RemainingSigma,
    fit_disparity_map,
    measure_cells,
    remaining_sigma,
)
from d3s.calibrate.field_residuals import FieldResiduals, mean_of_known
from d3s.calibrate.fields import Fields
from d3s.calibrate.focus_map import FocusMap, find_focus_map
from d3s.calibrate.frames import Captures, MiddleViews, SplitViews
from d3s.calibrate.geometry import Geometry, disparity_in_powers
from d3s.calibrate.illumination import Illumination, find_illumination
from d3s.calibrate.noise import Noise
from d3s.calibrate.percent import Percent
from d3s.calibrate.uncertainty import board_errors_px, distance_errors_px, texture_errors_px
from d3s.errors import CalibrationError
from d3s.rig import Calibration, Rig
from d3s.rig.calibration import LEAST_SIGMA_PX
from d3s.types import FloatArray

# Part of the views that the focus of the axis is found from: farther out it is another one.
_MIDDLE_PX = 700
_WINDOW_SPREAD = 0.06  # field radii, over which the rows of windows are averaged for a cell


class Lenses(NamedTuple):
    """Errors of the lenses over the field, the places corrected for them, and the rig so far."""

    rig: Rig
    alignment: Alignment
    illumination: Illumination
    defocus: Defocus
    focus_map: FocusMap
    coma: Coma
    disparity_map: DisparityMap


def find_lenses(
    captures: Captures,
    alignment: Alignment,
    fields: Fields,
    noise: Noise,
    setup: Setup,
    percent: Percent,
) -> Lenses:
    """Find light, focus and remaining disparity over the field."""
    frames, depths_m, board = alignment.frames, alignment.depths_m, alignment.board
    radius_px = alignment.distortion.field_radius_px
    rig = draft_rig(setup, alignment, fields, noise, captures.shape)
    views = SplitViews(captures, frames, calibration_of(rig))
    light = find_illumination(views, depths_m, rig.optics, board, radius_px)
    rig = with_lenses(rig, illumination_left=light.left, illumination_right=light.right)
    views = SplitViews(captures, frames, calibration_of(rig))
    defocus = find_defocus(
        MiddleViews(views, _MIDDLE_PX), depths_m, rig.optics, progress=percent.of("defocus")
    )
    focus = find_focus_map(
        views,
        depths_m,
        defocus.applied_to(rig.optics),
        board,
        radius_px,
        noise=_noise_sigma(calibration_of(rig)),
        progress=percent.of("focus"),
    )
    alignment, coma = _without_shifts(alignment, focus.applied_to(rig), captures, setup)
    rig = draft_rig(setup, alignment, fields, noise, captures.shape)
    rig = with_lenses(rig, illumination_left=light.left, illumination_right=light.right)
    rig = with_lenses(focus.applied_to(rig), coma_left_px=coma.left_px, coma_right_px=coma.right_px)
    views = SplitViews(captures, alignment.frames, calibration_of(rig))
    cells = measure_cells(
        views,
        alignment.depths_m,
        rig,
        alignment.board,
        radius_px,
        progress=percent.of("disparity"),
    )
    disparity = fit_disparity_map(cells, rig)
    return Lenses(disparity.applied_to(rig), alignment, light, defocus, focus, coma, disparity)


def _without_shifts(
    alignment: Alignment, rig: Rig, captures: Captures, setup: Setup
) -> tuple[Alignment, Coma]:
    """Alignment by places without the shifts that blur and coma cause."""
    distortion = alignment.distortion
    matches = without_blur_shift(alignment, rig)
    blur = BoardBlur(
        lens_maps_of(rig),
        rig.optics,
        (distortion.centre_px(0), distortion.centre_px(1)),
        alignment.geometry.depths_m,
        alignment.board,
    )
    waves = board_spectrum(matches, blur)
    coma = find_coma(matches, blur, waves) if setup.coma is None else setup.coma

    def align(share: float) -> Alignment:
        """Align places without this share of the coma."""
        left, right = (scaled(one, share) for one in (coma.left_px, coma.right_px))
        places = without_coma(matches, (left, right), blur, waves)
        radius_px = distortion.field_radius_px
        aligned = align_matches(places, captures.distances_m, radius_px, setup, alignment)
        doubt = bowl_doubt_per_m(share * coma.growth_px, lens_maps_of(rig))
        return aligned._replace(bowl_doubt_per_m=doubt)

    aligned = align(1.0)
    if not coma.growth_px or setup.coma is not None:
        return aligned, coma
    # What coma may be wrong by changes the depths. A test has no use for that.
    try:
        other = align(1 + coma.sigma_px / abs(coma.growth_px))
    except CalibrationError:  # with this coma the frames do not fit each other
        return aligned, coma
    change_m = other.geometry.depths_m - aligned.geometry.depths_m
    return aligned._replace(geometry=_with_doubt(aligned.geometry, change_m)), coma


def _with_doubt(geometry: Geometry, change_m: FloatArray) -> Geometry:
    """Geometry with one more error of the disparity: that of a change of the depths."""
    known = np.isfinite(change_m + geometry.depths_m)
    if not change_m[known].any():
        return geometry
    vergence = 1 / geometry.depths_m[known]
    change_px = geometry.focal_baseline_px_m * vergence**2 * change_m[known]
    errors = np.vstack([geometry.disparity_errors_px, disparity_in_powers(change_px, vergence)])
    return geometry._replace(disparity_errors_px=errors)


def field_residuals(cells: CellDisparity, aligned: Alignment) -> FieldResiduals:
    """Disparity, rows and light left over the field on frames that were not calibrated with."""
    rows_px = np.full(cells.residual_px.shape, np.nan)
    straight = aligned.distortion.removed_from(aligned.matches)
    anchors = (aligned.anchors.left_px, aligned.anchors.right_px)
    pairs = {pair.first: pair for pair in straight.across}
    for number, frame in enumerate(aligned.frames[1::2]):
        pair = pairs[frame]
        left, right = aligned.rectification.rectified(pair.first_px, pair.second_px, anchors)
        x, y = left.T / aligned.distortion.field_radius_px
        rows_px[number] = _local_means(cells, x, y, left[:, 1] - right[:, 1])
    return FieldResiduals(
        depths_m=cells.depths_m,
        x=cells.x,
        y=cells.y,
        residual_px=cells.residual_px,
        sigma_px=cells.sigma_px,
        rows_px=rows_px,
        light_ratio=mean_of_known(cells.light_ratio, 0),
    )


def _local_means(
    cells: CellDisparity, x: FloatArray, y: FloatArray, values: FloatArray
) -> FloatArray:
    """Weighted means of values around the centre of each cell; NaN far from all places."""
    square = (cells.x[..., np.newaxis] - x) ** 2 + (cells.y[..., np.newaxis] - y) ** 2
    weights = np.exp(-0.5 * square / _WINDOW_SPREAD**2)
    means = weights @ values / np.maximum(weights.sum(axis=-1), 1e-12)
    return np.where(square.min(axis=-1) < (2 * _WINDOW_SPREAD) ** 2, means, np.nan)


def with_sigma(lenses: Lenses, cells: CellDisparity | None) -> Rig:
    """Rig whose disparity has the standard deviation that calibration and test found.

    `cells` is the disparity left on frames that were not calibrated with; None if there was no
    test.
    """
    alignment, maps = lenses.alignment, lens_maps_of(lenses.rig)
    optics, geometry = lenses.rig.optics, alignment.geometry
    vergences_dpt = 1 / np.array(alignment.depths_m)
    errors = (
        *distance_errors_px(geometry),
        *board_errors_px(geometry, alignment.bend_sigma_per_m, optics, maps.field_radius_px),
        *texture_errors_px(lenses.coma, maps, optics, (vergences_dpt.min(), vergences_dpt.max())),
    )
    rms_px = 2 * lenses.disparity_map.after_rms_px
    left = RemainingSigma(rms_px, 0.0, 0.0) if cells is None else remaining_sigma(cells)
    return with_lenses(
        lenses.rig,
        disparity_sigma_px=max(left.axis_px, LEAST_SIGMA_PX),
        edge_sigma_px=left.edge_px,
        scale_sigma=0.0,
        disparity_errors_px=errors,
    )


def _noise_sigma(calibration: Calibration) -> float:
    """Standard deviation of the noise of a pixel of medium brightness."""
    read, gain = calibration.noise_read or 0.0, calibration.noise_gain or 0.0
    return float(np.sqrt(read**2 + 0.5 * gain))
