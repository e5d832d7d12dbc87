"""The refinement in plain NumPy; `estimate.refine` says what it is for."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from d3s.estimate.flags import Flag
from d3s.estimate.joint.types import (
    FLAT,
    TINY,
    UNKNOWN_PX,
    Array,
    Fit,
    Fitting,
    Plane,
    Refined,
    window_pixels,
)
from d3s.types import Mask

_EDGES = "nearest"  # beyond the border an image goes on as its last pixel


class PlainRefine:
    """Double precision, one image after the other."""

    def halved(self, image: Array) -> Array:
        """Mean of the middle two of each 2 x 2 pixels."""
        padded = np.pad(image, [(0, size % 2) for size in image.shape], mode="edge")
        four = np.stack([padded[i::2, j::2] for i in (0, 1) for j in (0, 1)])
        return np.asarray((four.sum(0) - four.min(0) - four.max(0)) / 2)

    def doubled(self, image: Array, shape: tuple[int, int]) -> Array:
        """Image of a shape, linear between the pixels, each of which stands for 2 x 2."""
        for axis in (0, 1):
            before = image.take(np.maximum(np.arange(image.shape[axis]) - 1, 0), axis)
            after = image.take(
                np.minimum(np.arange(image.shape[axis]) + 1, image.shape[axis] - 1), axis
            )
            both = np.stack(
                [0.75 * image + 0.25 * before, 0.75 * image + 0.25 * after], axis=axis + 1
            )
            twice = [2 * size if i == axis else size for i, size in enumerate(image.shape)]
            image = both.reshape(twice).take(np.arange(shape[axis]), axis)
        return image

    def cells(
        self, left: Array, right: Array, disparity: Array, wanted: Mask, fitting: Fitting
    ) -> Array:
        """Sums over the pixels of each cell, at the disparity of the cell; of all of them."""
        del wanted
        rows, cols = left.shape
        side = fitting.cell
        every = disparity.repeat(side, 0).repeat(side, 1)[:rows, :cols]
        spline = ndimage.spline_filter1d(right, order=3, axis=1, mode="mirror")
        constant, slope = fitting.defocus
        place = np.arange(cols) - every
        whole = np.floor(place).astype(np.int64)
        inside = (whole >= 1) & (whole <= cols - 3)
        t = np.where(inside, place - whole, 0.0)
        u = 1 - t
        weights = (u**3 / 6, 2 / 3 - t * t + t**3 / 2, 2 / 3 - u * u + u**3 / 2, t**3 / 6)
        slopes = (-u * u / 2, t * (3 * t - 4) / 2, -u * (3 * u - 4) / 2, t * t / 2)

        def read(image: Array, taps: tuple[Array, ...]) -> Array:
            total = np.zeros(left.shape)
            for k, tap in enumerate(taps):
                columns = np.clip(whole + k - 1, 0, cols - 1)
                total += tap * np.take_along_axis(image, columns, axis=1)
            return total

        moved, moved_x = read(spline, weights), read(spline, slopes)
        lap = 0.5 * (_laplacian(left) + read(_laplacian(spline), weights))
        mean = np.where(inside, 0.5 * (left + moved), left)
        residual = np.where(inside, left - moved + (constant + slope * every) * lap, 0.0)
        by_shift = np.where(inside, 0.5 * (_gradient_x(left) + moved_x), 0.0)
        gradient = np.where(inside, by_shift + slope * lap, 0.0)
        h = gradient * every - residual
        products = (
            gradient,
            h,
            gradient**2,
            gradient * h,
            residual,
            residual**2,
            by_shift**2,
            mean,
            mean**2,
        )
        planes = [_cell_sums(product, side) for product in products]
        pixels = cell_pixels(fitting)
        smooth_g = planes[Plane.G] / pixels
        for axis in (0, 1):
            smooth_g = ndimage.correlate1d(smooth_g, fitting.taps, axis=axis, mode=_EDGES)
        return np.stack([*planes, smooth_g * pixels, smooth_g**2 * pixels])

    def scales(
        self, disparity_px: Array, finer: dict[int, tuple[float, float]]
    ) -> NDArray[np.uint8]:
        """Coarsest scale at which each cell may be fitted."""
        out = np.ones(disparity_px.shape, dtype=np.uint8)
        for scale, (low, high) in sorted(finer.items()):
            out[(disparity_px < low) | (disparity_px > high)] = scale
        return out

    def one_surface(
        self, disparity: Array, halves: tuple[int, ...], least: float, share: float, zero: float
    ) -> NDArray[np.uint8]:
        """How many windows in a row hold disparities that may be of one surface."""
        limit = np.maximum(least, share * np.abs(disparity - zero))
        extents = [_extent(disparity, half) <= limit for half in halves]
        return np.asarray(np.cumprod(extents, axis=0).sum(axis=0), dtype=np.uint8)

    def usable(
        self, disparity: Array, fitting: Fitting, least: float, share: float, zero: float
    ) -> NDArray[np.uint8]:
        """How many of the larger windows lie within both views and on one surface."""
        count = np.zeros(disparity.shape, dtype=np.uint8)
        if len(fitting.halves) > 1:
            count = self.one_surface(disparity, fitting.halves[1:], least, share, zero)
        for place, half in enumerate(fitting.halves[1:], start=1):
            outside = ~_is_inside(disparity, half, fitting)
            count[outside] = np.minimum(count[outside], place - 1)
        return count

    def finished(self, fit: Fit, fitting: Fitting, scale: int) -> Refined:
        """A fit in pixels of the frame."""
        halves = np.asarray(fitting.halves)[fit.used]
        inside = _is_inside(fit.disparity, halves, fitting)
        disparity, bend = self.straightened(fit, fitting)
        return Refined(
            disparity_px=disparity * scale,
            sigma_px=fit.sigma * scale,
            bend_px=bend * scale,
            correlation=fit.correlation,
            misfit=fit.misfit,
            flags=np.where(inside, 0, int(Flag.BORDER)).astype(np.uint16),
        )

    def wanted(self, scales: NDArray[np.uint8], least: int, most: int, *, is_coarse: bool) -> Mask:
        """Cells of these scales; of a grid of half the size, those they are interpolated from."""
        mask = (scales >= least) & (scales <= most)
        if not is_coarse:
            return mask
        padded = np.pad(mask, [(1, 1 + size % 2) for size in mask.shape])
        rows, cols = (size // 2 - 1 for size in padded.shape)
        four = range(4)
        near = [padded[i : i + 2 * rows : 2, j : j + 2 * cols : 2] for i in four for j in four]
        return np.asarray(np.any(near, axis=0))

    def merged(
        self, disparity_px: Array, coarse_px: Array, scales: NDArray[np.uint8], most: int
    ) -> Array:
        """Disparities of a coarser grid, but those of the cells beyond a scale."""
        shape = scales.shape[0], scales.shape[1]
        return np.where(scales <= most, self.doubled(coarse_px, shape), disparity_px)

    def joined(self, parts: dict[int, Refined], scales: NDArray[np.uint8]) -> Refined:
        """Each cell from the part of its scale, interpolated if that is coarser."""
        shape = scales.shape[0], scales.shape[1]
        a, b, c, d, e = (np.zeros(shape) for _ in range(5))
        best = Refined(a, b, c, d, e, np.zeros(shape, np.uint16))
        for scale, part in parts.items():
            here = scales == scale
            for target, values in zip(best, part, strict=True):
                if values.shape == shape:
                    full = values
                elif values.dtype == np.uint16:
                    full = values.repeat(2, 0).repeat(2, 1)[: shape[0], : shape[1]]
                else:
                    full = self.doubled(values, shape)
                target[here] = full[here]
        return best

    def moved(
        self,
        sums: Array,
        disparity: Array,
        usable: NDArray[np.uint8],
        wanted: Mask,
        fitting: Fitting,
    ) -> Array:
        """Disparity by least squares, of the wanted cells; the others stay where they are."""
        noise = np.zeros_like(disparity)
        return self.fit(sums, disparity, usable, noise, wanted, fitting).disparity

    def settled(self, sums: Array, before: Array, after: Array) -> Array:
        """Sums of cells as they would be at other disparities, to first order."""
        out = sums.copy()
        move = after - before
        ge = before * sums[Plane.GG] - sums[Plane.GH]
        out[Plane.E] += move * sums[Plane.G]
        squares = out[Plane.EE] + move * (2 * ge + move * sums[Plane.GG])
        out[Plane.EE] = np.maximum(squares, 0)
        return out

    def fit(
        self,
        sums: Array,
        disparity: Array,
        usable: NDArray[np.uint8],
        noise: Array,
        wanted: Mask,
        fitting: Fitting,
    ) -> Fit:
        """Least squares over the largest window that is usable and that its smaller ones back."""
        pixels = cell_pixels(fitting)
        planes = {plane.name.lower(): sums[plane] for plane in Plane}
        row = np.arange(disparity.shape[0], dtype=np.float64)[:, None]
        col = np.arange(disparity.shape[1], dtype=np.float64)[None, :]
        found = []
        for half in fitting.halves:
            count = _window(pixels, half)
            mean = {name: _window(plane, half) / count for name, plane in planes.items()}
            gg = mean["gg"] - mean["g"] ** 2
            weight = np.maximum(mean["gg"] * count, TINY)
            is_some = gg > FLAT
            found.append(
                {
                    "gg": gg,
                    "disparity": (mean["gh"] - mean["g"] * mean["h"]) / np.maximum(gg, FLAT),
                    "ee": np.maximum(mean["ee"] - mean["e"] ** 2, 0),
                    "ss": mean["ss"],
                    "texture": np.maximum(mean["mm"] - mean["m"] ** 2, 0),
                    "through": np.maximum(mean["uu"] - mean["u"] ** 2, 0),
                    "pixels": count,
                    "down": np.where(is_some, _window(planes["gg"] * row, half) / weight - row, 0),
                    "across": np.where(
                        is_some, _window(planes["gg"] * col, half) / weight - col, 0
                    ),
                }
            )
        used = np.zeros(disparity.shape, dtype=np.uint8)
        for place, (small, large) in enumerate(pairwise(found), start=1):
            variance = (
                small["ee"] * fitting.area / (small["pixels"] * np.maximum(small["gg"], FLAT))
            )
            agree = (large["disparity"] - small["disparity"]) ** 2 <= fitting.apart**2 * variance
            used[agree & (usable >= place) & (used == place - 1)] = place
        chosen = {name: np.choose(used, [one[name] for one in found]) for name in found[0]}
        is_flat = chosen["gg"] <= FLAT
        moved = np.clip(chosen["disparity"], disparity - fitting.reach, disparity + fitting.reach)
        moved = np.where(is_flat, disparity, moved)
        per_noise = _in_residual(moved, fitting)
        residual = chosen["ee"] / per_noise
        sensor = np.minimum(noise, residual)
        mixed = sensor + fitting.unexplained * (residual - sensor)
        telling = np.minimum(chosen["gg"], chosen["ss"]) - 0.5 * fitting.gradient_gain * mixed
        telling = np.maximum(telling, 0.03 * chosen["gg"])
        share = np.asarray(fitting.share_inside)[used]
        sigma = np.sqrt(2 * mixed * chosen["through"] * share / chosen["pixels"])
        sigma = sigma / np.maximum(telling, 0.1 * FLAT)
        texture = 4 * chosen["texture"]
        grain = np.maximum(2 * fitting.smoothed_gain * mixed, TINY)
        alike = (texture - grain) / (texture + grain)
        chance = np.asarray(fitting.chance)[used]
        beyond = np.maximum((alike - chance) / (1 - alike * chance), 0)
        near = _window(pixels, 1)
        tone = np.maximum(
            _window(planes["mm"], 1) / near - (_window(planes["m"], 1) / near) ** 2, 0
        )
        left_over = np.maximum(
            _window(planes["ee"], 1) / near - (_window(planes["e"], 1) / near) ** 2, 0
        )
        misfit = left_over / np.maximum(noise * per_noise + 0.01 * tone, TINY)
        return Fit(
            disparity=np.where(wanted, moved, disparity),
            sigma=np.where(is_flat | ~wanted, UNKNOWN_PX, sigma),
            correlation=np.where(is_flat | ~wanted, 0, beyond),
            misfit=np.where(wanted, misfit, 0),
            down=np.where(wanted, chosen["down"], 0),
            across=np.where(wanted, chosen["across"], 0),
            used=np.where(wanted, used, 0).astype(np.uint8),
        )

    def straightened(self, fit: Fit, fitting: Fitting) -> tuple[Array, Array]:
        """Disparity and error of a surface that is not flat.

        The disparity is less what a slope adds where the texture lies to one side of the window.
        The error is what a bend may add that is more than noise makes of one.
        """
        disparity, square = fit.disparity.copy(), np.zeros_like(fit.disparity)
        for axis, offset in ((0, fit.down), (1, fit.across)):
            slope, more = np.zeros_like(disparity), np.zeros_like(disparity)
            for place, step in enumerate(fitting.halves[1:], start=1):
                before, after = (_shifted(fit.disparity, side, axis) for side in (-step, step))
                lies, ends = (_shifted(offset, side, axis) for side in (-step, step))
                run = 2 * step + ends - lies
                # Beside a step, or where the match is out of the frame, there is none but the
                # smallest window, and its disparity says little.
                near = np.minimum(*(_shifted(fit.used, side, axis) for side in (-step, step)))
                is_one = (fit.used >= place) & (near >= 1) & (run > 0.5 * step)
                steep = (after - before) / np.where(is_one, run, 1)
                bend = before + after - 2 * fit.disparity - steep * (lies + ends - 2 * offset)
                noise = sum(_shifted(fit.sigma, side, axis) ** 2 for side in (-step, 0, step))
                beyond = np.maximum(bend**2 - fitting.bend_noise / 3 * noise, 0)
                more = np.where(is_one, np.maximum(beyond, more), more)
                slope = np.where(is_one & (near >= place), steep, slope)
            disparity -= offset * slope
            square += fitting.bend**2 * more
        return disparity, np.sqrt(square)


def _is_inside(disparity: Array, half: Array | int, fitting: Fitting) -> Mask:
    """Whether a window and its match lie within the frame."""
    rows, cols = disparity.shape
    row, col = np.arange(rows)[:, None], np.arange(cols)[None, :]
    first = (col - half) * fitting.cell - np.maximum(disparity, 0)
    last = (col + half + 1) * fitting.cell - 1 - np.minimum(disparity, 0)
    across = (first >= 0) & (last <= fitting.shape[1] - 1)
    return np.asarray(across & (np.minimum(row, rows - 1 - row) >= half))


def cell_pixels(fitting: Fitting) -> Array:
    """How many pixels each cell has: fewer at the end of an odd side."""
    return np.outer(*(window_pixels(size, fitting.cell, (0,))[0] for size in fitting.shape))


def _in_residual(disparity: Array, fitting: Fitting) -> Array:
    """Variance that white noise of variance one in both views has in the residual."""
    constant, slope = fitting.defocus
    return (
        2 * fitting.smoothed_gain
        + 0.5 * fitting.laplacian_gain * (constant + slope * disparity) ** 2
    )


def _cell_sums(image: Array, side: int) -> Array:
    if side == 1:
        return image
    padded = np.pad(image, [(0, -size % side) for size in image.shape])
    return np.asarray(sum(padded[i::side, j::side] for i in range(side) for j in range(side)))


def _window(image: Array, half: int) -> Array:
    """Sum over 2 half + 1 pixels each way, fewer at the border."""
    size = 2 * half + 1
    return np.asarray(ndimage.uniform_filter(image, size, mode="constant") * size**2)


def _extent(image: Array, half: int) -> Array:
    size = 2 * half + 1
    return np.asarray(
        ndimage.maximum_filter(image, size, mode=_EDGES)
        - ndimage.minimum_filter(image, size, mode=_EDGES)
    )


def _laplacian(image: Array) -> Array:
    return np.asarray(ndimage.correlate(image, [[0, 1, 0], [1, -4, 1], [0, 1, 0]], mode=_EDGES))


def _gradient_x(image: Array) -> Array:
    slope = ndimage.correlate1d(image, [1 / 12, -8 / 12, 0, 8 / 12, -1 / 12], axis=1)
    slope[:, :2] = slope[:, -2:] = 0
    return np.asarray(slope)


def _shifted(image: Array, step: int, axis: int) -> Array:
    """Image read `step` pixels ahead; beyond the border its last pixel."""
    places = np.clip(np.arange(image.shape[axis]) + step, 0, image.shape[axis] - 1)
    return np.take(image, places, axis=axis)
