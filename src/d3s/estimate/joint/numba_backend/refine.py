"""Compiled operations of the refinement; `estimate.joint.refine` explains the fit.

Kernels run along the columns and write one line each, which lets the compiler use vectors. Sums
over windows are taken anew for every row, in single precision: no rounding error accumulates, and
results do not depend on where a thread began.
"""

import numpy as np

from d3s.estimate.joint.field import BlurPlane
from d3s.estimate.joint.numba_backend import cells, grids, surfaces, windows
from d3s.estimate.joint.numba_backend.windows import (
    DISPARITY_SUMS,
    CellStarts,
    FitNumbers,
    WindowTables,
)
from d3s.estimate.joint.types import (
    CellFit,
    CellSum,
    Counts,
    DefocusLine,
    FitParameters,
    Indices,
    Planes,
    SurfaceLimits,
    WindowFit,
    window_pixels,
)
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.types import Image, Mask

_SPLINE_REACH = 10  # the spline filter falls to 2e-6 there


class NumbaRefine:
    """`RefineOperations` in single precision, with intermediate arrays in scratch memory."""

    def __init__(self, memory: Scratch) -> None:
        self._memory = memory

    def halve(self, image: Image) -> Image:
        """Shrink by two: the mean of the middle two values of each 2 x 2 pixels."""
        rows, cols = (-(-size // 2) for size in image.shape)
        out = self._memory.empty((rows, cols))
        run_over_rows(grids.halve, rows, image, out)
        return out

    def double(self, image: Image, shape: tuple[int, int]) -> Image:
        """Enlarge by two to a shape, by linear interpolation."""
        out = self._memory.empty(shape)
        run_over_rows(grids.double, shape[0], image, out)
        return out

    def coarsest_scales(
        self, disparity_px: Image, finer_px: dict[int, tuple[float, float]]
    ) -> Counts:
        """Return the coarsest scale at which each cell may be fitted."""
        out = self._memory.empty(disparity_px.shape, np.uint8)
        scales = np.array(sorted(finer_px), dtype=np.uint8)
        ends = np.array([finer_px[int(scale)] for scale in scales], dtype=np.float32)
        run_over_rows(
            grids.coarsest_scales, out.shape[0], disparity_px, scales, ends.reshape(-1, 2), out
        )
        return out

    def select_cells(self, scales: Counts, least: int, most: int, *, is_coarse: bool) -> Mask:
        """Select the cells of scales least to most, or the coarse cells that these derive from.

        Parameters: see `RefineOperations.select_cells`.
        """
        step = 2 if is_coarse else 1
        shape = -(-scales.shape[0] // step), -(-scales.shape[1] // step)
        out = self._memory.empty(shape, np.bool_)
        run_over_rows(grids.select_cells, shape[0], scales, least, most, is_coarse, out)
        return out

    def count_one_surface(
        self, disparity: Image, halves: tuple[int, ...], limits: SurfaceLimits
    ) -> Counts:
        """Count the windows, from the smallest on, whose disparities may be of one surface.

        Parameters: see `RefineOperations.count_one_surface`.
        """
        out = self._memory.empty(disparity.shape, np.uint8)
        sides, rows = np.array(halves, np.int64), out.shape[0]
        single = SurfaceLimits(*(np.float32(limit) for limit in limits))
        run_over_rows(surfaces.count_one_surface, rows, disparity, sides, single, out)
        return out

    def count_usable(
        self, disparity: Image, parameters: FitParameters, limits: SurfaceLimits
    ) -> Counts:
        """Count the larger windows that lie within both views and on one surface.

        Parameters: see `RefineOperations.count_usable`.
        """
        count = self.count_one_surface(disparity, parameters.window_halves[1:], limits)
        halves = np.array(parameters.window_halves, dtype=np.int64)
        side, cols = parameters.cell_side, parameters.view_shape[1]
        run_over_rows(surfaces.limit_to_frame, count.shape[0], disparity, halves, side, cols, count)
        return count

    def sum_cells(
        self,
        left: Image,
        right: Image,
        disparity: Image,
        wanted: Mask,
        parameters: FitParameters,
        blur: Planes | None = None,
    ) -> Planes:
        """Return the sums `CellSum` of the cells that the windows of a wanted cell reach.

        Parameters: see `RefineOperations.sum_cells`.
        """
        rows, cols = disparity.shape
        # One plane more, whose first row is zero: for windows that leave the frame.
        out = self._memory.empty((len(CellSum) + 1, rows, cols))
        out[len(CellSum), 0] = 0
        reach = parameters.window_halves[-1] + len(parameters.cell_taps) // 2
        first, last = _hull(wanted, reach)
        side = parameters.cell_side
        with self._memory.part():
            spline = self._memory.empty(right.shape)
            run_over_rows(cells.spline_coefficients, right.shape[0], right, _spline_taps(), spline)
            line = DefocusLine(*(np.float32(number) for number in parameters.defocus))
            run_over_rows(
                cells.sum_cells, rows, left, spline, disparity, line, side, first, last, out, blur
            )
        taps = np.array(parameters.cell_taps, dtype=np.float32)
        own = [window_pixels(size, side, (0,))[0] for size in parameters.view_shape]
        smooth = out[CellSum.U], out[CellSum.UU]
        run_over_rows(cells.smooth_squares, rows, out[CellSum.G], taps, *own, first, last, *smooth)
        return out

    def update_disparity(
        self,
        sums: Planes,
        disparity: Image,
        anchor: Image,
        usable: Counts,
        wanted: Mask,
        parameters: FitParameters,
    ) -> Image:
        """Return the least-squares disparity of the wanted cells; others keep theirs.

        Parameters: see `RefineOperations.update_disparity`.
        """
        out = self._memory.empty((1, *disparity.shape))
        starts = CellStarts(disparity, anchor, usable, disparity, wanted, disparity)
        self._fit(sums, starts, parameters, out)
        return np.asarray(out[0])

    def shift_sums(self, sums: Planes, before: Image, after: Image) -> Planes:
        """Shift the sums to other disparities, to first order, in place.

        Parameters: see `RefineOperations.shift_sums`.
        """
        run_over_rows(cells.shift_sums, before.shape[0], before, after, sums)
        return sums

    def fit_windows(
        self,
        sums: Planes,
        disparity: Image,
        anchor: Image,
        usable: Counts,
        noise: Image,
        wanted: Mask,
        parameters: FitParameters,
        blur: Planes | None = None,
    ) -> WindowFit:
        """Fit each wanted cell over the largest usable window that smaller ones agree with.

        Parameters: see `RefineOperations.fit_windows`.
        """
        out = self._memory.empty((len(WindowFit._fields) - 1, *disparity.shape))
        line = parameters.defocus
        if blur is None:
            defocus = np.full((1, disparity.shape[1]), line.constant, dtype=np.float32)
        else:
            defocus = blur[BlurPlane.EVEN]
            parameters = parameters._replace(defocus=line._replace(slope=0.0))
        starts = CellStarts(disparity, anchor, usable, noise, wanted, defocus)
        used = self._fit(sums, starts, parameters, out)
        return WindowFit._make([*out, used])

    def _fit(
        self, sums: Planes, starts: CellStarts, parameters: FitParameters, out: Planes
    ) -> Counts:
        """Fit the planes of `out`, all or the disparity alone, and return the windows used."""
        shape = starts.disparity.shape
        planes = DISPARITY_SUMS if len(out) == 1 else len(CellSum)
        used = self._memory.empty(shape, np.uint8)
        run_over_rows(
            windows.fit_windows,
            -(-shape[0] // 2),
            sums.reshape(-1),
            planes,
            starts,
            _window_tables(parameters),
            _fit_numbers(parameters),
            out,
            used,
        )
        return used

    def correct_slopes(self, fit: WindowFit, parameters: FitParameters, scale: int) -> CellFit:
        """Remove the effect of slopes from a fit, and convert it to pixels of the frame.

        Parameters: see `RefineOperations.correct_slopes`.
        """
        empty, shape = self._memory.empty, fit.disparity.shape
        out = CellFit(
            disparity_px=empty(shape),
            sigma_px=empty(shape),
            bend_px=empty(shape),
            correlation=fit.correlation,
            misfit=fit.misfit,
            flags=empty(shape, np.uint16),
        )
        run_over_rows(
            surfaces.correct_slopes,
            shape[0],
            fit,
            np.array(parameters.window_halves, dtype=np.int64),
            parameters.cell_side,
            parameters.view_shape[1],
            np.float32(scale),
            np.float32(parameters.bend_share),
            np.float32(parameters.bend_noise),
            out,
        )
        return out

    def merge_coarse(
        self, disparity_px: Image, coarse_px: Image, scales: Counts, most: int, max_move_px: float
    ) -> Image:
        """Return the disparities of a coarser grid for cells up to a scale, else the given ones.

        Parameters: see `RefineOperations.merge_coarse`.
        """
        out = self.double(coarse_px, scales.shape)
        rows, limit = scales.shape[0], np.float32(max_move_px)
        run_over_rows(grids.keep_fine, rows, disparity_px, scales, most, limit, out)
        return out

    def join_scales(self, parts: dict[int, CellFit], scales: Counts) -> CellFit:
        """Take each cell from the fit of its scale, interpolated if that is coarser."""
        shape = scales.shape
        # The part that has the size of the grid becomes the result; the others are copied into it.
        best = next((fit for fit in parts.values() if fit.flags.shape == shape), None)
        if best is None:
            images = (self._memory.empty(shape) for _ in CellFit._fields[:-1])
            best = CellFit._make([*images, self._memory.empty(shape, np.uint16)])
        for scale, fit in parts.items():
            if fit is not best:
                rows = shape[0]
                run_over_rows(
                    grids.join, rows, scales, scale, fit[:-1], fit.flags, best[:-1], best.flags
                )
        return best


def _hull(wanted: Mask, reach: int) -> tuple[Indices, Indices]:
    """Return the first column near wanted cells, and the one behind the last, for each row."""
    rows, cols = wanted.shape
    first = wanted.argmax(axis=1)
    first[~wanted[np.arange(rows), first]] = cols
    last = cols - wanted[:, ::-1].argmax(axis=1)
    last[first == cols] = 0
    near = min(reach, rows - 1)
    wide = np.full((2, rows + 2 * near), cols)
    wide[0, near : near + rows], wide[1, near : near + rows] = first, -last
    # The minimum over 2 near + 1 rows, by minima over 1, 2, 4 and so on.
    power = 1
    while 2 * power <= 2 * near + 1:
        wide = np.minimum(wide[:, : wide.shape[1] - power], wide[:, power:])
        power *= 2
    rest = 2 * near + 1 - power
    wide = np.minimum(wide[:, :rows], wide[:, rest : rest + rows])
    return np.maximum(wide[0] - reach, 0), np.clip(reach - wide[1], 0, cols)


def _window_tables(parameters: FitParameters) -> WindowTables:
    side, halves = parameters.cell_side, parameters.window_halves
    rows_px, cols_px = (window_pixels(size, side, halves) for size in parameters.view_shape)
    near_rows, near_cols = (window_pixels(size, side, (1,))[0] for size in parameters.view_shape)
    return WindowTables(
        halves=np.array(halves, dtype=np.int64),
        rows_px=rows_px,
        cols_px=cols_px,
        near_rows_px=near_rows,
        near_cols_px=near_cols,
        energy_share=np.array(parameters.energy_share, dtype=np.float32),
        chance_correlation=np.array(parameters.chance_correlation, dtype=np.float32),
    )


def _fit_numbers(parameters: FitParameters) -> FitNumbers:
    return FitNumbers(
        defocus_slope=np.float32(parameters.defocus.slope),
        max_move=np.float32(parameters.max_move),
        anchor_precision=np.float32(1 / parameters.anchor_sigma**2),
        smoothed_gain=np.float32(parameters.smoothed_gain),
        laplacian_gain=np.float32(parameters.laplacian_gain),
        gradient_gain=np.float32(parameters.gradient_gain),
        noise_area=np.float32(parameters.noise_area),
        agreement_sigmas=np.float32(parameters.agreement_sigmas),
        unexplained_share=np.float32(parameters.unexplained_share),
    )


def _spline_taps() -> Image:
    """Return the filter from pixels to cubic spline coefficients: its pole to the distance."""
    pole = np.sqrt(3.0) - 2.0
    taps = np.sqrt(3.0) * pole ** np.arange(_SPLINE_REACH + 1)
    return np.asarray(taps, dtype=np.float32)
