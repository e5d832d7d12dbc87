"""Views about their mean, smoothed and shrunk, and their noise."""

from collections.abc import Sequence
from itertools import chain
from math import ceil

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows, together
from d3s.runtime.scratch import Memory
from d3s.types import Image

Lines = NDArray[np.float64]

_REACH_SIGMAS = 4.5  # beyond it a float of 24 bits does not see a Gaussian
_LANES = 64  # sums that run side by side along a row, as the order of each must not change


class CompiledPrefilter:
    """Single precision, machine code, rows shared out among the cores; arrays out of a memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def centred(self, left: Image, right: Image) -> tuple[Image, Image]:
        """Views about their common mean over a power of two; what is not finite becomes zero."""
        views = (left, right)
        mean = common_mean(views)
        ends = together(*(lambda view=view: finite_ends(view) for view in views))
        largest = max(abs(end - mean) for end in chain(*ends))
        scale = 1.0 / power_of_two(largest)
        out: tuple[Image, Image] = (self._memory.empty(left.shape), self._memory.empty(left.shape))
        for view, centred in zip(views, out, strict=True):
            over_rows(about, view.shape[0], view, mean, scale, np.float32(0), centred)
        return out

    def smooth(self, image: Image, sigma_px: float, step: int = 1) -> Image:
        """Gaussian, then one pixel for `step` each way, one or two, at their middle.

        Pixel i stands for pixels step i to step i + step - 1. The image goes on as its mirror
        image, the last pixel twice.
        """
        if sigma_px == 0 and step == 1:
            return image
        shape = -(-image.shape[0] // step), -(-image.shape[1] // step)
        out: Image = self._memory.empty(shape)
        over_rows(_smooth, shape[0], image, _pair_weights(sigma_px, step), step, out)
        return out

    def noise_variance(self, view: Image, half: int) -> Image:
        """Variance of white noise over windows of 2 half + 1 cells of 2x2 pixels, one a cell."""
        shape = -(-view.shape[0] // 2), -(-view.shape[1] // 2)
        out: Image = self._memory.empty(shape)
        with self._memory.part():
            cells = self._memory.empty(shape)
            over_rows(_noise_of_cells, shape[0], view, cells)
            over_rows(_window_means, shape[0], cells, half, *view.shape, out)
        return out


def common_mean(views: Sequence[NDArray[np.floating]]) -> float:
    """Mean of all finite values, each row summed by itself; zero if there are none."""
    rows = views[0].shape[0]
    sums, counts = np.empty((len(views), rows)), np.empty((len(views), rows), dtype=np.int64)
    for view, total, count in zip(views, sums, counts, strict=True):
        over_rows(_row_sums, rows, view, total, count)
    return float(sums.sum()) / max(int(counts.sum()), 1)


def finite_ends(image: NDArray[np.floating]) -> tuple[float, float]:
    """Smallest and largest finite value; zeros if there is none."""
    ends = float(image.min()), float(image.max())
    if not np.isfinite(ends).all():
        known = image[np.isfinite(image)]
        ends = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    return ends


def power_of_two(largest: float) -> float:
    """The one at or below a number; one if there is none."""
    # Not so small that a number over it overflows.
    return float(2.0 ** max(np.floor(np.log2(largest)), -1000)) if 0 < largest < np.inf else 1.0


def _pair_weights(sigma_px: float, step: int) -> Image:
    """Weights of the pixels at ±(k + (step - 1) / 2); the one in the middle is its own partner."""
    middle = 0.5 * (step - 1)
    offset = middle + np.arange(ceil(_REACH_SIGMAS * sigma_px - middle) + 1)
    bell = np.exp(-0.5 * (offset**2 - middle**2) / max(sigma_px**2, 1e-30))
    if step % 2:
        bell[0] *= 0.5
    weights = (0.5 * bell / bell.sum()).astype(np.float32)
    return np.append(weights, np.zeros(weights.size % 2, np.float32))  # two at a time


# Passes over values -------------------------------------------------------------------------------


@compiled
def _row_sums(
    start: int,
    stop: int,
    image: NDArray[np.floating],
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """Sum and number of the finite values of each row."""
    cols = image.shape[1]
    zero = image.dtype.type(0)
    lanes = np.empty(_LANES, dtype=np.float64)
    for row in range(start, stop):
        line = image[row]
        count = 0
        for col in range(cols):
            count += line[col] - line[col] == zero
        for lane in range(_LANES):
            lanes[lane] = 0.0
        for first in range(0, cols, _LANES):
            part = line[first : first + _LANES]
            for lane in range(part.size):
                value = part[lane]
                lanes[lane] += value if value - value == zero else zero
        total = 0.0
        for lane in range(_LANES):
            total += lanes[lane]
        sums[row], counts[row] = total, count


@compiled
def about(
    start: int,
    stop: int,
    image: NDArray[np.floating],
    mean: float,
    scale: float,
    missing: np.float32,
    out: Image,
) -> None:
    """Values less their mean, scaled; a given number for what is not finite."""
    cols = image.shape[1]
    zero = image.dtype.type(0)
    for row in range(start, stop):
        line, result = image[row], out[row]
        for col in range(cols):
            value = line[col]
            scaled = np.float32((value - mean) * scale)
            result[col] = scaled if value - value == zero else missing


@compiled
def rounded(
    start: int, stop: int, image: NDArray[np.float64], out: Image, is_exact: NDArray[np.bool_]
) -> None:
    """Values in single precision; marks rows that it holds as they are, until one is not so."""
    cols = image.shape[1]
    for row in range(start, stop):
        line, result = image[row], out[row]
        wrong = 0
        for col in range(cols):
            value = line[col]
            result[col] = np.float32(value)
            wrong += (np.float64(np.float32(value)) != value) & (value == value)
        if wrong:
            return
        is_exact[row] = True


@compiled
def within(
    start: int, stop: int, image: Image, low: np.float32, high: np.float32, out: Image
) -> None:
    """Values from low to high, and NaN for all others."""
    cols = image.shape[1]
    for row in range(start, stop):
        line, result = image[row], out[row]
        for col in range(cols):
            value = line[col]
            result[col] = value if (value >= low) & (value <= high) else np.float32(np.nan)


# Gaussian -----------------------------------------------------------------------------------------


@compiled
def _mirrored(place: int, size: int) -> int:
    """The pixel that stands at a place in an image that goes on as its mirror image."""
    place %= 2 * size
    return place if place < size else 2 * size - 1 - place


@compiled
def _smooth(start: int, stop: int, image: Image, weights: Image, step: int, out: Image) -> None:
    """Down the columns for rows that are needed, then along these, even and odd pixels apart."""
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
    """Of each pixel of the result, the k-th on its left side."""
    first = pad - (k + step - 1) // step
    return phases[-k % step, first : first + width]


@compiled
def _right_of(phases: Image, k: int, step: int, pad: int, width: int) -> Image:
    """Of each pixel of the result, the k-th on its right side."""
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
    """Add weighted sums of two lines, twice, to a third one or to nothing."""
    if is_new:
        for col in range(out.size):
            out[col] = first * (a[col] + b[col]) + second * (c[col] + d[col])
    else:
        for col in range(out.size):
            out[col] += first * (a[col] + b[col]) + second * (c[col] + d[col])


# Noise --------------------------------------------------------------------------------------------


@compiled
def _noise_of_cells(start: int, stop: int, image: Image, cells: Image) -> None:
    """Squares of second differences both ways, summed over 2x2 pixels; the edge repeats."""
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
    """Mean over 2 half + 1 cells each way, fewer at the border, per pixel and 36th of it.

    Along a row by sums of 1, 2, 4 ... cells: nothing is ever taken off again, so nothing is lost.
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
