"""Real roots of quadratics and cubics, for arrays of coefficients, and the choice of one root."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.types import FloatArray

# A leading coefficient below this share of the largest one only adds a huge root of no use. Without
# it the polynomial has one degree less, and the arithmetic below cannot overflow.
_NEGLIGIBLE = 1e-60

# A discriminant below this share of its two terms is a double root, split by rounding.
_DOUBLE_ROOT = 64 * np.finfo(np.float64).eps

# Newton's method from outside all roots is monotone and converges quadratically. Twelve steps are
# enough for cubics with double, triple and nearly equal roots, as a test shows; the rest is margin.
_MAX_STEPS = 20


def real_quadratic_roots(a0: ArrayLike, a1: ArrayLike, a2: ArrayLike) -> FloatArray:
    """Real roots of a2 x² + a1 x + a0, ascending; NaN for missing roots.

    Numerically stable for roots far apart or nearly equal, and for `a2` near 0 (one root is left).

    Parameters
    ----------
    a0, a1, a2
        Coefficients; broadcast against each other.

    Returns
    -------
    FloatArray
        Roots, (2, ...).
    """
    c, b, a = _normalised(a0, a1, a2)
    a = np.where(np.abs(a) < _NEGLIGIBLE, 0.0, a)
    half_b = -0.5 * b
    with np.errstate(divide="ignore", invalid="ignore"):
        discriminant = half_b**2 - a * c
        is_double = np.abs(discriminant) <= _DOUBLE_ROOT * (half_b**2 + np.abs(a * c))
        discriminant = np.where(is_double, 0.0, discriminant)
        # Terms of equal sign add without cancellation; the product of the roots gives the other.
        larger = half_b + np.copysign(np.sqrt(discriminant), half_b)
        first = np.where(a != 0, larger / a, np.nan)
        second = np.where(larger != 0, c / larger, np.where(a != 0, 0.0, np.nan))
    return np.sort(np.stack([first, second]), axis=0)  # NaN goes last


def real_cubic_roots(a0: ArrayLike, a1: ArrayLike, a2: ArrayLike, a3: ArrayLike) -> FloatArray:
    """Real roots of a3 x³ + a2 x² + a1 x + a0, ascending; NaN for missing roots.

    The roots of paper Eq. S3, without Cardano's formula: one real root by Newton's method from
    outside all roots, the others from the remaining quadratic, deflated from the end that loses no
    digits (Kahan, "To solve a real cubic equation", 1986). A leading coefficient below 1e-60 of the
    largest coefficient counts as 0: the polynomial is then a quadratic or a line. A double root is
    reported twice.

    Parameters
    ----------
    a0, a1, a2, a3
        Coefficients; broadcast against each other.

    Returns
    -------
    FloatArray
        Roots, (3, ...).
    """
    d, c, b, a = _normalised(a0, a1, a2, a3)
    is_cubic = np.abs(a) >= _NEGLIGIBLE
    root = _one_cubic_root(np.where(is_cubic, a, 1.0), b, c, d)
    quadratic_b, quadratic_c = _deflated(a, b, c, d, root)
    others = real_quadratic_roots(
        np.where(is_cubic, quadratic_c, d),
        np.where(is_cubic, quadratic_b, c),
        np.where(is_cubic, a, b),
    )
    return np.sort(np.concatenate([np.where(is_cubic, root, np.nan)[None], others]), axis=0)


class RootChoice(NamedTuple):
    """Root within a working range, and the number of roots within the range.

    `depth_m` is NaN unless there is exactly one root. With no root, the derivatives are wrong or
    the target is out of range; with several (`is_ambiguous`), the image alone cannot decide.
    """

    depth_m: FloatArray
    roots_in_range: np.ndarray

    @property
    def is_ambiguous(self) -> np.ndarray:
        """Mask of the pixels with more than one root in the range."""
        return self.roots_in_range > 1


def choose_root(roots_m: ArrayLike, *, near_m: float, far_m: float) -> RootChoice:
    """Choose the only root within the working range; a double root counts once.

    Parameters
    ----------
    roots_m
        Roots, in metres, (roots, ...); NaN for missing roots.
    near_m, far_m
        Ends of the working range, in metres, inclusive.
    """
    roots = np.asarray(roots_m, dtype=np.float64)
    inside = (roots >= near_m) & (roots <= far_m)
    ordered = np.sort(np.where(inside, roots, np.nan), axis=0)
    same = np.isclose(ordered[1:], ordered[:-1], rtol=1e-7, atol=0.0)
    count = inside.sum(axis=0) - same.sum(axis=0)
    return RootChoice(np.where(count == 1, ordered[0], np.nan), count)


def _normalised(*coefficients: ArrayLike) -> tuple[FloatArray, ...]:
    """Polynomial scaled by a power of two, so that its largest coefficient is in [1/2, 1).

    Polynomials that are all zero or not finite become NaN.
    """
    arrays = np.broadcast_arrays(*(np.asarray(c, dtype=np.float64) for c in coefficients))
    largest = np.max(np.abs(np.stack(arrays)), axis=0)
    usable = np.isfinite(largest) & (largest > 0)
    _, exponent = np.frexp(np.where(usable, largest, 1.0))
    return tuple(np.where(usable, np.ldexp(array, -exponent), np.nan) for array in arrays)


def _one_cubic_root(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
    """One real root of a cubic, by Newton's method from outside all roots."""
    with np.errstate(all="ignore"):
        inflection = -b / a / 3.0
        value, slope = _evaluate(a, b, c, d, inflection)
        side = np.where(value / a < 0, -1.0, 1.0)
        reach = np.cbrt(np.abs(value / a))
        bend = -slope / a
        reach = np.where(
            bend > 0, 1.324718 * np.maximum(reach, np.sqrt(np.maximum(bend, 0.0))), reach
        )
        x = inflection - side * reach
        moving = x != inflection
        for _ in range(_MAX_STEPS):
            value, slope = _evaluate(a, b, c, d, x)
            # Steps are slightly short, so that rounding cannot carry one past the root.
            step = np.where(slope == 0, 0.0, value / slope / (1.0 + 1e-15))
            advanced = x - step
            moving &= side * advanced > side * x
            if not moving.any():
                break
            x = np.where(moving, advanced, x)
    return np.where(d == 0, 0.0, x)


def _evaluate(
    a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Value and slope of a cubic, by Horner's scheme."""
    first = a * x + b
    second = first * x + c
    return second * x + d, (a * x + first) * x + second


def _deflated(
    a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Linear and constant coefficient of the quadratic that remains after dividing by a root."""
    with np.errstate(all="ignore"):
        forward_b = a * root + b
        forward_c = forward_b * root + c
        backward_c = -d / root
        backward_b = (backward_c - c) / root
        # Division by a large root cancels digits from the front, but not from the back.
        from_back = np.abs(a) * root**2 > np.abs(d / root)
    return np.where(from_back, backward_b, forward_b), np.where(from_back, backward_c, forward_c)
