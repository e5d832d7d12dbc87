"""Windows of one picture found again in another, to hundredths of a pixel.

A window is carried over by a homography that is known to a pixel or two; what is left is a shift,
found by Gauss-Newton steps on the grey values, with gain and offset free in each window. Blur is
round, so pictures of different blur have their windows in the same place.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.kinds import Image
from d3s.compiled import compiled, inlined
from d3s.optics.lens import FloatArray
from d3s.threads import over_rows

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
        _align, count, first, second, np.ascontiguousarray(matrix, np.float64), centres, half_px,
        weights, places, sigma,
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


@compiled
def _align(
    start: int,
    stop: int,
    first: Image,
    second: Image,
    matrix: FloatArray,
    centres: NDArray[np.int64],
    half: int,
    weights: FloatArray,
    places: FloatArray,
    sigma: FloatArray,
) -> None:
    rows, cols = second.shape
    along, down = np.empty(4), np.empty(4)
    slope_along, slope_down = np.empty(4), np.empty(4)
    normal, right = np.empty((4, 4)), np.empty(4)
    terms = np.empty(4)
    for n in range(start, stop):
        cx, cy = centres[n, 0], centres[n, 1]
        if cx < half or cy < half or cx + half >= first.shape[1] or cy + half >= first.shape[0]:
            continue
        shift_x, shift_y = 0.0, 0.0
        is_settled = False
        for _ in range(_STEPS):
            normal[:] = 0.0
            right[:] = 0.0
            square, total = 0.0, 0.0
            is_inside = True
            for i in range(-half, half + 1):
                for j in range(-half, half + 1):
                    x, y = float(cx + j), float(cy + i)
                    z = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
                    u = (matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) / z + shift_x
                    v = (matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) / z + shift_y
                    if not (u >= 1.0 and v >= 1.0 and u < cols - 2.0 and v < rows - 2.0):
                        is_inside = False
                        break
                    col, row = int(u), int(v)
                    _cubic(u - col, along, slope_along)
                    _cubic(v - row, down, slope_down)
                    value, value_x, value_y = 0.0, 0.0, 0.0
                    for k in range(4):
                        line, slope = 0.0, 0.0
                        for m in range(4):
                            grey = second[row - 1 + k, col - 1 + m]
                            line += along[m] * grey
                            slope += slope_along[m] * grey
                        value += down[k] * line
                        value_x += down[k] * slope
                        value_y += slope_down[k] * line
                    weight = weights[half + i] * weights[half + j]
                    terms[0], terms[1], terms[2], terms[3] = value_x, value_y, value, 1.0
                    target = first[cy + i, cx + j]
                    for a in range(4):
                        for b in range(a, 4):
                            normal[a, b] += weight * terms[a] * terms[b]
                        right[a] += weight * terms[a] * target
                    square += weight * target * target
                    total += weight
                if not is_inside:
                    break
            if not is_inside:
                break
            for a in range(4):
                normal[a, a] *= 1 + 1e-9
                normal[a, a] += 1e-12
                for b in range(a):
                    normal[a, b] = normal[b, a]
            inverse = np.linalg.inv(normal)
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
            shift_x += shorten * step_x
            shift_y += shorten * step_y
            if size < _SETTLED_PX:
                is_settled = True
                left = max(float(square - solution @ right), 0.0) / total
                sigma[n] = np.sqrt(left * (inverse[0, 0] + inverse[1, 1]) / 2) / gain
                break
        if is_settled and np.hypot(shift_x, shift_y) < _FARTHEST_PX:
            x, y = float(cx), float(cy)
            z = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
            places[n, 0] = (matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) / z + shift_x
            places[n, 1] = (matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) / z + shift_y
        else:
            sigma[n] = np.nan
