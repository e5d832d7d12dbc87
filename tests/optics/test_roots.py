"""Roots of polynomials, against polynomials made from known roots and against mpmath."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3s.optics.roots import choose_root, real_cubic_roots, real_quadratic_roots

mpmath = pytest.importorskip("mpmath")  # of sympy, which the core does without

sizes = st.floats(1e-3, 1e3).flatmap(lambda v: st.sampled_from([v, -v]))


def _reference(*coefficients: float) -> list[float]:
    """Real roots with 60 digits."""
    with mpmath.workdps(60):
        found = mpmath.polyroots([mpmath.mpf(c) for c in coefficients], maxsteps=500, extraprec=500)
        real = [r.real for r in found if abs(r.imag) <= mpmath.mpf(10) ** -25 * abs(r)]
        return sorted(float(r) for r in real)


def test_quadratic_by_hand():
    np.testing.assert_allclose(real_quadratic_roots(2, -3, 1), [1, 2])
    np.testing.assert_allclose(real_quadratic_roots(-8, 0, 2), [-2, 2])
    assert np.isnan(real_quadratic_roots(1, 0, 1)).all()


def test_quadratic_keeps_the_small_root_when_the_other_is_huge():
    # x² + 1e8 x + 1: the textbook formula has no digit of the small root right.
    np.testing.assert_allclose(real_quadratic_roots(1, 1e8, 1), [-1e8, -1e-8], rtol=1e-15)


def test_quadratic_of_lower_degree():
    np.testing.assert_array_equal(real_quadratic_roots(-1, 2, 0), [0.5, np.nan])
    np.testing.assert_array_equal(real_quadratic_roots(-1, 2, 1e-80), [0.5, np.nan])
    assert np.isnan(real_quadratic_roots(1, 0, 0)).all()
    np.testing.assert_array_equal(real_quadratic_roots(0, 0, 1), [0, 0])
    np.testing.assert_array_equal(real_quadratic_roots(0, 3, 0), [0, np.nan])


def test_cubic_by_hand():
    np.testing.assert_allclose(real_cubic_roots(-6, 11, -6, 1), [1, 2, 3], rtol=1e-13)
    np.testing.assert_allclose(real_cubic_roots(-8, 0, 0, 1), [2, np.nan, np.nan])
    np.testing.assert_allclose(real_cubic_roots(0, 2, 0, -2), [-1, 0, 1])


@pytest.mark.parametrize("leading", [1e-6, 1e-12, 1e-18, -1e-30, 1e-50])
def test_nearly_degenerate_cubic_keeps_its_ordinary_roots(leading):
    found = real_cubic_roots(2, -3, 1, leading)
    expected = _reference(leading, 1, -3, 2)
    assert len(expected) == 3
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_scale_of_the_coefficients_does_not_matter():
    for scale in (1e-200, 1e-30, 1e200):
        found = real_cubic_roots(*(scale * c for c in (-6, 11, -6, 1)))
        np.testing.assert_allclose(found, [1, 2, 3], rtol=1e-13)


@given(st.tuples(sizes, sizes, sizes, sizes))
def test_cubic_against_many_digits(coefficients):
    expected = _reference(*coefficients)
    found = real_cubic_roots(*coefficients[::-1])
    found = found[np.isfinite(found)]
    # Where two roots nearly coincide, rounding decides how many there are, and each has half the
    # digits; another test covers this case.
    a, b, c, d = coefficients
    with mpmath.workdps(60):
        a, b, c, d = (mpmath.mpf(v) for v in coefficients)
        terms = [18 * a * b * c * d, -4 * b**3 * d, b**2 * c**2, -4 * a * c**3, -27 * a**2 * d**2]
        conditioning = abs(sum(terms)) / max(abs(v) for v in terms)
    if conditioning > 1e-9:
        assert len(found) == len(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@given(sizes, sizes, sizes)
def test_every_root_makes_the_cubic_small(a, b, c):
    found = real_cubic_roots(1.0, c, b, a)
    assert np.isfinite(found).any(), "a cubic has at least one real root"
    for x in found[np.isfinite(found)]:
        terms = np.array([a * x**3, b * x**2, c * x, 1.0])
        assert abs(terms.sum()) <= 1e-10 * np.abs(terms).max()


@pytest.mark.parametrize("root", [0.3, 1.0, 1.64])
@pytest.mark.parametrize("other", [-2.0, 0.1, 40.0])
def test_double_root_is_found_in_spite_of_rounding(root, other):
    found = real_cubic_roots(*np.poly([root, root, other])[::-1])
    found = found[np.isfinite(found)]
    # Half the digits are all that a double root has.
    assert np.abs(found - other).min() < 1e-9 * abs(other)
    assert np.abs(found - root).min() < 1e-6 * root


def test_images_of_cubics_are_solved_as_single_ones_are():
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=(4, 7, 5))
    found = real_cubic_roots(*coefficients)
    assert found.shape == (3, 7, 5)
    for i, j in np.ndindex(7, 5):
        np.testing.assert_array_equal(found[:, i, j], real_cubic_roots(*coefficients[:, i, j]))


def test_choice_of_a_root():
    found = np.array([[0.1, 0.5, -1.0, 0.5, 0.7], [0.8, 0.9, 4.0, 9.0, 0.7]])
    choice = choose_root(np.vstack([found, np.full((1, 5), np.nan)]), near_m=0.3, far_m=2.0)
    np.testing.assert_array_equal(choice.depth_m, [0.8, np.nan, np.nan, 0.5, 0.7])
    np.testing.assert_array_equal(choice.roots_in_range, [1, 2, 0, 1, 1])
    np.testing.assert_array_equal(choice.is_ambiguous, [False, True, False, False, False])
