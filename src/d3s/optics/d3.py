"""Dual Differential Defocus (D3): depth in closed form from two views with different focus.

The right image is first shifted to the right by `stereo.alignment_shift_px`, which leaves the
residual disparity of a small virtual baseline. S is the mean of the left image and the shifted
right image, I' the difference left - right.
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

    The alpha of paper Eq. 10: (w s0 A / p)² (kappa_0 - kappa_1) with kappa = rho - 1/s. The lenses
    may differ in power, in sensor distance, or in both. The variance difference
    v_0 - v_1 = -2 alpha (1/Z - `kappa_dpt`) is exact, not an approximation for small differences.

    Raises
    ------
    InputError
        If the lenses differ in anything but their focus.
    """
    gain, other = blur_gain_px_m(left), blur_gain_px_m(right)
    if gain != other:
        raise InputError(
            f"the lenses must have one aperture, reference distance, pitch and Gaussian width: "
            f"they blur by {gain} and {other} px per dioptre. Only the focus may differ."
        )
    return gain**2 * (focus_vergence_dpt(left) - focus_vergence_dpt(right))


def kappa_dpt(left: Lens, right: Lens) -> float:
    """Vergence at which both lenses blur equally, in 1/m.

    The kappa of paper Eq. 10: (rho_0 + rho_1)/2 - 1/s0 if both sensor distances are s0.
    """
    return 0.5 * (focus_vergence_dpt(left) + focus_vergence_dpt(right))


class PairDerivatives(NamedTuple):
    """Derivatives of an aligned pair, (rows, cols): I', S_x and S_xx + S_yy."""

    difference: FloatArray
    mean_grad_x: FloatArray
    mean_laplacian: FloatArray


def finite_differences(left: ArrayLike, right_aligned: ArrayLike) -> PairDerivatives:
    """Difference of an aligned pair and derivatives of its mean (paper Eq. 11); NaN at borders."""
    first = np.asarray(left, dtype=np.float64)
    second = np.asarray(right_aligned, dtype=np.float64)
    mean = 0.5 * (first + second)
    return PairDerivatives(first - second, central_gradient_x(mean), five_point_laplacian(mean))


def _terms(
    derivatives: PairDerivatives,
    virtual_baseline_m: float,
    focal_length_px: float,
    alpha_px2_m: float,
    kappa_dpt: float,
) -> tuple[FloatArray, FloatArray]:
    """Numerator and denominator of the D3 equation (paper Eq. 10)."""
    # Left - right is the change from the right camera to the left one, a motion to the left: hence
    # the minus before the gradient, where the paper has a plus for its own X_0 - X_1.
    diffusion = alpha_px2_m * derivatives.mean_laplacian
    flow = focal_length_px * virtual_baseline_m * derivatives.mean_grad_x
    return -flow - diffusion, derivatives.difference - kappa_dpt * diffusion


def d3_depth_m(
    derivatives: PairDerivatives,
    virtual_baseline_m: float,
    *,
    focal_length_px: float,
    alpha_px2_m: float,
    kappa_dpt: float,
) -> FloatArray:
    """Depth of each pixel on its own, in metres (paper Eq. 10).

    Infinite or NaN where the two views do not differ.

    Parameters
    ----------
    derivatives
        Derivatives of the pair, aligned so that the virtual baseline remains.
    virtual_baseline_m
        Baseline that the alignment leaves, in metres; positive if the right camera is still to
        the right of the left one.
    focal_length_px
        Focal length s0 / p, in pixels.
    alpha_px2_m, kappa_dpt
        Results of the functions of the same names for the two lenses.
    """
    numerator, denominator = _terms(
        derivatives, virtual_baseline_m, focal_length_px, alpha_px2_m, kappa_dpt
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / denominator)


def d3_windowed_depth_m(
    derivatives: PairDerivatives,
    virtual_baseline_m: float,
    *,
    focal_length_px: float,
    alpha_px2_m: float,
    kappa_dpt: float,
    window_px: int,
) -> FloatArray:
    """Depth of the window around each pixel, in metres, by least squares.

    Minimises the sum of (Z denominator - numerator)² of the D3 equation (paper Eq. 10) over the
    window.

    Parameters
    ----------
    derivatives, virtual_baseline_m, focal_length_px, alpha_px2_m, kappa_dpt
        As for `d3_depth_m`.
    window_px
        Side of the square window, odd, in pixels.
    """
    numerator, denominator = _terms(
        derivatives, virtual_baseline_m, focal_length_px, alpha_px2_m, kappa_dpt
    )
    return _window_ratio(numerator, denominator, window_px)


def gradient_ratio_per_px(derivatives: PairDerivatives, window_px: int) -> FloatArray:
    """Windowed ratio sum(S_x I') / sum(I'²), in 1/px: the image term of paper Eq. 17.

    The ratio depends on the alignment shift only. Candidates with the same shift share it.
    """
    return _window_ratio(derivatives.mean_grad_x, derivatives.difference, window_px)


def _window_ratio(first: FloatArray, second: FloatArray, window_px: int) -> FloatArray:
    """Windowed ratio sum(first second) / sum(second²)."""
    product = window_sum(first * second, window_px)
    square = window_sum(second**2, window_px)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(product / square)


def practical_depth_m(ratio_per_px: ArrayLike, *, a_m_px: float, b_m: float) -> FloatArray:
    """Depth in the practical form of D3, a ratio + b, in metres (paper Eq. 17).

    Without defocus, a = -focal_length_px * virtual_baseline_m and b = 0.

    Parameters
    ----------
    ratio_per_px
        Result of `gradient_ratio_per_px`, in 1/px.
    a_m_px
        Calibrated scale, in m px.
    b_m
        Calibrated offset, in metres.
    """
    return np.asarray(a_m_px * np.asarray(ratio_per_px, dtype=np.float64) + b_m)
