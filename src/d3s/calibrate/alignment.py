"""Windows of one picture found again in another, to hundredths of a pixel.

A window is carried over by a homography that is known to a pixel or two; what is left is a shift,
found by Gauss-Newton steps on the grey values, with gain and offset free in each window. Blur is
round, so pictures of different blur have their windows in the same place.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import over_rows
from d3s.types import FloatArray, Image

_STEPS = 6  # each leaves about a tenth of the error
_SETTLED_PX = 0.01  # a last step larger than this has not come to an end
_FARTHEST_PX = 4.0  # the homography is not farther off


class Aligned(NamedTuple):
    """Where windows were found."""

    places_px: FloatArray  # (windows, 2): x, y in the other picture; NaN where not found
    sigma_px: FloatArray  # (windows,): standard deviation as if all pixels were independent


def spline_of(picture: Image) -> Image:
    """Coefficients of the cubic spline through all pixels.

    Cubic interpolation without them lags behind by some per cent of a small shift.
    """
    from scipy.ndimage import spline_filter

    return np.asarray(spline_filter(picture, order=3, output=np.float32, mode="mirror"))


def align_windows(
    first: Image, second: Image, matrix: FloatArray, centres_px: FloatArray, half_px: int
) -> Aligned:
    """Places in `second` of the windows around `centres_px` (x, y, whole numbers) of `first`.

    `second` is given by its spline (`spline_of`). `matrix` is the homography from (x, y, 1) of the
    first picture to the second. A window that reaches beyond either picture, has no texture or does
    not settle comes back as NaN.
    """
    count = len(centres_px)
    places = np.full((count, 2), np.nan)
    sigma = np.full(count, np.nan)
    weights = np.hanning(2 * half_px + 3)[1:-1]
    centres = np.ascontiguousarray(centres_px, dtype=np.int64)
    over_rows(
        _align, count, first, second, np.ascontiguousarray(matrix, np.float64), centres, weights,
        places, sigma,
    )  # fmt: skip
    return Aligned(places, sigma)


@inlined
def _cubic(f: Any, taps: Any, slopes: Any) -> None:
    """Weights of four coefficients for the value and the slope between the middle two."""
    g = 1 - f
    taps[0] = g * g * g / 6
    taps[1] = (4 - 3 * f * f * (1 + g)) / 6
    taps[2] = (4 - 3 * g * g * (1 + f)) / 6
    taps[3] = f * f * f / 6
    slopes[0] = -g * g / 2
    slopes[1] = f * (3 * f - 4) / 2
    slopes[2] = g * (4 - 3 * g) / 2
    slopes[3] = f * f / 2


@inlined
def _carried(matrix: FloatArray, x: float, y: float) -> tuple[float, float]:
    """Where the homography has a place."""
    z = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
    return (
        (matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) / z,
        (matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) / z,
    )


@inlined
def _read(spline: Image, u: float, v: float, taps: FloatArray, terms: FloatArray) -> None:
    """Slope along, slope down and value of a spline at a place: the first three of the terms."""
    col, row = int(u), int(v)
    _cubic(u - col, taps[0], taps[1])
    _cubic(v - row, taps[2], taps[3])
    value, value_x, value_y = 0.0, 0.0, 0.0
    for k in range(4):
        line, slope = 0.0, 0.0
        for m in range(4):
            grey = spline[row - 1 + k, col - 1 + m]
            line += taps[0, m] * grey
            slope += taps[1, m] * grey
        value += taps[2, k] * line
        value_x += taps[2, k] * slope
        value_y += taps[3, k] * line
    terms[0], terms[1], terms[2] = value_x, value_y, value


@inlined
def _add(terms: FloatArray, weight: float, target: Any, normal: FloatArray, right: Any) -> None:
    """One pixel to the normal equations, of which the upper half is kept."""
    for a in range(4):
        for b in range(a, 4):
            normal[a, b] += weight * terms[a] * terms[b]
        right[a] += weight * terms[a] * target


@part
def _sums(
    first: Image,
    spline: Image,
    matrix: FloatArray,
    centre: NDArray[np.int64],
    shift: FloatArray,
    weights: FloatArray,
    normal: FloatArray,
    right: FloatArray,
) -> tuple[float, float]:
    """Normal equations of a window; its weighted square and its weight, 0 if it leaves the picture.

    The unknowns are the shift along and down, each times the gain, the gain and the offset.
    """
    rows, cols = spline.shape
    half = len(weights) // 2
    taps, terms = np.empty((4, 4)), np.ones(4)
    normal[:] = 0.0
    right[:] = 0.0
    square, total = 0.0, 0.0
    for i in range(-half, half + 1):
        for j in range(-half, half + 1):
            u, v = _carried(matrix, float(centre[0] + j), float(centre[1] + i))
            u, v = u + shift[0], v + shift[1]
            if not (u >= 1.0 and v >= 1.0 and u < cols - 2.0 and v < rows - 2.0):
                return 0.0, 0.0
            _read(spline, u, v, taps, terms)
            weight = weights[half + i] * weights[half + j]
            target = first[centre[1] + i, centre[0] + j]
            _add(terms, weight, target, normal, right)
            square += weight * target * target
            total += weight
    return square, total


@part
def _inverse(normal: FloatArray) -> Any:
    """Inverse of what the upper half of the normal equations says, also where it has none."""
    for a in range(4):
        normal[a, a] *= 1 + 1e-9
        normal[a, a] += 1e-12
        for b in range(a):
            normal[a, b] = normal[b, a]
    return np.linalg.inv(normal)


@part
def _shift_of(
    first: Image,
    spline: Image,
    matrix: FloatArray,
    centre: NDArray[np.int64],
    weights: FloatArray,
    shift: FloatArray,
) -> tuple[bool, float]:
    """Shift of a window beside the homography; whether it settled, and its standard deviation."""
    normal, right = np.empty((4, 4)), np.empty(4)
    shift[:] = 0.0
    for _ in range(_STEPS):
        square, total = _sums(first, spline, matrix, centre, shift, weights, normal, right)
        if total == 0.0:
            break
        inverse = _inverse(normal)
        solution = inverse @ right
        gain = solution[2]
        if not gain > 0.2:
            break
        step_x, step_y = solution[0] / gain, solution[1] / gain
        size = float(np.hypot(step_x, step_y))
        if not size < _FARTHEST_PX:
            break
        # A step beyond a pixel or so is longer than the slope can be trusted.
        shorten = 1.0 if size < 1.5 else 1.5 / size
        shift[0] += shorten * step_x
        shift[1] += shorten * step_y
        if size < _SETTLED_PX:
            left = max(float(square - solution @ right), 0.0) / total
            sigma = np.sqrt(left * (inverse[0, 0] + inverse[1, 1]) / 2) / gain
            return bool(np.hypot(shift[0], shift[1]) < _FARTHEST_PX), sigma
    return False, np.nan


@compiled
def _align(
    start: int,
    stop: int,
    first: Image,
    spline: Image,
    matrix: FloatArray,
    centres: NDArray[np.int64],
    weights: FloatArray,
    places: FloatArray,
    sigma: FloatArray,
) -> None:
    """Places and standard deviations of some of the windows; what is not found stays as it is."""
    rows, cols = first.shape
    half = len(weights) // 2
    shift = np.empty(2)
    for n in range(start, stop):
        x, y = centres[n, 0], centres[n, 1]
        if x < half or y < half or x + half >= cols or y + half >= rows:
            continue
        is_found, spread = _shift_of(first, spline, matrix, centres[n], weights, shift)
        if is_found:
            u, v = _carried(matrix, float(x), float(y))
            places[n, 0], places[n, 1] = u + shift[0], v + shift[1]
            sigma[n] = spread
