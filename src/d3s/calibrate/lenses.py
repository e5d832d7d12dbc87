"""Lens steps: light, focus and remaining disparity over the field, from rectified views.

Detail is shifted by blur that changes over the field. So the places on the board are corrected as
soon as the focus is known, and all that follows from them is found again.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from d3s.calibrate.alignment import (
    Alignment,
    Setup,
    align_matches,
    calibration_of,
    draft_rig,
    lens_maps_of,
    with_lenses,
    without_blur_shift,
)
from d3s.calibrate.coma import Coma, find_coma, with_detail_shift, without_coma
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
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.illumination import Illumination, find_illumination
from d3s.calibrate.noise import Noise
from d3s.calibrate.percent import Percent
from d3s.errors import CalibrationError
from d3s.rig import Calibration, Rig
from d3s.rig.calibration import LEAST_SIGMA_PX
from d3s.types import FloatArray

# Part of the views that the focus of the axis is found from: farther out it is another one.
_MIDDLE_PX = 700
_FEWEST_FOR_COMA = 16  # frames: of fewer, each error of the ruler would pass for coma
_WINDOW_SPREAD = 0.06  # field radii, over which the rows of windows are averaged for a cell


class Lenses(NamedTuple):
    """Errors of the lenses over the field, the places corrected for them, and the rig so far."""

    rig: Rig
    alignment: Alignment
    illumination: Illumination
    defocus: Defocus
    focus_map: FocusMap
    disparity_map: DisparityMap


def find_lenses(
    captures: Captures,
    alignment: Alignment,
    fields: Fields,
    noise: Noise,
    setup: Setup,
    percent: Percent,
) -> Lenses:
    """Find light, focus and remaining disparity over the field.

    Parameters
    ----------
    captures, alignment
        Raw frames; which of these to use, their depths and the shape of the board.
    fields, noise, setup
        As for `draft_rig`.
    percent
        Progress of the steps.
    """
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
    alignment = _without_shifts(alignment, focus.applied_to(rig), captures, setup)
    rig = draft_rig(setup, alignment, fields, noise, captures.shape)
    rig = with_lenses(rig, illumination_left=light.left, illumination_right=light.right)
    coma = 0.0, 0.0, alignment.distortion.coma_px
    rig = with_lenses(focus.applied_to(rig), coma_left_px=coma, coma_right_px=coma)
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
    return Lenses(disparity.applied_to(rig), alignment, light, defocus, focus, disparity)


def _without_shifts(alignment: Alignment, rig: Rig, captures: Captures, setup: Setup) -> Alignment:
    """Alignment by places without the shifts that blur and coma cause."""
    distortion, distances_m = alignment.distortion, captures.distances_m
    matches = with_detail_shift(
        without_blur_shift(alignment, rig),
        lens_maps_of(rig),
        rig.optics,
        (distortion.centre_px(0), distortion.centre_px(1)),
        alignment.geometry.depths_m,
    )

    def align(coma_px: float) -> Alignment:
        return align_matches(
            without_coma(matches, coma_px), distances_m, distortion.field_radius_px, setup
        )

    def ruler_errors_m(coma_px: float) -> FloatArray:
        try:
            depths_m = align(coma_px).geometry.depths_m
        except CalibrationError:  # with this coma the frames do not fit each other
            depths_m = np.full(len(distances_m), np.nan)
        return np.asarray(depths_m - np.asarray(distances_m))

    if setup.coma_px is not None:
        coma = Coma(setup.coma_px, 0.0)
    elif len(alignment.frames) < _FEWEST_FOR_COMA:
        coma = Coma(0.0, 0.0)
    else:
        fitted = align_matches(matches, distances_m, distortion.field_radius_px, setup)
        coma = find_coma(ruler_errors_m, fitted.distortion.coma_px, distortion.field_radius_px)
    aligned = align(coma.size_px)
    return aligned._replace(
        distortion=aligned.distortion._replace(coma_px=coma.size_px),
        geometry=_with_doubt(aligned.geometry, align, coma),
    )


def _with_doubt(geometry: Geometry, align: Callable[[float], Alignment], coma: Coma) -> Geometry:
    """Geometry whose depths have a sigma that includes that of coma."""
    if not coma.sigma_px:
        return geometry
    try:
        other = align(coma.size_px + coma.sigma_px).geometry
    except CalibrationError:  # with this coma the frames do not fit each other
        return geometry
    change = np.nan_to_num(other.depths_m - geometry.depths_m)
    return geometry._replace(depth_sigmas_m=np.hypot(geometry.depth_sigmas_m, change))


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


def with_sigma(rig: Rig, cells: CellDisparity | None, map_rms_px: float, geometry: Geometry) -> Rig:
    """Rig whose disparity and scale have the standard deviations that calibration and test found.

    Parameters
    ----------
    rig
        The calibrated camera.
    cells
        Disparity left on frames that were not calibrated with; None if there was no test.
    map_rms_px
        Disparity that the map left on the frames it was fitted to, used without a test.
    geometry
        Depths of the boards that were calibrated with.
    """
    share = geometry.depth_sigmas_m / geometry.depths_m
    scale = float(np.sqrt(mean_of_known(share**2)))
    left = RemainingSigma(2 * map_rms_px, 0.0, 0.0) if cells is None else remaining_sigma(cells)
    tested = left.per_dpt_px / (rig.optics.focal_length_px * rig.optics.baseline_m)
    return with_lenses(
        rig,
        disparity_sigma_px=max(left.axis_px, LEAST_SIGMA_PX),
        edge_sigma_px=left.edge_px,
        scale_sigma=max(scale, tested),
    )


def _noise_sigma(calibration: Calibration) -> float:
    """Standard deviation of the noise of a pixel of medium brightness."""
    read, gain = calibration.noise_read or 0.0, calibration.noise_gain or 0.0
    return float(np.sqrt(read**2 + 0.5 * gain))
