"""Preparation of the views: centring, smoothing, noise."""

from itertools import chain
from math import ceil

import numpy as np

from d3s.estimate.intensity import centre_and_scale, common_mean, finite_ends, power_of_two
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows, run_together
from d3s.runtime.scratch import Scratch
from d3s.types import Image

_REACH_SIGMAS = 4.5  # Gaussian taps beyond it round away in float32


def centre(memory: Scratch, left: Image, right: Image) -> tuple[Image, Image]:
    """Subtract the common mean, divide by a power of two, set non-finite pixels to 0."""
    views = (left, right)
    mean = common_mean(views)
    ends = run_together(*(lambda view=view: finite_ends(view) for view in views))
    largest = max(abs(end - mean) for end in chain(*ends))
    scale = 1.0 / power_of_two(largest)
    out: tuple[Image, Image] = (memory.empty(left.shape), memory.empty(left.shape))
    for view, centred in zip(views, out, strict=True):
        run_over_rows(centre_and_scale, view.shape[0], view, mean, scale, np.float32(0), centred)
    return out


def smooth(memory: Scratch, image: Image, sigma_px: float, step: int = 1) -> Image:
    """Smooth by a Gaussian, then keep one pixel per `step` x `step` (1 or 2), at its centre."""
    if sigma_px == 0 and step == 1:
        return image
    shape = -(-image.shape[0] // step), -(-image.shape[1] // step)
    out: Image = memory.empty(shape)
    run_over_rows(_smooth, shape[0], image, _pair_weights(sigma_px, step), step, out)
    return out


def noise_variance(memory: Scratch, view: Image, half: int) -> Image:
    """Return the variance of white noise around each cell of 2 x 2 pixels.

    Over windows of 2 half + 1 cells, by second differences in both directions, which cancel a
    smooth image and give 36 times the variance of noise (Immerkær, "Fast noise variance
    estimation", CVIU 1996).
    """
    shape = -(-view.shape[0] // 2), -(-view.shape[1] // 2)
    out: Image = memory.empty(shape)
    with memory.part():
        cells = memory.empty(shape)
        run_over_rows(_noise_of_cells, shape[0], view, cells)
        run_over_rows(_window_means, shape[0], cells, half, *view.shape, out)
    return out


def _pair_weights(sigma_px: float, step: int) -> Image:
    """Return the weights of pixels at ±(k + (step - 1) / 2); a central pixel counts twice."""
    middle = 0.5 * (step - 1)
    offset = middle + np.arange(ceil(_REACH_SIGMAS * sigma_px - middle) + 1)
    bell = np.exp(-0.5 * (offset**2 - middle**2) / max(sigma_px**2, 1e-30))
    if step % 2:
        bell[0] *= 0.5
    weights = (0.5 * bell / bell.sum()).astype(np.float32)
    return np.append(
        weights, np.zeros(weights.size % 2, np.float32)
    )  # an even number: taps are applied in pairs


@compiled
def _mirrored(place: int, size: int) -> int:
    """Return the index of a place in an image that is mirrored at its border."""
    place %= 2 * size
    return place if place < size else 2 * size - 1 - place


@compiled
def _smooth(start: int, stop: int, image: Image, weights: Image, step: int, out: Image) -> None:
    """Smooth down the columns for rows that are kept, then along them, even and odd pixels."""
    rows, cols = image.shape
    width = out.shape[1]
    last = step - 1
    pad = (last + weights.size - 1) // step + 1
    line = np.empty(cols, dtype=np.float32)
    phases = np.empty((step, width + 2 * pad), dtype=np.float32)
    for row in range(start, stop):
        middle = line if step > 1 else phases[0, pad : pad + cols]
        for k in range(0, weights.size, 2):
            top, bottom = row * step - k, row * step + last + k
            _add_two_pairs(
                image[_mirrored(top, rows)],
                image[_mirrored(bottom, rows)],
                image[_mirrored(top - 1, rows)],
                image[_mirrored(bottom + 1, rows)],
                weights[k],
                weights[k + 1],
                k == 0,
                middle,
            )
        for phase in range(step):
            padded = phases[phase]
            if step > 1:
                inner = padded[pad : pad + width]
                for col in range((cols - phase + 1) // 2):
                    inner[col] = line[2 * col + phase]
            for col in range(pad):
                padded[col] = middle[_mirrored((col - pad) * step + phase, cols)]
            for col in range(pad + (cols - phase + last) // step, padded.size):
                padded[col] = middle[_mirrored((col - pad) * step + phase, cols)]
        for k in range(0, weights.size, 2):
            _add_two_pairs(
                _left_of(phases, k, step, pad, width),
                _right_of(phases, k, step, pad, width),
                _left_of(phases, k + 1, step, pad, width),
                _right_of(phases, k + 1, step, pad, width),
                weights[k],
                weights[k + 1],
                k == 0,
                out[row],
            )


@compiled
def _left_of(phases: Image, k: int, step: int, pad: int, width: int) -> Image:
    """Return, for each pixel of the result, the k-th pixel on its left."""
    first = pad - (k + step - 1) // step
    return phases[-k % step, first : first + width]


@compiled
def _right_of(phases: Image, k: int, step: int, pad: int, width: int) -> Image:
    """Return, for each pixel of the result, the k-th pixel on its right."""
    first = pad + (k + step - 1) // step
    return phases[(k + step - 1) % step, first : first + width]


@compiled
def _add_two_pairs(
    a: Image,
    b: Image,
    c: Image,
    d: Image,
    first: np.float32,
    second: np.float32,
    is_new: bool,
    out: Image,
) -> None:
    """Add `first` (a + b) + `second` (c + d) to `out`, or store it if `is_new`."""
    if is_new:
        for col in range(out.size):
            out[col] = first * (a[col] + b[col]) + second * (c[col] + d[col])
    else:
        for col in range(out.size):
            out[col] += first * (a[col] + b[col]) + second * (c[col] + d[col])


@compiled
def _noise_of_cells(start: int, stop: int, image: Image, cells: Image) -> None:
    """Sum squared second differences in both directions over 2 x 2 pixels; edges are repeated."""
    rows, cols = image.shape
    zero, two = np.float32(0), np.float32(2)
    bends = np.empty(cols + 2, dtype=np.float32)
    squares = np.zeros(2 * cells.shape[1], dtype=np.float32)
    before, middle, after = bends[:cols], bends[1 : cols + 1], bends[2:]
    for cell in range(start, stop):
        for col in range(cols):
            squares[col] = zero
        for row in range(2 * cell, min(2 * cell + 2, rows)):
            up, line, down = image[max(row - 1, 0)], image[row], image[min(row + 1, rows - 1)]
            for col in range(cols):
                middle[col] = (up[col] + down[col]) - two * line[col]
            bends[0] = bends[1]
            bends[cols + 1] = bends[cols]
            for col in range(cols):
                bend = (before[col] + after[col]) - two * middle[col]
                squares[col] += bend * bend
        result = cells[cell]
        for col in range(result.size):
            result[col] = squares[2 * col] + squares[2 * col + 1]


@compiled
def _window_means(
    start: int, stop: int, cells: Image, half: int, rows: int, cols: int, out: Image
) -> None:
    """Mean over 2 half + 1 cells each way, fewer at the border, per pixel and divided by 36.

    Along a row by sums of 1, 2, 4 and so on cells: nothing is subtracted, so no digits are lost.
    """
    height, width = cells.shape
    padded = width + 2 * half
    sums, next_sums = np.zeros(padded, dtype=np.float32), np.zeros(padded, dtype=np.float32)
    shares = np.empty(width, dtype=np.float32)
    for col in range(width):
        inside = min(2 * (col + half + 1), cols) - 2 * max(col - half, 0)
        shares[col] = np.float32(1 / (36.0 * inside))
    for row in range(start, stop):
        first, end = max(row - half, 0), min(row + half + 1, height)
        inner, result = sums[half : half + width], out[row]
        for col in range(padded):
            sums[col] = np.float32(0)
        for near in range(first, end - 1, 2):
            one, other = cells[near], cells[near + 1]
            for col in range(width):
                inner[col] += one[col] + other[col]
        if (end - first) % 2:
            one = cells[end - 1]
            for col in range(width):
                inner[col] += one[col]
        for col in range(width):
            result[col] = np.float32(0)
        size, place = 1, 0
        while size <= 2 * half + 1:
            if (2 * half + 1) & size:
                part = sums[place : place + width]
                for col in range(width):
                    result[col] += part[col]
                place += size
            later = sums[size:]
            for col in range(later.size):
                next_sums[col] = sums[col] + later[col]
            sums, next_sums = next_sums, sums
            size *= 2
        share = np.float32(1.0 / (min(2 * end, rows) - 2 * first))
        for col in range(width):
            result[col] *= share * shares[col]
