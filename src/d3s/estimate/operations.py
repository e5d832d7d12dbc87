"""What the joint method does to images, twice over: compiled in single precision, and plain.

The method itself (`search`, `refine`, `joint`) is written once, over these operations. The compiled
ones run in the threads of `d3s.threads`; the plain ones are in `reference_operations` and are what
the others are held against.
"""

from math import ceil
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from d3s.estimate import kernels
from d3s.threads import over_rows

Array = NDArray[Any]  # of the precision of the operations


class View(NamedTuple):
    """One view at one resolution, and its Laplacian."""

    image: Array
    laplacian: Array


class Comparison(NamedTuple):
    """Both views, one moved over the other."""

    mean: Array
    residual: Array  # left less right, blurred alike
    gradient: Array  # of the residual to the disparity


class Pick(NamedTuple):
    """Lowest of the costs of each pixel."""

    step: Array  # counted from the first shift, between the whole ones
    lowest: NDArray[np.int64]  # the whole one
    other: NDArray[np.int64]  # that of the next best valley, -1 if there is none


class Operations(Protocol):
    """What there must be; all arrays (rows, cols), costs (rows, cols, shifts)."""

    dtype: type[np.floating[Any]]

    def smooth(self, image: Array, sigma_px: float, step: int = 1) -> Array:
        """Gaussian, then every `step`-th pixel; the image goes on as its mirror image."""

    def window_sums(self, image: Array, half: int) -> Array:
        """Sum over 2 half + 1 pixels each way, fewer at the border."""

    def window_extent(self, image: Array, half: int) -> Array:
        """Largest less smallest value over 2 half + 1 pixels each way, fewer at the border."""

    def median_of_nine(self, image: Array) -> Array:
        """Median over a pixel and its neighbours; the image goes on as its last pixel."""

    def spline(self, image: Array) -> Array:
        """Coefficients of cubic splines along the rows that pass through the pixels."""

    def laplacian(self, image: Array) -> Array:
        """Five-point Laplacian; the image goes on as its last pixel."""

    def gradient_x(self, image: Array) -> Array:
        """Derivative along x by five points; zero in the outer two columns."""

    def compare(
        self, left: View, left_x: Array, right: View, disparity: Array, defocus: tuple[float, float]
    ) -> Comparison:
        """Left view against the right one, given as splines, moved by a disparity per pixel."""

    def matching_costs(
        self,
        left: View,
        right: View,
        shifts: NDArray[np.int64],
        defocus: NDArray[np.float64],
        *,
        half: int,
        floor: float,
        tolerance: float,
        limit: float,
    ) -> Array:
        """Misfit at whole shifts, over what noise and texture explain; see the kernel."""

    def path_sums(self, costs: Array, small_step: float, large_step: float) -> Array:
        """Semi-global costs: the least along paths from four sides, added up."""

    def pick_left(self, total: Array) -> Pick:
        """Lowest cost of each pixel of the left view."""

    def pick_right(self, total: Array, first: int) -> NDArray[np.int64]:
        """Step of the lowest cost of each pixel of the right view, -1 where there is none."""


def gaussian_kernel(sigma_px: float) -> NDArray[np.float64]:
    """Gaussian of unit sum, cut where a float of 24 bits would not see it."""
    reach = ceil(4.5 * sigma_px)
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma_px) ** 2)
    return np.asarray(bell / bell.sum())


class CompiledOperations:
    """Single precision, machine code, rows shared out among the cores."""

    dtype: type[np.floating[Any]] = np.float32

    def smooth(self, image: Array, sigma_px: float, step: int = 1) -> Array:
        """Gaussian, then every `step`-th pixel."""
        kernel = gaussian_kernel(sigma_px).astype(np.float32)
        across, out = np.empty_like(image), np.empty_like(image[::step, ::step], order="C")
        over_rows(kernels.smooth_rows, image.shape[0], image, kernel, across)
        over_rows(kernels.smooth_cols, out.shape[0], across, kernel, step, out)
        return out

    def window_sums(self, image: Array, half: int) -> Array:
        """Sums along the rows, then along the columns in bands."""
        across, out = np.empty_like(image), np.empty_like(image)
        over_rows(kernels.sums_along_rows, image.shape[0], image, half, across)
        bands = -(-image.shape[0] // kernels.BAND)
        over_rows(kernels.sums_along_cols, bands, across, half, out)
        return out

    def window_extent(self, image: Array, half: int) -> Array:
        """Extremes along the rows, then along the columns."""
        low, high, out = (np.empty_like(image) for _ in range(3))
        over_rows(kernels.extent_along_rows, image.shape[0], image, half, low, high)
        over_rows(kernels.extent_along_cols, image.shape[0], low, high, half, out)
        return out

    def median_of_nine(self, image: Array) -> Array:
        """By insertion."""
        return self._filled(kernels.median_of_nine, image)

    def spline(self, image: Array) -> Array:
        """Forth and back along each row."""
        return self._filled(kernels.spline_coefficients, image)

    def laplacian(self, image: Array) -> Array:
        """Four neighbours less four times the pixel."""
        return self._filled(kernels.laplacian, image)

    def gradient_x(self, image: Array) -> Array:
        """By five points."""
        return self._filled(kernels.gradient_x, image)

    def compare(
        self, left: View, left_x: Array, right: View, disparity: Array, defocus: tuple[float, float]
    ) -> Comparison:
        """All three images in one pass."""
        out = Comparison(*(np.empty_like(disparity) for _ in range(3)))
        line = np.array(defocus, dtype=np.float32)
        rows = disparity.shape[0]
        over_rows(
            kernels.residuals,
            rows,
            left.image,
            left_x,
            left.laplacian,
            *right,
            disparity,
            line,
            *out,
        )
        return out

    def matching_costs(
        self,
        left: View,
        right: View,
        shifts: NDArray[np.int64],
        defocus: NDArray[np.float64],
        *,
        half: int,
        floor: float,
        tolerance: float,
        limit: float,
    ) -> Array:
        """Row by row, each shift in turn."""
        costs = np.empty((*left.image.shape, shifts.size), dtype=np.float32)
        numbers = (np.float32(floor), np.float32(tolerance), np.float32(limit))
        over_rows(
            kernels.matching_costs,
            costs.shape[0],
            *left,
            *right,
            shifts,
            defocus.astype(np.float32),
            half,
            *numbers,
            costs,
        )
        return costs

    def path_sums(self, costs: Array, small_step: float, large_step: float) -> Array:
        """Rows first, then columns."""
        total, steps = np.empty_like(costs), (np.float32(small_step), np.float32(large_step))
        over_rows(kernels.paths_along_rows, costs.shape[0], costs, *steps, total)
        over_rows(kernels.paths_along_cols, costs.shape[1], costs, *steps, total)
        return total

    def pick_left(self, total: Array) -> Pick:
        """One look at all the costs of a pixel."""
        rows, cols = total.shape[:2]
        lowest, other = (np.empty((rows, cols), np.int64) for _ in range(2))
        out = Pick(np.empty((rows, cols), np.float32), lowest, other)
        over_rows(kernels.pick_left, rows, total, *out)
        return out

    def pick_right(self, total: Array, first: int) -> NDArray[np.int64]:
        """Costs of one pixel of the right view lie on a slant."""
        rows, cols = total.shape[:2]
        out = np.empty((rows, cols), dtype=np.int64)
        over_rows(kernels.pick_right, rows, total, first, out)
        return out

    def _filled(self, kernel: Any, image: Array) -> Array:
        out = np.empty_like(image)
        over_rows(kernel, image.shape[0], image, out)
        return out
