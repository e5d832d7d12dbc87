"""Dual Differential Defocus: depth in closed form from two views that differ in place and focus.

The right image is first moved to the right by `stereo.alignment_shift_px`, which leaves the
residual disparity of a small virtual baseline. S is the mean of the left image and the shifted
right one, I' their difference, left less right.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.errors import InputError
from d3s.optics.lens import Lens
from d3s.optics.thin_lens import blur_gain_px_m, focus_vergence_dpt
from d3s.optics.windows import central_gradient_x, five_point_laplacian, window_sum
from d3s.types import FloatArray


def alpha_px2_m(left: Lens, right: Lens) -> float:
    """Half the blur-variance difference of two lenses per dioptre of defocus, in px² m.

    The alpha of paper Eq. 10, (w s0 A / p)^2 (kappa_0 - kappa_1) with kappa = rho - 1/s: the
    lenses may differ in power, in sensor distance, or in both. With `kappa_dpt` the difference
    v_0 - v_1 = -2 alpha (1/Z - kappa) is exact, however large it is.
    """
    gain, other = blur_gain_px_m(left), blur_gain_px_m(right)
    if gain != other:
        raise InputError(
            f"the lenses must have one aperture, reference distance, pitch and Gaussian width: "
            f"they blur by {gain} and {other} px per dioptre. Only the focus may differ."
        )
    return gain**2 * (focus_vergence_dpt(left) - focus_vergence_dpt(right))


def kappa_dpt(left: Lens, right: Lens) -> float:
    """Vergence at which both lenses blur alike, in 1/m: (rho_0 + rho_1)/2 - 1/s0 for one sensor."""
    return 0.5 * (focus_vergence_dpt(left) + focus_vergence_dpt(right))


class PairDerivatives(NamedTuple):
    """What D3 needs of an aligned pair, per pixel."""

    difference: FloatArray
    mean_grad_x: FloatArray
    mean_laplacian: FloatArray


def finite_differences(left: ArrayLike, right_aligned: ArrayLike) -> PairDerivatives:
    """Difference of an aligned pair, and derivatives of its mean (paper Eq. 11); NaN at borders."""
    first = np.asarray(left, dtype=np.float64)
    second = np.asarray(right_aligned, dtype=np.float64)
    mean = 0.5 * (first + second)
    return PairDerivatives(first - second, central_gradient_x(mean), five_point_laplacian(mean))


class _Terms(NamedTuple):
    """Numerator and denominator of the D3 equation."""

    numerator: FloatArray
    denominator: FloatArray


def _terms(
    derivatives: PairDerivatives,
    virtual_baseline_m: float,
    focal_length_px: float,
    alpha_px2_m: float,
    kappa_dpt: float,
) -> _Terms:
    # The right camera stands to the right, so left less right is a lens that moved left: hence
    # the minus before the gradient, where the paper has a plus for its own X_0 - X_1.
    spread = alpha_px2_m * derivatives.mean_laplacian
    flow = focal_length_px * virtual_baseline_m * derivatives.mean_grad_x
    return _Terms(-flow - spread, derivatives.difference - kappa_dpt * spread)


def d3_depth_m(
    derivatives: PairDerivatives,
    virtual_baseline_m: float,
    *,
    focal_length_px: float,
    alpha_px2_m: float,
    kappa_dpt: float,
) -> FloatArray:
    """Depth of every pixel by itself (paper Eq. 10); infinite or NaN where nothing changes.

    Parameters
    ----------
    derivatives
        Of the pair aligned to the virtual baseline.
    virtual_baseline_m
        Baseline that the alignment left over, right camera to the right of the left one.
    focal_length_px
        s0 / p.
    alpha_px2_m, kappa_dpt
        What the functions of these names give for the two lenses.
    """
    terms = _terms(derivatives, virtual_baseline_m, focal_length_px, alpha_px2_m, kappa_dpt)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(terms.numerator / terms.denominator)


def d3_windowed_depth_m(
    derivatives: PairDerivatives,
    virtual_baseline_m: float,
    *,
    focal_length_px: float,
    alpha_px2_m: float,
    kappa_dpt: float,
    window_px: int,
) -> FloatArray:
    """Depth that fits the D3 equation best, in least squares, over the window of each pixel.

    Minimises the sum of (Z denominator - numerator)². Parameters as `d3_depth_m`.
    """
    terms = _terms(derivatives, virtual_baseline_m, focal_length_px, alpha_px2_m, kappa_dpt)
    product = window_sum(terms.numerator * terms.denominator, window_px)
    square = window_sum(terms.denominator**2, window_px)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(product / square)


def gradient_ratio_per_px(derivatives: PairDerivatives, window_px: int) -> FloatArray:
    """Windowed sum(S_x I') / sum(I'²): all that the practical form takes from the images.

    It depends on the alignment shift alone, not on the candidate depth or baseline behind it.
    """
    difference = derivatives.difference
    product = window_sum(derivatives.mean_grad_x * difference, window_px)
    square = window_sum(difference**2, window_px)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(product / square)


def practical_depth_m(ratio_per_px: ArrayLike, *, a_m_px: float, b_m: float) -> FloatArray:
    """Depth from `gradient_ratio_per_px` and two calibrated numbers (paper Eq. 17).

    Without defocus a = -focal_length_px * virtual_baseline_m and b = 0.
    """
    return np.asarray(a_m_px * np.asarray(ratio_per_px, dtype=np.float64) + b_m)
