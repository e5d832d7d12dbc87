"""All real roots of quadratics and cubics, for whole images at once, and the choice among them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.optics.lens import FloatArray

# A leading coefficient this small beside the others belongs to a root beyond any use; without it
# the polynomial is one degree lower, and the arithmetic below cannot overflow.
_NEGLIGIBLE = 1e-60

# A discriminant this little below zero, beside its two terms, is a double root that rounding split.
_DOUBLE_ROOT = 64 * np.finfo(np.float64).eps

# Newton's steps from outside are monotone and quadratic in the end: 8 to 12 are usual; a triple
# root needs about 40, since each step then only takes a third of the distance off.
_MAX_STEPS = 80


def real_quadratic_roots(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> FloatArray:
    """Real roots of a x² + b x + c, shape (2, ...), ascending; NaN where there are fewer.

    Stable when the roots are far apart, nearly equal, or when `a` vanishes (one root is left).
    """
    a, b, c = _as_arrays(a, b, c)
    a, b, c = _normalised(a, b, c)
    a = np.where(np.abs(a) < _NEGLIGIBLE, 0.0, a)
    half_b = -0.5 * b
    discriminant, scale = _discriminant(a, half_b, c)
    discriminant = np.where(np.abs(discriminant) <= _DOUBLE_ROOT * scale, 0.0, discriminant)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Adding what has the same sign loses nothing; the product of the roots gives the other.
        larger = half_b + np.copysign(np.sqrt(discriminant), half_b)
        first = np.where(a != 0, larger / a, np.nan)
        second = np.where(larger != 0, c / larger, np.where(a != 0, 0.0, np.nan))
    return _sorted(np.stack([first, second]))


def real_cubic_roots(a3: ArrayLike, a2: ArrayLike, a1: ArrayLike, a0: ArrayLike) -> FloatArray:
    """Real roots of a3 x³ + a2 x² + a1 x + a0, shape (3, ...), ascending; NaN for the missing.

    One real root by Newton's method from outside all of them, the others from the quadratic that
    is left, deflated from the end that loses no digits (after Kahan, "To solve a real cubic
    equation", 1986). A vanishing leading coefficient is a quadratic or a line; roots beyond 1e60
    times the others are dropped; a double root is reported twice.
    """
    a, b, c, d = _as_arrays(a3, a2, a1, a0)
    a, b, c, d = _normalised(a, b, c, d)
    is_cubic = np.abs(a) >= _NEGLIGIBLE
    root = _one_cubic_root(np.where(is_cubic, a, 1.0), b, c, d)
    quadratic_b, quadratic_c = _deflated(a, b, c, d, root)
    others = real_quadratic_roots(
        np.where(is_cubic, a, b),
        np.where(is_cubic, quadratic_b, c),
        np.where(is_cubic, quadratic_c, d),
    )
    return _sorted(np.concatenate([np.where(is_cubic, root, np.nan)[None], others]))


class RootChoice(NamedTuple):
    """The root in a working range, and how many roots lay there.

    `depth_m` is NaN unless there is exactly one: with none the derivatives are wrong or the
    target is outside, with several (`is_ambiguous`) the image alone cannot tell.
    """

    depth_m: FloatArray
    roots_in_range: np.ndarray

    @property
    def is_ambiguous(self) -> np.ndarray:
        """Where more than one root is a possible depth."""
        return self.roots_in_range > 1


def choose_root(roots_m: ArrayLike, *, near_m: float, far_m: float) -> RootChoice:
    """Pick the only root of the first axis that lies in the working range, if there is one.

    A root that occurs twice (a double root) counts once.
    """
    roots = np.asarray(roots_m, dtype=np.float64)
    inside = (roots >= near_m) & (roots <= far_m)
    ordered = np.sort(np.where(inside, roots, np.nan), axis=0)
    same = np.isclose(ordered[1:], ordered[:-1], rtol=1e-7, atol=0.0)
    count = inside.sum(axis=0) - same.sum(axis=0)
    return RootChoice(np.where(count == 1, ordered[0], np.nan), count)


def _as_arrays(*coefficients: ArrayLike) -> tuple[FloatArray, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(c, dtype=np.float64) for c in coefficients)))


def _normalised(*coefficients: FloatArray) -> tuple[FloatArray, ...]:
    """The same polynomial with its largest coefficient between 1/2 and 1, scaled without rounding.

    All-zero and non-finite polynomials become NaN: they have no roots to speak of.
    """
    largest = np.max(np.abs(np.stack(coefficients)), axis=0)
    usable = np.isfinite(largest) & (largest > 0)
    _, exponent = np.frexp(np.where(usable, largest, 1.0))
    return tuple(np.where(usable, np.ldexp(c, -exponent), np.nan) for c in coefficients)


def _sorted(roots: FloatArray) -> FloatArray:
    return np.sort(roots, axis=0)  # NaN goes last


def _one_cubic_root(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
    """A real root of a cubic, approached from outside so that Newton's method cannot stray."""
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
            # Steps fall short by a hair, so that rounding cannot carry one past the root.
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
    """Middle and last coefficient of the quadratic that is left beside a root of a cubic."""
    with np.errstate(all="ignore"):
        forward_b = a * root + b
        forward_c = forward_b * root + c
        backward_c = -d / root
        backward_b = (backward_c - c) / root
        # Dividing out a large root from the front would cancel digits; from the back it does not.
        from_back = np.abs(a) * root**2 > np.abs(d / root)
    return np.where(from_back, backward_b, forward_b), np.where(from_back, backward_c, forward_c)


def _discriminant(a: FloatArray, b: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """b² - a c to almost full precision, and the size of its two terms."""
    with np.errstate(invalid="ignore"):
        square, square_error = _exact_product(b, b)
        product, product_error = _exact_product(a, c)
        return (square - product) + (square_error - product_error), square + np.abs(product)


def _exact_product(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rounded product and its rounding error (Dekker 1971)."""
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    product = x * y
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _split(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    shifted = 134217729.0 * x  # 2**27 + 1 cuts a double's 53 bits into two halves
    high = shifted - (shifted - x)
    return high, x - high
