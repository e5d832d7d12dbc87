"""Disparity that lenses add to that of the depth, as a smooth map over the field and 1/Z.

Distortion is removed before; coma, pupils that are cut or decentred, and a distortion of higher
order leave shifts that depend on the place and on the depth. They are measured as a user will meet
them: the joint method looks at every board, and the mean of its disparity less that of the board in
each cell of the field is fitted by polynomials in x and y, for each power of the vergence 1/Z.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from d3s.calibrate.board import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.robust import huber_weighted
from d3s.calibrate.validation import widened_depth_range_m
from d3s.estimate import Flag, estimate
from d3s.rig import Rig
from d3s.rig.lens_maps import polynomial_at, polynomial_terms, term_count
from d3s.types import FloatArray, Image, Progress

_CELLS = (12, 24)  # rows and columns of cells over the view
_FEWEST_PIXELS = 0.2  # share of the pixels of a cell that have a depth
_DEGREES = (4, 4, 2)  # of the polynomials in x and y, of each power of 1/Z
_PRIOR_PX = 0.3  # standard deviation of a coefficient
_LEAST_SIGMA_PX = 0.01  # of a cell
LEAST_SIGMA_PX = 0.005
"""Least standard deviation of the disparity of a calibrated camera: no calibration is perfect."""
_ROUNDS = 6


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
    """Polynomials of the disparity to subtract, and what they leave."""

    maps_px: tuple[tuple[float, ...], ...]  # as in `LensMaps.disparity_px`
    before_rms_px: float
    after_rms_px: float


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

    Parameters
    ----------
    views
        Rectified pairs of the board.
    depths_m
        Depth of the board on the axis, in each pair.
    rig
        The camera, as far as it is calibrated.
    board
        Tilt and bend of the board.
    field_radius_px
        Unit of places in a view.
    progress
        Called with the number of frames that are done, and of all.
    """
    optics = rig.optics
    options = {"depth_range_m": widened_depth_range_m(optics, depths_m)}
    shape = views[0][0].shape
    x, y = _centres(shape, field_radius_px)

    def measure(number: int) -> tuple[FloatArray, ...]:
        found = estimate(*views[number], rig, options=options)
        cols, rows = np.arange(shape[1])[np.newaxis], np.arange(shape[0])[:, np.newaxis]
        truth = board.depth_m(cols, rows, depths_m[number], shape, optics)
        is_border = (found.flags & np.uint16(Flag.BORDER)) != 0
        is_known = found.valid & ~is_border & (cols > optics.disparity_px(truth))
        per_m = optics.disparity_px(1.0) - optics.disparity_offset_px  # px per dioptre
        residual = np.where(
            is_known, optics.disparity_px(found.depth_m) - optics.disparity_px(truth), np.nan
        )
        sigma = np.where(is_known, found.sigma_m * per_m / truth**2, np.nan)
        return (
            _cell_medians(1 / np.broadcast_to(truth, shape)),
            _cell_medians(residual),
            _cell_medians(sigma),
            _light_ratios(*views[number], optics.disparity_px(truth)),
        )

    frames = on_each_frame(measure, len(depths_m), progress)
    vergence, residual, sigma, light = (np.array(part) for part in zip(*frames, strict=True))
    return CellDisparity(np.array(depths_m), x, y, vergence, residual, sigma, light)


def _edges(size: int, count: int) -> list[int]:
    edges: list[int] = np.linspace(0, size, count + 1).round().astype(int).tolist()
    return edges


def _centres(shape: tuple[int, ...], radius_px: float) -> tuple[FloatArray, FloatArray]:
    rows, cols = (
        np.array([(a + b - 1) / 2 for a, b in pairwise(edges)]) - (size - 1) / 2
        for size, edges in (
            (size, _edges(size, count)) for size, count in zip(shape, _CELLS, strict=True)
        )
    )
    x, y = np.meshgrid(cols / radius_px, rows / radius_px)
    return x, y


def _light_ratios(left: Image, right: Image, disparity_px: FloatArray) -> FloatArray:
    """Light of the left view over that of the right one at the same points, in cells."""
    rows, cols = (_edges(size, count) for size, count in zip(left.shape, _CELLS, strict=True))
    out = np.full(_CELLS, np.nan)
    for i, (top, bottom) in enumerate(pairwise(rows)):
        for j, (first, last) in enumerate(pairwise(cols)):
            middle = disparity_px[(top + bottom) // 2, (first + last) // 2]
            shift = round(float(middle))
            if first - shift >= 0 and last - shift <= left.shape[1]:
                other = right[top:bottom, first - shift : last - shift]
                out[i, j] = left[top:bottom, first:last].mean() / max(float(other.mean()), 1e-6)
    return out


def _cell_medians(values: FloatArray) -> FloatArray:
    """Median of the known pixels of each cell; NaN where too few are known."""
    rows, cols = (_edges(size, count) for size, count in zip(values.shape, _CELLS, strict=True))
    out = np.full(_CELLS, np.nan)
    for i in range(_CELLS[0]):
        for j in range(_CELLS[1]):
            cell = values[rows[i] : rows[i + 1], cols[j] : cols[j + 1]]
            known = cell[np.isfinite(cell)]
            if known.size > _FEWEST_PIXELS * cell.size:
                out[i, j] = np.median(known)
    return out


def fit_disparity_map(cells: CellDisparity) -> DisparityMap:
    """Fit polynomials over the field and 1/Z to the disparity of cells."""
    known = np.isfinite(cells.residual_px) & np.isfinite(cells.sigma_px)
    if np.count_nonzero(known) < 2 * sum(term_count(degree) for degree in _DEGREES):
        return DisparityMap((), _rms(cells.residual_px), _rms(cells.residual_px))
    x, y = (np.broadcast_to(one, known.shape)[known] for one in (cells.x, cells.y))
    vergence, residual = cells.vergence_dpt[known], cells.residual_px[known]
    sigma = np.hypot(cells.sigma_px[known], _LEAST_SIGMA_PX)
    middle = 0.5 * (vergence.min() + vergence.max())
    half = max(0.5 * float(np.ptp(vergence)), 1e-6)
    scaled = (vergence - middle) / half
    columns = np.concatenate(
        [scaled**power * polynomial_terms(x, y, degree) for power, degree in enumerate(_DEGREES)]
    )
    values = np.zeros(len(columns))
    for _ in range(_ROUNDS):
        rest = (residual - values @ columns) / sigma
        rows, rest = huber_weighted(columns.T / sigma[:, np.newaxis], rest)
        normal = rows.T @ rows + np.eye(len(columns)) / _PRIOR_PX**2
        values = values + np.linalg.solve(normal, rows.T @ rest - values / _PRIOR_PX**2)
    maps = _in_powers(values, float(middle), half)
    left = residual - sum(
        vergence**power * polynomial_at(one, x, y) for power, one in enumerate(maps)
    )
    return DisparityMap(maps, _rms(residual), _rms(left))


def _in_powers(values: FloatArray, middle: float, half: float) -> tuple[tuple[float, ...], ...]:
    """Maps of the powers of u, from those of (u - middle) / half."""
    most = term_count(max(_DEGREES))
    out = np.zeros((len(_DEGREES), most))
    first = 0
    for power, degree in enumerate(_DEGREES):
        count = term_count(degree)
        part = values[first : first + count]
        first += count
        expanded = np.polynomial.polynomial.polypow([-middle / half, 1 / half], power)
        for order, factor in enumerate(expanded):
            out[order, :count] += factor * part
    return tuple(
        tuple(out[power, : term_count(max(_DEGREES[power:]))].tolist())
        for power in range(len(_DEGREES))
    )


def remaining_sigma_px(cells: CellDisparity) -> float:
    """Standard deviation of the disparity that a calibration leaves, without that by noise.

    From cells of boards that were not calibrated with.
    """
    known = np.isfinite(cells.residual_px) & np.isfinite(cells.sigma_px)
    if not known.any():
        return LEAST_SIGMA_PX
    square = float(np.mean(cells.residual_px[known] ** 2))
    return float(np.sqrt(max(square, LEAST_SIGMA_PX**2)))


def _rms(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else float("nan")
