"""Operations of the refinement in NumPy; `estimate.joint.refine` explains the fit."""

from itertools import pairwise

import numpy as np
from scipy import ndimage

from d3s.estimate.flags import Flag
from d3s.estimate.joint.types import (
    FLAT,
    TINY,
    UNKNOWN_PX,
    Array,
    BlurPlane,
    CellFit,
    CellSum,
    Counts,
    FitParameters,
    SurfaceLimits,
    WindowFit,
    window_pixels,
)
from d3s.types import Mask

_EDGES = "nearest"  # edge pixels are repeated beyond the border


def halve(image: Array) -> Array:
    """Shrink by two: the mean of the middle two values of each 2 x 2 pixels."""
    padded = np.pad(image, [(0, size % 2) for size in image.shape], mode="edge")
    four = np.stack([padded[i::2, j::2] for i in (0, 1) for j in (0, 1)])
    return np.asarray((four.sum(0) - four.min(0) - four.max(0)) / 2)


def double(image: Array, shape: tuple[int, int]) -> Array:
    """Enlarge by two to a shape, by linear interpolation."""
    for axis in (0, 1):
        before = image.take(np.maximum(np.arange(image.shape[axis]) - 1, 0), axis)
        after = image.take(
            np.minimum(np.arange(image.shape[axis]) + 1, image.shape[axis] - 1), axis
        )
        both = np.stack([0.75 * image + 0.25 * before, 0.75 * image + 0.25 * after], axis=axis + 1)
        twice = [2 * size if i == axis else size for i, size in enumerate(image.shape)]
        image = both.reshape(twice).take(np.arange(shape[axis]), axis)
    return image


def sum_cells(
    left: Array,
    right: Array,
    disparity: Array,
    wanted: Mask,
    parameters: FitParameters,
    blur: Array | None = None,
) -> Array:
    """Return the sums `CellSum` over the pixels of each cell (sums, rows, cols).

    At least of the cells that the windows of a wanted cell reach.
    """
    del wanted
    rows, cols = left.shape
    side = parameters.cell_side
    every = disparity.repeat(side, 0).repeat(side, 1)[:rows, :cols]
    spline = ndimage.spline_filter1d(right, order=3, axis=1, mode="mirror")
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
    pairs = zip(_second_derivatives(left), _second_derivatives(spline), strict=True)
    seconds = [0.5 * (one + read(other, weights)) for one, other in pairs]
    if blur is None:
        lap, (constant, slope) = seconds[0] + seconds[2], parameters.defocus
        differences = (constant + slope * every) * lap, slope * lap
    else:
        parts = blur.repeat(side, 1).repeat(side, 2)[:, :rows, :cols]
        across, mixed, down = seconds
        lower = 0.5 * (_gradient_y(left) + read(_gradient_y(spline), weights))
        skew = [
            0.5 * (one + read(other, weights))
            for one, other in zip(_laplacian_slopes(left), _laplacian_slopes(spline), strict=True)
        ]
        differences = (
            parts[BlurPlane.XX] * across
            + 2 * parts[BlurPlane.XY] * mixed
            + parts[BlurPlane.YY] * down
            + parts[BlurPlane.HIGHER] * lower
            + parts[BlurPlane.COMA_X] * skew[0]
            + parts[BlurPlane.COMA_Y] * skew[1],
            parts[BlurPlane.XX_SLOPE] * across
            + 2 * parts[BlurPlane.XY_SLOPE] * mixed
            + parts[BlurPlane.YY_SLOPE] * down,
        )
    mean = np.where(inside, 0.5 * (left + moved), left)
    residual = np.where(inside, left - moved + differences[0], 0.0)
    by_shift = np.where(inside, 0.5 * (_gradient_x(left) + moved_x), 0.0)
    gradient = np.where(inside, by_shift + differences[1], 0.0)
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
    pixels = cell_pixels(parameters)
    smooth_g = planes[CellSum.G] / pixels
    for axis in (0, 1):
        smooth_g = ndimage.correlate1d(smooth_g, parameters.cell_taps, axis=axis, mode=_EDGES)
    return np.stack([*planes, smooth_g * pixels, smooth_g**2 * pixels])


def scales_by_disparity(disparity_px: Array, finer_px: dict[int, tuple[float, float]]) -> Counts:
    """Return the coarsest scale at which each cell may be fitted.

    `finer_px` has, for each scale, the interval of disparities that need a finer one.
    """
    out = np.ones(disparity_px.shape, dtype=np.uint8)
    for scale, (low, high) in sorted(finer_px.items()):
        out[(disparity_px < low) | (disparity_px > high)] = scale
    return out


def count_one_surface(disparity: Array, halves: tuple[int, ...], limits: SurfaceLimits) -> Counts:
    """Count the windows, from the smallest on, whose disparities may be of one surface."""
    limit = np.maximum(limits.least, limits.share * np.abs(disparity - limits.zero))
    extents = [_extent(disparity, half) <= limit for half in halves]
    return np.asarray(np.cumprod(extents, axis=0).sum(axis=0), dtype=np.uint8)


def count_usable(disparity: Array, parameters: FitParameters, limits: SurfaceLimits) -> Counts:
    """Count the larger windows that lie within both views and on one surface."""
    count = np.zeros(disparity.shape, dtype=np.uint8)
    if len(parameters.window_halves) > 1:
        count = count_one_surface(disparity, parameters.window_halves[1:], limits)
    for place, half in enumerate(parameters.window_halves[1:], start=1):
        outside = ~_is_inside(disparity, half, parameters)
        count[outside] = np.minimum(count[outside], place - 1)
    return count


def correct_slopes(fit: WindowFit, parameters: FitParameters, scale: int) -> CellFit:
    """Remove the effect of slopes from a fit, and convert it to pixels of the frame.

    The disparity of a window is that at the centroid of its squared gradients, not at its
    centre.
    """
    halves = np.asarray(parameters.window_halves)[fit.window]
    inside = _is_inside(fit.disparity, halves, parameters)
    disparity, bend = straightened(fit, parameters)
    return CellFit(
        disparity_px=disparity * scale,
        sigma_px=fit.sigma * scale,
        bend_px=bend * scale,
        correlation=fit.correlation,
        misfit=fit.misfit,
        flags=np.where(inside, 0, int(Flag.BORDER)).astype(np.uint16),
    )


def select_cells(scales: Counts, least: int, most: int, *, is_coarse: bool) -> Mask:
    """Select the cells of scales least to most.

    On a coarse grid of half the size: the cells from which these are interpolated.
    """
    mask = (scales >= least) & (scales <= most)
    if not is_coarse:
        return mask
    padded = np.pad(mask, [(1, 1 + size % 2) for size in mask.shape])
    rows, cols = (size // 2 - 1 for size in padded.shape)
    four = range(4)
    near = [padded[i : i + 2 * rows : 2, j : j + 2 * cols : 2] for i in four for j in four]
    return np.asarray(np.any(near, axis=0))


def merge_coarse(
    disparity_px: Array, coarse_px: Array, scales: Counts, most: int, max_move_px: float
) -> Array:
    """Return the disparities of a coarser grid for cells up to a scale, else the given ones.

    Also the given ones where the two are `max_move_px` or more apart: beside a step in depth
    the coarser grid mixes both sides.
    """
    shape = scales.shape[0], scales.shape[1]
    coarse = double(coarse_px, shape)
    is_taken = (scales <= most) & (np.abs(coarse - disparity_px) < max_move_px)
    return np.where(is_taken, coarse, disparity_px)


def join_scales(parts: dict[int, CellFit], scales: Counts) -> CellFit:
    """Take each cell from the fit of its scale, interpolated if that is coarser."""
    shape = scales.shape[0], scales.shape[1]
    images = (np.zeros(shape) for _ in CellFit._fields[:-1])
    best = CellFit._make([*images, np.zeros(shape, np.uint16)])
    for scale, part in parts.items():
        here = scales == scale
        for target, values in zip(best, part, strict=True):
            if values.shape == shape:
                full = values
            elif values.dtype == np.uint16:
                full = values.repeat(2, 0).repeat(2, 1)[: shape[0], : shape[1]]
            else:
                full = double(values, shape)
            target[here] = full[here]
    return best


def update_disparity(
    sums: Array,
    disparity: Array,
    anchor: Array,
    usable: Counts,
    wanted: Mask,
    parameters: FitParameters,
) -> Array:
    """Return the least-squares disparity of the wanted cells; others keep theirs."""
    noise = np.zeros_like(disparity)
    fit = fit_windows(sums, disparity, anchor, usable, noise, wanted, parameters)
    return fit.disparity


def shift_sums(sums: Array, before: Array, after: Array) -> Array:
    """Return the sums as they would be at other disparities, to first order."""
    out = sums.copy()
    move = after - before
    ge = before * sums[CellSum.GG] - sums[CellSum.GH]
    out[CellSum.E] += move * sums[CellSum.G]
    squares = out[CellSum.EE] + move * (2 * ge + move * sums[CellSum.GG])
    out[CellSum.EE] = np.maximum(squares, 0)
    return out


def fit_windows(
    sums: Array,
    disparity: Array,
    anchor: Array,
    usable: Counts,
    noise: Array,
    wanted: Mask,
    parameters: FitParameters,
    blur: Array | None = None,
) -> WindowFit:
    """Fit each wanted cell over the largest usable window that its smaller windows agree with.

    `noise` is the variance of one view's white noise around each cell. Cells outside `wanted`
    keep their disparity; their sigma is `UNKNOWN_PX`.
    """
    pixels = cell_pixels(parameters)
    planes = {plane.name.lower(): sums[plane] for plane in CellSum}
    row = np.arange(disparity.shape[0], dtype=np.float64)[:, None]
    col = np.arange(disparity.shape[1], dtype=np.float64)[None, :]
    found = []
    for half in parameters.window_halves:
        count = _window(pixels, half)
        mean = {name: _window(plane, half) / count for name, plane in planes.items()}
        gg = mean["gg"] - mean["g"] ** 2
        weight = np.maximum(mean["gg"] * count, TINY)
        has_texture = gg > FLAT
        found.append(
            {
                "gg": gg,
                "disparity": (mean["gh"] - mean["g"] * mean["h"]) / np.maximum(gg, FLAT),
                "ee": np.maximum(mean["ee"] - mean["e"] ** 2, 0),
                "ss": mean["ss"],
                "texture": np.maximum(mean["mm"] - mean["m"] ** 2, 0),
                "energy": np.maximum(mean["uu"] - mean["u"] ** 2, 0),
                "pixels": count,
                "down": np.where(has_texture, _window(planes["gg"] * row, half) / weight - row, 0),
                "across": np.where(
                    has_texture, _window(planes["gg"] * col, half) / weight - col, 0
                ),
            }
        )
    window = np.zeros(disparity.shape, dtype=np.uint8)
    for place, (small, large) in enumerate(pairwise(found), start=1):
        variance = (
            small["ee"] * parameters.noise_area / (small["pixels"] * np.maximum(small["gg"], FLAT))
        )
        agree = (
            large["disparity"] - small["disparity"]
        ) ** 2 <= parameters.agreement_sigmas**2 * variance
        window[agree & (usable >= place) & (window == place - 1)] = place
    chosen = {name: np.choose(window, [one[name] for one in found]) for name in found[0]}
    is_flat = chosen["gg"] <= FLAT
    # The search counts as a measurement of its own.
    spread = chosen["ee"] * parameters.noise_area / chosen["pixels"]
    weight = spread / parameters.anchor_sigma**2
    safe = np.maximum(chosen["gg"], FLAT)
    best = (chosen["disparity"] * safe + weight * anchor) / (safe + weight)
    moved = np.where(np.abs(best - anchor) < parameters.max_move, best, anchor)
    moved = np.where(is_flat, disparity, moved)
    constant, slope = parameters.defocus
    defocus = constant + slope * moved if blur is None else blur[BlurPlane.EVEN]
    per_noise = _in_residual(defocus, parameters)
    residual = chosen["ee"] / per_noise
    sensor = np.minimum(noise, residual)
    noise_like = sensor + parameters.unexplained_share * (residual - sensor)
    information = (
        np.minimum(chosen["gg"], chosen["ss"]) - 0.5 * parameters.gradient_gain * noise_like
    )
    information = np.maximum(information, 0.03 * chosen["gg"])
    share = np.asarray(parameters.energy_share)[window]
    sigma = np.sqrt(2 * noise_like * chosen["energy"] * share / chosen["pixels"])
    sigma = sigma / np.maximum(information, 0.1 * FLAT)
    texture = 4 * chosen["texture"]
    grain = np.maximum(2 * parameters.smoothed_gain * noise_like, TINY)
    alike = (texture - grain) / (texture + grain)
    chance = np.asarray(parameters.chance_correlation)[window]
    correlation = np.maximum((alike - chance) / (1 - alike * chance), 0)
    near = _window(pixels, 1)
    tone = np.maximum(_window(planes["mm"], 1) / near - (_window(planes["m"], 1) / near) ** 2, 0)
    left_over = np.maximum(
        _window(planes["ee"], 1) / near - (_window(planes["e"], 1) / near) ** 2, 0
    )
    misfit = left_over / np.maximum(noise * per_noise + 0.01 * tone, TINY)
    return WindowFit(
        disparity=np.where(wanted, moved, disparity),
        sigma=np.where(is_flat | ~wanted, UNKNOWN_PX, sigma),
        correlation=np.where(is_flat | ~wanted, 0, correlation),
        misfit=np.where(wanted, misfit, 0),
        centroid_down=np.where(wanted, chosen["down"], 0),
        centroid_across=np.where(wanted, chosen["across"], 0),
        window=np.where(wanted, window, 0).astype(np.uint8),
    )


def straightened(fit: WindowFit, parameters: FitParameters) -> tuple[Array, Array]:
    """Return the disparity at the centre of each window, and the error that a bend may add.

    A slope shifts the disparity of a window whose texture lies to one side. The error is the
    part of the bend beyond what noise makes.
    """
    disparity, square = fit.disparity.copy(), np.zeros_like(fit.disparity)
    for axis, offset in ((0, fit.centroid_down), (1, fit.centroid_across)):
        slope, more = np.zeros_like(disparity), np.zeros_like(disparity)
        for place, step in enumerate(parameters.window_halves[1:], start=1):
            before, after = (_shifted(fit.disparity, side, axis) for side in (-step, step))
            lies, ends = (_shifted(offset, side, axis) for side in (-step, step))
            run = 2 * step + ends - lies
            # Beside a depth step, or where the match is out of the frame, only the smallest
            # window is usable, and its disparity is unreliable.
            near = np.minimum(*(_shifted(fit.window, side, axis) for side in (-step, step)))
            is_one = (fit.window >= place) & (near >= 1) & (run > 0.5 * step)
            steep = (after - before) / np.where(is_one, run, 1)
            bend = before + after - 2 * fit.disparity - steep * (lies + ends - 2 * offset)
            noise = sum(_shifted(fit.sigma, side, axis) ** 2 for side in (-step, 0, step))
            beyond = np.maximum(bend**2 - parameters.bend_noise / 3 * noise, 0)
            more = np.where(is_one, np.maximum(beyond, more), more)
            slope = np.where(is_one & (near >= place), steep, slope)
        disparity -= offset * slope
        square += parameters.bend_share**2 * more
    return disparity, np.sqrt(square)


def _is_inside(disparity: Array, half: Array | int, parameters: FitParameters) -> Mask:
    """Return whether a window and its match lie within the frame."""
    rows, cols = disparity.shape
    row, col = np.arange(rows)[:, None], np.arange(cols)[None, :]
    first = (col - half) * parameters.cell_side - np.maximum(disparity, 0)
    last = (col + half + 1) * parameters.cell_side - 1 - np.minimum(disparity, 0)
    across = (first >= 0) & (last <= parameters.view_shape[1] - 1)
    return np.asarray(across & (np.minimum(row, rows - 1 - row) >= half))


def cell_pixels(parameters: FitParameters) -> Array:
    """Return the number of pixels of each cell, fewer at the end of an odd side."""
    return np.outer(
        *(window_pixels(size, parameters.cell_side, (0,))[0] for size in parameters.view_shape)
    )


def _in_residual(defocus: Array, parameters: FitParameters) -> Array:
    """Return the variance of the residual for white noise of variance 1 in both views."""
    return 2 * parameters.smoothed_gain + 0.5 * parameters.laplacian_gain * defocus**2


def _cell_sums(image: Array, side: int) -> Array:
    if side == 1:
        return image
    padded = np.pad(image, [(0, -size % side) for size in image.shape])
    return np.asarray(sum(padded[i::side, j::side] for i in range(side) for j in range(side)))


def _window(image: Array, half: int) -> Array:
    """Return sums over 2 half + 1 pixels each way, fewer at the border."""
    size = 2 * half + 1
    return np.asarray(ndimage.uniform_filter(image, size, mode="constant") * size**2)


def _extent(image: Array, half: int) -> Array:
    size = 2 * half + 1
    return np.asarray(
        ndimage.maximum_filter(image, size, mode=_EDGES)
        - ndimage.minimum_filter(image, size, mode=_EDGES)
    )


def _second_derivatives(image: Array) -> list[Array]:
    """Return the second derivatives along x, mixed and along y."""
    across = [[0, 0, 0], [1, -2, 1], [0, 0, 0]]
    mixed = [[0.25, 0, -0.25], [0, 0, 0], [-0.25, 0, 0.25]]
    taps = (across, mixed, np.transpose(across))
    return [np.asarray(ndimage.correlate(image, one, mode=_EDGES)) for one in taps]


def _laplacian_slopes(image: Array) -> list[Array]:
    """Return the derivatives of the Laplacian along x and y; 0 in the first and last column."""
    laplacian = sum(_second_derivatives(image)[::2])
    across = ndimage.correlate1d(laplacian, [-0.5, 0, 0.5], axis=1, mode=_EDGES)
    down = ndimage.correlate(
        image,
        [[0, -0.5, 0], [-0.5, 2, -0.5], [0, 0, 0], [0.5, -2, 0.5], [0, 0.5, 0]],
        mode=_EDGES,
    )
    for slope in (across, down):
        slope[:, [0, -1]] = 0
    return [np.asarray(across), np.asarray(down)]


def _gradient_x(image: Array) -> Array:
    slope = ndimage.correlate1d(image, [1 / 12, -8 / 12, 0, 8 / 12, -1 / 12], axis=1)
    slope[:, :2] = slope[:, -2:] = 0
    return np.asarray(slope)


def _gradient_y(image: Array) -> Array:
    return np.asarray(ndimage.correlate1d(image, [-0.5, 0, 0.5], axis=0, mode=_EDGES))


def _shifted(image: Array, step: int, axis: int) -> Array:
    """Return the image shifted by `step` pixels; edge pixels are repeated."""
    places = np.clip(np.arange(image.shape[axis]) + step, 0, image.shape[axis] - 1)
    return np.take(image, places, axis=axis)
