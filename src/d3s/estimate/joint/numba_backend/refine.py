"""Refinement by compiled loops; `estimate.refine` says what they are for.

Loops run along the columns and write one line each: so the compiler can use vectors. Sums over
windows are taken anew for every row, in single precision: no error runs along, and what comes out
does not depend on where a thread began.
"""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.numba_backend.cells import (
    cells,
    settle,
    smooth_squares,
    spline_coefficients,
)
from d3s.estimate.joint.numba_backend.grids import (
    doubled,
    halved,
    join,
    put,
    scales_of,
    wanted_cells,
)
from d3s.estimate.joint.numba_backend.surfaces import finished, one_surface, within
from d3s.estimate.joint.numba_backend.windows import LIGHT, fit_windows
from d3s.estimate.joint.types import Fit, Fitting, Plane, Refined, window_pixels
from d3s.runtime.parallel import over_rows
from d3s.runtime.scratch import Memory
from d3s.types import Image, Mask

Planes = NDArray[np.float32]  # (planes, rows, cols)
Counts = NDArray[np.uint8]
Indices = NDArray[np.int64]

_SPLINE_REACH = 10  # the pole of cubic splines to this is 2e-6


class CompiledRefine:
    """Single precision, machine code, rows shared out among the cores."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def halved(self, image: Image) -> Image:
        """Mean of the middle two of each 2 x 2 pixels."""
        rows, cols = (-(-size // 2) for size in image.shape)
        out = self._memory.empty((rows, cols))
        over_rows(halved, rows, image, out)
        return out

    def doubled(self, image: Image, shape: tuple[int, int]) -> Image:
        """Image of a shape, linear between the pixels, each of which stands for 2 x 2."""
        out = self._memory.empty(shape)
        over_rows(doubled, shape[0], image, out)
        return out

    def cells(
        self, left: Image, right: Image, disparity: Image, wanted: Mask, fitting: Fitting
    ) -> Planes:
        """Sums over the pixels of each cell that the windows of a wanted one reach."""
        rows, cols = disparity.shape
        # One more, of which the first row is zero: for windows that leave the frame.
        out = self._memory.empty((len(Plane) + 1, rows, cols))
        out[len(Plane), 0] = 0
        first, last = _hull(wanted, fitting.halves[-1] + len(fitting.taps) // 2)
        with self._memory.part():
            spline = self._memory.empty(right.shape)
            over_rows(spline_coefficients, right.shape[0], right, _spline_taps(), spline)
            line = np.array(fitting.defocus, dtype=np.float32)
            over_rows(cells, rows, left, spline, disparity, line, fitting.cell, first, last, out)
        taps = np.array(fitting.taps, dtype=np.float32)
        own = [window_pixels(size, fitting.cell, (0,))[0] for size in fitting.shape]
        smooth = out[Plane.U], out[Plane.UU]
        over_rows(smooth_squares, rows, out[Plane.G], taps, *own, first, last, *smooth)
        return out

    def scales(self, disparity_px: Image, finer: dict[int, tuple[float, float]]) -> Counts:
        """Coarsest scale at which each cell may be fitted."""
        out = self._memory.empty(disparity_px.shape, np.uint8)
        ends = [(scale, *ends) for scale, ends in sorted(finer.items())]
        numbers = np.array(ends, dtype=np.float32).reshape(len(ends), 3)
        over_rows(scales_of, out.shape[0], disparity_px, numbers, out)
        return out

    def one_surface(
        self, disparity: Image, halves: tuple[int, ...], least: float, share: float, zero: float
    ) -> Counts:
        """How many windows in a row hold disparities that may be of one surface."""
        out = self._memory.empty(disparity.shape, np.uint8)
        numbers = np.array((least, share, zero), dtype=np.float32)
        over_rows(one_surface, out.shape[0], disparity, np.array(halves, np.int64), numbers, out)
        return out

    def usable(
        self, disparity: Image, fitting: Fitting, least: float, share: float, zero: float
    ) -> Counts:
        """How many of the larger windows lie within both views and on one surface."""
        count = self.one_surface(disparity, fitting.halves[1:], least, share, zero)
        halves = np.array(fitting.halves, dtype=np.int64)
        over_rows(within, count.shape[0], disparity, halves, fitting.cell, fitting.shape[1], count)
        return count

    def moved(
        self, sums: Planes, disparity: Image, usable: Counts, wanted: Mask, fitting: Fitting
    ) -> Image:
        """Disparity by least squares, of the wanted cells; the others stay where they are."""
        return self._fit(sums, disparity, usable, disparity, wanted, fitting, LIGHT).disparity

    def settled(self, sums: Planes, before: Image, after: Image) -> Planes:
        """Sums of cells as they would be at other disparities, to first order; in their place."""
        over_rows(settle, before.shape[0], before, after, sums)
        return sums

    def fit(
        self,
        sums: Planes,
        disparity: Image,
        usable: Counts,
        noise: Image,
        wanted: Mask,
        fitting: Fitting,
    ) -> Fit:
        """The same, with all that is known of it."""
        return self._fit(sums, disparity, usable, noise, wanted, fitting, len(Plane))

    def _fit(
        self,
        sums: Planes,
        disparity: Image,
        usable: Counts,
        noise: Image,
        wanted: Mask,
        fitting: Fitting,
        planes: int,
    ) -> Fit:
        shape = disparity.shape
        out = self._memory.empty((len(Fit._fields) - 1 if planes > LIGHT else 1, *shape))
        used = self._memory.empty(shape, np.uint8)
        windows_px = (window_pixels(size, fitting.cell, fitting.halves) for size in fitting.shape)
        near_px = (window_pixels(size, fitting.cell, (1,))[0] for size in fitting.shape)
        over_rows(
            fit_windows,
            -(-shape[0] // 2),
            sums.reshape(-1),
            planes,
            disparity,
            usable,
            noise,
            wanted,
            np.array(fitting.halves, dtype=np.int64),
            *windows_px,
            *near_px,
            np.array(fitting.share_inside, dtype=np.float32),
            np.array(fitting.chance, dtype=np.float32),
            _numbers(fitting),
            out,
            used,
        )
        a, b, c, d, e, f = (out[0],) * 6 if planes == LIGHT else out
        return Fit(a, b, c, d, e, f, used)

    def finished(self, fit: Fit, fitting: Fitting, scale: int) -> Refined:
        """A fit in pixels of the frame, less what slopes add to it."""
        empty, shape = self._memory.empty, fit.disparity.shape
        a, b, c = (empty(shape) for _ in range(3))
        out = Refined(a, b, c, fit.correlation, fit.misfit, empty(shape, np.uint16))
        over_rows(
            finished,
            shape[0],
            fit.disparity,
            fit.sigma,
            fit.down,
            fit.across,
            fit.used,
            np.array(fitting.halves, dtype=np.int64),
            fitting.cell,
            fitting.shape[1],
            np.float32(scale),
            np.float32(fitting.bend),
            np.float32(fitting.bend_noise),
            out.disparity_px,
            out.sigma_px,
            out.bend_px,
            out.flags,
        )
        return out

    def wanted(self, scales: Counts, least: int, most: int, *, is_coarse: bool) -> Mask:
        """Cells of these scales; of a grid of half the size, those they are interpolated from."""
        step = 2 if is_coarse else 1
        out = self._memory.empty(
            (-(-scales.shape[0] // step), -(-scales.shape[1] // step)), np.bool_
        )
        over_rows(wanted_cells, out.shape[0], scales, least, most, is_coarse, out)
        return out

    def merged(self, disparity_px: Image, coarse_px: Image, scales: Counts, most: int) -> Image:
        """Disparities of a coarser grid, but those of the cells beyond a scale."""
        out = self.doubled(coarse_px, scales.shape)
        over_rows(put, scales.shape[0], disparity_px, scales, most + 1, 255, out)
        return out

    def joined(self, parts: dict[int, Refined], scales: Counts) -> Refined:
        """Each cell from the part of its scale, interpolated if that is coarser."""
        shape = scales.shape
        # The part that fits the grid becomes the whole, and the others are put into it.
        best = next((fit for fit in parts.values() if fit.flags.shape == shape), None)
        if best is None:
            empty = self._memory.empty
            a, b, c, d, e = (empty(shape) for _ in range(5))
            best = Refined(a, b, c, d, e, empty(shape, np.uint16))
        for scale, fit in parts.items():
            if fit is best:
                continue
            over_rows(join, shape[0], scales, scale, *fit, *best)
        return best


def _hull(wanted: Mask, reach: int) -> tuple[Indices, Indices]:
    """First column that wanted cells reach, and the one behind the last, for each row."""
    rows, cols = wanted.shape
    first = wanted.argmax(axis=1)
    first[~wanted[np.arange(rows), first]] = cols
    last = cols - wanted[:, ::-1].argmax(axis=1)
    last[first == cols] = 0
    near = min(reach, rows - 1)
    wide = np.full((2, rows + 2 * near), cols)
    wide[0, near : near + rows], wide[1, near : near + rows] = first, -last
    # The least over 2 near + 1 rows, by those over one, two, four and so on.
    power = 1
    while 2 * power <= 2 * near + 1:
        wide = np.minimum(wide[:, : wide.shape[1] - power], wide[:, power:])
        power *= 2
    rest = 2 * near + 1 - power
    wide = np.minimum(wide[:, :rows], wide[:, rest : rest + rows])
    return np.maximum(wide[0] - reach, 0), np.clip(reach - wide[1], 0, cols)


def _numbers(fitting: Fitting) -> Image:
    return np.array(
        (
            *fitting.defocus,
            fitting.reach,
            fitting.smoothed_gain,
            fitting.laplacian_gain,
            fitting.gradient_gain,
            fitting.area,
            fitting.apart,
            fitting.unexplained,
        ),
        dtype=np.float32,
    )


def _spline_taps() -> Image:
    """Filter that turns pixels into coefficients of cubic splines: its pole to the distance."""
    pole = np.sqrt(3.0) - 2.0
    taps = np.sqrt(3.0) * pole ** np.arange(_SPLINE_REACH + 1)
    return np.asarray(taps, dtype=np.float32)
