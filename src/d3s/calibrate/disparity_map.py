"""Disparity that lenses add to that of the depth, as a smooth map over the field and 1/Z.

Distortion is removed before; coma, pupils that are cut or decentred, and a distortion of higher
order leave shifts that depend on the place and on the depth. They are measured as a user will meet
them: the joint method looks at every board, and the mean of its disparity less that of the board in
each cell of the field is fitted by polynomials in x and y, for each power of the vergence 1/Z.

The map is fitted to what the board shows. An error of the board's depth or shape, and coma that was
not found, are therefore in the map, and frames of the same board cannot reveal them. Each such
error is known by its standard deviation, from the fit that left it, and by what it does to the
disparity over the field and 1/Z: maps of the terms 1, u, u² of the vergence u.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.calibrate.alignment import lens_maps_of, with_lenses
from d3s.calibrate.coma import Coma, detail_shift, spectrum
from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.robust import huber_weighted, rms
from d3s.calibrate.validation import widened_depth_range_m
from d3s.estimate import DepthMap, Flag
from d3s.estimate.joint.correction import SizeCorrection
from d3s.estimate.lens_field import LensField
from d3s.estimate.methods import estimate_quietly
from d3s.rig import LensMaps, Optics, Rig
from d3s.rig.lens_maps import SHARP_PX2, polynomial_terms
from d3s.rig.variance import term_count
from d3s.runtime.scratch import release_scratch
from d3s.types import FloatArray, Image, Progress

_CELLS = (12, 24)  # rows and columns of cells over the view
_FEWEST_PIXELS = 0.2  # share of the pixels of a cell that have a depth
# Degrees of the polynomials in x and y, of each power of 1/Z: of all cells, of sharp ones, and of
# those that are fitted at a half or a quarter of the size. From a tuning camera: each frame
# predicted by the others.
_DEGREES, _SHARP_DEGREES, _SCALE_DEGREES = (4, 4, 4, 2), (2,), (3, 3)
_LEAST_GAIN = 0.03  # of the residual of its cells, below which a group of maps is left out
# Standard deviations of the coefficients, of each power. Few frames are fitted at a half or a
# quarter of the size, and with large ones their maps run away between these frames.
_PRIOR_PX, _SHARP_PRIOR_PX, _SCALE_PRIOR_PX = (0.3, 0.3, 0.1, 0.03), (0.3,), (0.1, 0.05)
_LEAST_SIGMA_PX = 0.01  # of a cell
_ROUNDS, _SIGMA_ROUNDS = 6, 4
_WINDOWS = 3  # independent windows of the joint method in a cell
# Other textures differ more from the board than other frames of it: fine detail is shifted
# otherwise than coarse detail. From the tuning textures, seen by a tuning camera.
_OTHER_TEXTURES = 1.25


Polynomial = tuple[float, ...]
"""Coefficients of a map, ordered as in `LensMaps`."""


class CellDisparity(NamedTuple):
    """Disparity measured less that of the board, in cells of the field; NaN where unknown."""

    depths_m: FloatArray  # (frames,): of the board on the axis
    x: FloatArray  # (rows, cols): centres of the cells, in units of the field radius
    y: FloatArray
    vergence_dpt: FloatArray  # (frames, rows, cols): of the board
    residual_px: FloatArray  # (frames, rows, cols)
    sigma_px: FloatArray  # (frames, rows, cols): standard deviation by noise
    light_ratio: FloatArray  # (frames, rows, cols): light of the left over that of the right view


class DisparityMap(NamedTuple):
    """Polynomials of the disparity to subtract, as in `LensMaps`, and what they leave."""

    maps_px: tuple[Polynomial, ...] = ()
    sharp_px: Polynomial = (0.0,)
    half_size_px: tuple[Polynomial, ...] = ()
    quarter_size_px: tuple[Polynomial, ...] = ()
    before_rms_px: float = float("nan")
    after_rms_px: float = float("nan")

    def applied_to(self, rig: Rig) -> Rig:
        """Rig whose disparity is corrected by these maps."""
        rig = with_lenses(rig, disparity_px=self.maps_px, sharp_disparity_px=self.sharp_px)
        return SizeCorrection(self.half_size_px, self.quarter_size_px).applied_to(rig)


def measure_cells(
    views: Views,
    depths_m: Sequence[float],
    rig: Rig,
    board: Board,
    field_radius_px: float,
    *,
    progress: Progress | None = None,
) -> CellDisparity:
    """Measure the disparity of every board by the joint method, in cells of the field.

    `depths_m` are those of the board on the axis; the rig is the camera as far as it is calibrated.
    """
    optics = rig.optics
    # Rows that lenses add are measured here, in the views as they are.
    options = {"depth_range_m": widened_depth_range_m(optics, depths_m), "align_views": False}
    shape = views[0][0].shape
    x, y = _centres(shape, field_radius_px)
    lines, columns = (_slices(size, count) for size, count in zip(shape, _CELLS, strict=True))

    def measure(number: int) -> FloatArray:
        left, right = views[number]
        found = estimate_quietly(left, right, rig, options=options)
        depth_at = partial(board.depth_m, depth_m=depths_m[number], shape=shape, optics=optics)
        cells = [
            [_measure_cell(rows, cols, depth_at, found, (left, right), optics) for cols in columns]
            for rows in lines
        ]
        return np.moveaxis(np.array(cells), -1, 0)

    frames = on_each_frame(measure, len(depths_m), progress)
    # Steps that follow need other memory: a quarter of a gigabyte of each thread is given back.
    release_scratch()
    vergence, residual, sigma, light = np.stack(frames, axis=1)
    return CellDisparity(np.array(depths_m), x, y, vergence, residual, sigma, light)


def _measure_cell(
    rows: slice,
    cols: slice,
    depth_at: Callable[[ArrayLike, ArrayLike], FloatArray],
    found: DepthMap,
    views: tuple[Image, Image],
    optics: Optics,
) -> tuple[float, float, float, float]:
    """Vergence of the board, disparity found less that of the board, its sigma, and ratio of light.

    Medians of the pixels of a cell; NaN where too few are known.
    """
    x, y = np.arange(cols.start, cols.stop), np.arange(rows.start, rows.stop)[:, np.newaxis]
    truth_m = depth_at(x, y)
    disparity_px = optics.disparity_px(truth_m)
    is_border = (found.flags[rows, cols] & np.uint16(Flag.BORDER)) != 0
    depth_m, sigma_m = found.depth_m[rows, cols], found.sigma_m[rows, cols]
    is_known = np.isfinite(depth_m) & ~is_border & (x > disparity_px)
    residual = sigma = np.nan
    if np.count_nonzero(is_known) > _FEWEST_PIXELS * truth_m.size:
        away = optics.disparity_px(depth_m[is_known]) - disparity_px[is_known]
        per_dpt_px = optics.disparity_px(1.0) - optics.disparity_offset_px
        spread = sigma_m[is_known] * per_dpt_px / truth_m[is_known] ** 2
        residual, sigma = np.median(away), np.median(spread)
    middle_px = disparity_px[truth_m.shape[0] // 2, truth_m.shape[1] // 2]
    light = _light_ratio(*views, rows, cols, round(float(middle_px)))
    return float(np.median(1 / truth_m)), float(residual), float(sigma), light


def _light_ratio(left: Image, right: Image, rows: slice, cols: slice, shift_px: int) -> float:
    """Light of the left view in a cell over that of the right one at the same points."""
    if cols.start < shift_px or cols.stop - shift_px > right.shape[1]:
        return np.nan
    other = right[rows, cols.start - shift_px : cols.stop - shift_px]
    return float(left[rows, cols].mean() / max(float(other.mean()), 1e-6))


def _slices(size: int, count: int) -> list[slice]:
    """A count of slices of nearly equal length over a size."""
    edges: list[int] = np.linspace(0, size, count + 1).round().astype(int).tolist()
    return [slice(first, last) for first, last in pairwise(edges)]


def _centres(shape: tuple[int, ...], radius_px: float) -> tuple[FloatArray, FloatArray]:
    rows, cols = (
        np.array([(one.start + one.stop - 1) / 2 for one in _slices(size, count)]) - (size - 1) / 2
        for size, count in zip(shape, _CELLS, strict=True)
    )
    x, y = np.meshgrid(cols / radius_px, rows / radius_px)
    return x, y


class _Terms(NamedTuple):
    """Terms of one group of maps: one map for each power of the scaled vergence."""

    degrees: tuple[int, ...]
    weight: FloatArray  # (cells,): 0 where the group does not apply
    middle_dpt: float  # vergence at which only the first map acts
    half_dpt: float  # vergences beyond it at which all maps act alike
    prior_px: tuple[float, ...]  # standard deviation of the coefficients, of each power

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return sum(term_count(degree) for degree in self.degrees)

    def columns(self, x: FloatArray, y: FloatArray, vergence_dpt: FloatArray) -> FloatArray:
        """Terms (coefficients, cells) of coefficients in units of their standard deviations."""
        scaled = (vergence_dpt - self.middle_dpt) / self.half_dpt
        return np.concatenate(
            [
                prior_px * self.weight * scaled**power * polynomial_terms(x, y, degree)
                for power, (degree, prior_px) in enumerate(
                    zip(self.degrees, self.prior_px, strict=True)
                )
            ]
        )

    def maps(self, values: FloatArray) -> tuple[Polynomial, ...]:
        """Maps of the powers of 1/Z, from coefficients in units of their standard deviations."""
        sigmas = np.repeat(self.prior_px, [term_count(degree) for degree in self.degrees])
        return _in_powers(values * sigmas, self.degrees, self.middle_dpt, self.half_dpt)


def fit_disparity_map(cells: CellDisparity, rig: Rig) -> DisparityMap:
    """Fit polynomials over the field and 1/Z to the disparity of cells.

    The rig is the camera that the disparity was measured with.
    """
    known = np.isfinite(cells.residual_px) & np.isfinite(cells.sigma_px)
    x, y = (np.broadcast_to(one, known.shape)[known] for one in (cells.x, cells.y))
    vergence, residual = cells.vergence_dpt[known], cells.residual_px[known]
    groups = _groups(x, y, vergence, rig)
    if residual.size < 2 * sum(group.size for group in groups):
        return DisparityMap(before_rms_px=rms(residual), after_rms_px=rms(residual))
    columns = np.concatenate([group.columns(x, y, vergence) for group in groups])
    sigma = np.hypot(cells.sigma_px[known], _LEAST_SIGMA_PX)
    ends = np.cumsum([0, *(group.size for group in groups)])
    is_used = np.ones(len(columns), dtype=np.bool_)
    for group, first, last in zip(groups[1:], ends[1:-1], ends[2:], strict=True):
        is_used[first:last] = _is_needed(columns, slice(first, last), residual, sigma, group.weight)
    values = np.zeros(len(columns))
    values[is_used] = _solve(columns[is_used], residual, sigma)
    maps, sharp, small, smallest = (
        group.maps(part) if part.any() else ()
        for part, group in zip(np.split(values, ends[1:-1]), groups, strict=True)
    )
    after = rms(residual - values @ columns)
    sharp_px = sharp[0] if sharp else (0.0,)
    return DisparityMap(maps, sharp_px, small, smallest, rms(residual), after)


def _is_needed(
    columns: FloatArray, group: slice, residual: FloatArray, sigma: FloatArray, weight: FloatArray
) -> bool:
    """Whether a group of maps explains more than noise, in the cells that it is for."""
    without = np.delete(columns, group, axis=0)
    here = weight > 0
    with_it, without_it = (
        float(np.median(np.abs((residual - _solve(some, residual, sigma) @ some)[here])))
        if here.any()
        else 0.0
        for some in (columns, without)
    )
    return with_it < (1 - _LEAST_GAIN) * without_it


def _groups(x: FloatArray, y: FloatArray, vergence: FloatArray, rig: Rig) -> tuple[_Terms, ...]:
    """Maps of all cells, of sharp ones, and of those that are fitted at a half and a quarter."""
    lenses = lens_maps_of(rig)
    blur = lenses.blur_px2(0, x, y, vergence, rig.optics)
    sharpness = 1 / (1 + 0.5 * (blur[0] + blur[2]) / SHARP_PX2)
    scale = LensField(lenses, rig.optics, (1, 1)).fitting_scales(x, y, vergence)
    half = max(0.5 * float(np.ptp(vergence)), 1e-6)
    middle = 0.5 * float(vergence.min() + vergence.max())

    def of_scale(number: int) -> _Terms:
        weight = (scale == number).astype(np.float64)
        among = float(vergence @ weight / max(weight.sum(), 1.0))
        return _Terms(_SCALE_DEGREES, weight, among, half, _SCALE_PRIOR_PX)

    return (
        _Terms(_DEGREES, np.ones(x.shape), middle, half, _PRIOR_PX),
        _Terms(_SHARP_DEGREES, sharpness, middle, half, _SHARP_PRIOR_PX),
        of_scale(2),
        of_scale(4),
    )


def _solve(columns: FloatArray, residual: FloatArray, sigma: FloatArray) -> FloatArray:
    """Coefficients by least squares with Huber weights and a prior of 0."""
    values = np.zeros(len(columns))
    for _ in range(_ROUNDS):
        rest = (residual - values @ columns) / sigma
        rows, rest = huber_weighted(columns.T / sigma[:, np.newaxis], rest)
        normal = rows.T @ rows + np.eye(len(columns))
        values = values + np.linalg.solve(normal, rows.T @ rest - values)
    return values


def _in_powers(
    values: FloatArray, degrees: tuple[int, ...], middle: float, half: float
) -> tuple[Polynomial, ...]:
    """Maps of the powers of u, from those of (u - middle) / half."""
    out = np.zeros((len(degrees), term_count(max(degrees))))
    first = 0
    for power, degree in enumerate(degrees):
        count = term_count(degree)
        part = values[first : first + count]
        first += count
        expanded = np.polynomial.polynomial.polypow([-middle / half, 1 / half], power)
        for order, factor in enumerate(expanded):
            out[order, :count] += factor * part
    return tuple(
        tuple(out[power, : term_count(max(degrees[power:]))].tolist())
        for power in range(len(degrees))
    )


class RemainingSigma(NamedTuple):
    """Standard deviation of the disparity that a calibration leaves, as three parts."""

    axis_px: float
    edge_px: float  # at the field radius; it grows with the square of the distance from the axis
    per_dpt_px: float  # times the vergence 1/Z


def remaining_sigma(cells: CellDisparity) -> RemainingSigma:
    """Standard deviation of the disparity that a calibration leaves, without that by noise.

    The cells are those of boards that were not calibrated with.
    """
    from scipy.optimize import nnls  # importing scipy takes longer than the rest of d3s

    known = np.isfinite(cells.residual_px) & np.isfinite(cells.sigma_px)
    if not known.any():
        return RemainingSigma(0.0, 0.0, 0.0)
    square = np.broadcast_to(cells.x**2 + cells.y**2, known.shape)[known]
    vergence = cells.vergence_dpt[known]
    noise = cells.sigma_px[known] ** 2 / _WINDOWS
    excess = cells.residual_px[known] ** 2 - noise
    terms = np.stack([np.ones_like(square), square**2, vergence**2], axis=1)
    variances = np.array([_LEAST_SIGMA_PX**2, 0.0, 0.0])
    for _ in range(_SIGMA_ROUNDS):
        # A square of Gaussian errors scatters by its own mean.
        weights = 1 / (noise + terms @ variances + _LEAST_SIGMA_PX**2)
        variances = nnls(terms * weights[:, np.newaxis], excess * weights)[0]
    variances[0] += max(_shared_variance(cells) - float(np.mean(terms @ variances)), 0.0)
    axis_px, edge_px, per_dpt_px = np.sqrt(variances).tolist()
    return RemainingSigma(_OTHER_TEXTURES * axis_px, _OTHER_TEXTURES * edge_px, per_dpt_px)


def _shared_variance(cells: CellDisparity) -> float:
    """Variance of the disparity that all cells of a frame share, which noise hides in each."""
    known = [residual[np.isfinite(residual)] for residual in cells.residual_px]
    means = [float(np.mean(residual)) for residual in known if residual.size]
    return float(np.mean(np.square(means)))


Maps = tuple[tuple[float, ...], ...]
"""Maps of the terms 1, u, u², as in `LensMaps`."""

# Slopes of the spectra of textures: contrast of photographs falls with the frequency, more or less.
_SLOPES = (0.5, 1.0, 1.5)
_PLACES, _VERGENCES = 9, 7  # along each side of the field, and over 1/Z
_DEGREE, _POWERS = 4, 3  # of maps in x and y, and their number
_NEGLIGIBLE_PX = 1e-4


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
    blurs = (lenses.blur_radii_px(0, x, y, u, optics), lenses.blur_radii_px(1, moved, y, u, optics))
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
