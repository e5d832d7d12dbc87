"""The operations of the joint method in plain NumPy and SciPy, in double precision.

Written from what `Operations` says, not from the kernels: other sums, other splines, other paths.
With them the joint method is its own oracle, `joint_reference`.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from d3s.estimate.images import Image
from d3s.estimate.joint import JointResult, joint_result
from d3s.estimate.operations import Array, Comparison, Pick, View, gaussian_kernel
from d3s.estimate.options import JointOptions
from d3s.estimate.search import window_counts
from d3s.rig import Rig


def joint_reference(left: Image, right: Image, rig: Rig, options: JointOptions) -> JointResult:
    """What `joint_result` gives in single precision, in double; of images that were checked."""
    return joint_result(left, right, rig, options, PlainOperations())


class PlainOperations:
    """Double precision, one thread, nothing compiled here."""

    dtype: type[np.floating[Any]] = np.float64

    def smooth(self, image: Array, sigma_px: float, step: int = 1) -> Array:
        """Gaussian, then every `step`-th pixel; the image goes on as its mirror image."""
        from scipy.ndimage import correlate1d  # importing scipy takes longer than the rest of d3s

        kernel = gaussian_kernel(sigma_px)
        across = correlate1d(image, kernel, axis=1, mode="mirror")
        both = correlate1d(across, kernel, axis=0, mode="mirror")
        return np.ascontiguousarray(both[::step, ::step])

    def window_sums(self, image: Array, half: int) -> Array:
        """Zeros around the image add nothing to a sum."""
        for axis in (0, 1):
            wide = np.pad(image, [(half, half) if i == axis else (0, 0) for i in (0, 1)])
            image = sliding_window_view(wide, 2 * half + 1, axis=axis).sum(axis=-1)
        return image

    def window_extent(self, image: Array, half: int) -> Array:
        """Pixels that repeat at the border change no extreme."""
        from scipy.ndimage import maximum_filter, minimum_filter

        side = 2 * half + 1
        highest = maximum_filter(image, size=side, mode="nearest")
        return np.asarray(highest - minimum_filter(image, size=side, mode="nearest"))

    def median_of_nine(self, image: Array) -> Array:
        """Median over a pixel and its neighbours; the image goes on as its last pixel."""
        wide = np.pad(image, 1, mode="edge")
        return np.asarray(np.median(sliding_window_view(wide, (3, 3)), axis=(2, 3)))

    def spline(self, image: Array) -> Array:
        """Coefficients of cubic splines along the rows; these go on as their mirror image."""
        from scipy.ndimage import spline_filter1d

        return np.asarray(spline_filter1d(image, order=3, axis=1, mode="mirror"))

    def laplacian(self, image: Array) -> Array:
        """Second differences along both axes; the image goes on as its last pixel."""
        wide = np.pad(image, 1, mode="edge")
        return np.asarray(np.diff(wide[:, 1:-1], 2, axis=0) + np.diff(wide[1:-1], 2, axis=1))

    def gradient_x(self, image: Array) -> Array:
        """Slope of the parabola of fourth order through five pixels; zero in the outer two."""
        out = np.zeros_like(image)
        if image.shape[1] > 4:
            out[:, 2:-2] = sliding_window_view(image, 5, axis=1) @ (
                np.array([1, -8, 0, 8, -1]) / 12
            )
        return out

    def compare(
        self, left: View, left_x: Array, right: View, disparity: Array, defocus: tuple[float, float]
    ) -> Comparison:
        """By the B-spline itself; where it would leave the frame, nothing is compared."""
        cols = disparity.shape[1]
        place = np.arange(cols) - disparity
        inside = (place >= 1) & (place < cols - 2)
        where = np.where(inside, place, 1)
        moved, moved_x, moved_lap = (
            _on_spline(right.image, where),
            _on_spline(right.image, where, derivative=1),
            _on_spline(right.laplacian, where),
        )
        lap = (left.laplacian + moved_lap) / 2
        residual = left.image - moved + (defocus[0] + defocus[1] * disparity) * lap
        gradient = (left_x + moved_x) / 2 + defocus[1] * lap
        return Comparison(
            mean=np.where(inside, (left.image + moved) / 2, left.image),
            residual=np.where(inside, residual, 0.0),
            gradient=np.where(inside, gradient, 0.0),
        )

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
        """Mean squares of the whole picture, shift by shift.

        Where a window would leave the overlap of both views sideways, the cost is `limit`.
        """
        cols = left.image.shape[1]
        costs = np.full((*left.image.shape, shifts.size), limit)
        for k, (shift, blur) in enumerate(zip(shifts.tolist(), defocus / 2, strict=True)):
            here = slice(max(shift, 0), max(min(cols, cols + shift), 0))
            there = slice(max(-shift, 0), max(min(cols, cols - shift), 0))
            if here.stop - here.start <= 2 * half:
                continue
            a = left.image[:, here] + blur * left.laplacian[:, here]
            b = right.image[:, there] - blur * right.laplacian[:, there]
            count = window_counts(a, half)
            misfit = self.window_sums((a - b) ** 2, half) / count
            energy = self.window_sums(a**2 + b**2, half) / count
            cost = np.minimum(misfit / (floor + tolerance * energy), limit)
            inner = slice(half, cost.shape[1] - half)
            costs[:, here, k][:, inner] = cost[:, inner]
        return costs

    def path_sums(self, costs: Array, small_step: float, large_step: float) -> Array:
        """From above, from below, from the left and from the right."""
        turned = costs.swapaxes(0, 1)
        return np.asarray(
            _path_from_above(costs, small_step, large_step)
            + _path_from_above(costs[::-1], small_step, large_step)[::-1]
            + _path_from_above(turned, small_step, large_step).swapaxes(0, 1)
            + _path_from_above(turned[::-1], small_step, large_step)[::-1].swapaxes(0, 1)
        )

    def pick_left(self, total: Array) -> Pick:
        """The lowest, moved to the lowest point of the parabola through its neighbours."""
        depth = total.shape[2]
        lowest = total.argmin(axis=2)

        def cost_at(step: NDArray[np.int64]) -> Array:
            return np.take_along_axis(total, np.clip(step, 0, depth - 1)[..., None], axis=2)[..., 0]

        value, before, after = cost_at(lowest), cost_at(lowest - 1), cost_at(lowest + 1)
        bend = before + after - 2 * value
        bent = (lowest > 0) & (lowest < depth - 1) & (bend > 0)
        offset = np.where(bent, (before - after) / (2 * np.where(bent, bend, 1)), 0)
        walls = np.pad(total, ((0, 0), (0, 0), (1, 1)), constant_values=np.inf)
        is_valley = (total <= walls[..., :-2]) & (total <= walls[..., 2:])
        is_valley &= np.abs(np.arange(depth) - lowest[..., None]) > 1
        other = np.where(is_valley, total, np.inf).argmin(axis=2)
        return Pick(lowest + offset, lowest, np.where(is_valley.any(axis=2), other, -1))

    def pick_right(self, total: Array, first: int) -> NDArray[np.int64]:
        """Costs of one pixel of the right view lie on a slant: straightened, then the lowest."""
        rows, cols, depth = total.shape
        place = np.arange(cols)[:, None] + first + np.arange(depth)
        inside = (place >= 0) & (place < cols)
        slant = total[:, np.where(inside, place, 0), np.arange(depth)]
        slant = np.where(inside, slant, np.inf)
        lowest = slant.argmin(axis=2)
        return np.where(inside.any(axis=1), lowest, np.full((rows, cols), -1))


def _on_spline(coefficients: Array, place: Array, derivative: int = 0) -> Array:
    """Value, or derivative, of each row's spline at places at least one pixel from its ends.

    What comes back for other places is of no use, and no error.
    """
    from scipy.interpolate import BSpline

    bell = BSpline.basis_element([-2, -1, 0, 1, 2])
    if derivative:
        bell = bell.derivative(derivative)
    whole, last = np.floor(place).astype(np.int64), place.shape[1] - 1
    total = np.zeros_like(place)
    for knot in (whole - 1, whole, whole + 1, whole + 2):
        inside = np.clip(knot, 0, last)
        total += bell(place - knot) * np.take_along_axis(coefficients, inside, axis=1)
    return total


def _path_from_above(costs: Array, small_step: float, large_step: float) -> Array:
    """Cost of the cheapest way down to each pixel and shift, less the cheapest of the row before.

    costs is (rows, cols, shifts) and a way goes from row to row; Hirschmüller's equation 13.
    """
    out = np.empty_like(costs)
    out[0] = costs[0]
    for row in range(1, len(costs)):
        before = out[row - 1]
        lowest = before.min(axis=1, keepdims=True)
        wide = np.pad(before, ((0, 0), (1, 1)), constant_values=np.inf)
        neighbour = np.minimum(wide[:, :-2], wide[:, 2:]) + small_step
        best = np.minimum(np.minimum(before, neighbour), lowest + large_step)
        out[row] = costs[row] + best - lowest
    return out
