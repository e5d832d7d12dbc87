"""Cramér-Rao bound of the depth of a pair of noisy windows, by cue.

Both views show one unknown texture T, blurred by two optical transfer functions H0 and H1 and
shifted by the disparity d, each with white noise of the same standard deviation. At each spatial
frequency the texture is a nuisance parameter, estimated together with the depth. The Fisher
information on depth that remains is, exactly and without a mixed term::

    |T|² [ (2 pi fx d' H0 H1)² + (H0 H1' - H1 H0')² ] / (H0² + H1²) / noise²

where a prime is the derivative with respect to depth. The first term is the information of stereo,
the second that of defocus. An estimator reaches it where the texture exceeds the noise; at other
frequencies only the share P / (P + noise²) is usable, with ``P = |T|² (H0² + H1²)``; see
`usable_share`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.optics.stereo import disparity_px, disparity_slope_px_per_m
from d3s.optics.thin_lens import vergence_dpt
from d3s.optics.windows import (
    sharp_gradient_x,
    sharp_laplacian,
    shifted_right,
    window_sum,
)
from d3s.types import FloatArray

TransferFunction = Callable[[FloatArray, float], FloatArray]
"""Optical transfer function of one camera: (frequency in cycles/px, depth in m) -> real values."""


class DepthInformation(NamedTuple):
    """Fisher information on depth, in 1/m², by cue. The cues are independent, so they add."""

    stereo_per_m2: FloatArray
    defocus_per_m2: FloatArray

    @property
    def total_per_m2(self) -> FloatArray:
        """Information of both cues together, in 1/m²."""
        return np.asarray(self.stereo_per_m2 + self.defocus_per_m2)

    @property
    def defocus_share(self) -> FloatArray:
        """Share of the information that comes from defocus, 0 to 1."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.defocus_per_m2 / self.total_per_m2)


class DepthBound(NamedTuple):
    """Smallest standard deviation of an unbiased depth estimate, in metres, by cue."""

    total_m: FloatArray
    stereo_m: FloatArray
    defocus_m: FloatArray


def depth_bound(information: DepthInformation) -> DepthBound:
    """Cramér-Rao bound 1 / sqrt(information), in metres; infinite without information."""
    with np.errstate(divide="ignore"):
        return DepthBound(
            total_m=1.0 / np.sqrt(information.total_per_m2),
            stereo_m=1.0 / np.sqrt(information.stereo_per_m2),
            defocus_m=1.0 / np.sqrt(information.defocus_per_m2),
        )


def window_information(
    gradient_energy: ArrayLike,
    laplacian_energy: ArrayLike,
    depth_m: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
    alpha_px2_m: float,
    noise_sigma: ArrayLike,
) -> DepthInformation:
    """Fisher information of a window whose two views have almost equal blur.

    The stereo term holds for any blur. The defocus term assumes Gaussian blur: it is too small for
    a disk, whose transfer function has zeros that move with depth, and too large for a lens with
    diffraction. `spectral_information` accepts any transfer function.

    Parameters
    ----------
    gradient_energy, laplacian_energy
        Sums over the window of S_x² and (S_xx + S_yy)², without noise, where S is the mean of the
        aligned views.
    depth_m
        Depth of the window, in metres; broadcasts with the energies.
    focal_length_px
        Focal length s0 / p, in pixels.
    baseline_m
        Distance of the lens centres, in metres.
    alpha_px2_m
        Result of `d3.alpha_px2_m`; 0 for lenses with equal focus.
    noise_sigma
        Standard deviation of the noise of one view, in the unit of the image; a number or a map.
    """
    slope = disparity_slope_px_per_m(
        depth_m, focal_length_px=focal_length_px, baseline_m=baseline_m
    )
    diffusion_slope = alpha_px2_m * vergence_dpt(depth_m) ** 2
    per_noise = 0.5 / np.square(np.asarray(noise_sigma, dtype=np.float64))
    return DepthInformation(
        np.asarray(per_noise * slope**2 * np.asarray(gradient_energy)),
        np.asarray(per_noise * diffusion_slope**2 * np.asarray(laplacian_energy)),
    )


def spectral_information(
    energy: ArrayLike,
    frequency_x: ArrayLike,
    transfer: tuple[FloatArray, FloatArray],
    transfer_slope: tuple[FloatArray, FloatArray],
    *,
    disparity_slope_px_per_m: float,
    noise_sigma: float,
) -> DepthInformation:
    """Fisher information summed over frequencies, for any pair of transfer functions.

    Exact for a texture that exceeds the noise; see `usable_share` for other textures.

    Parameters
    ----------
    energy
        Squared spectrum of the sharp texture, scaled so that its sum is the texture's sum of
        squares. All arrays have the same shape, one value per frequency.
    frequency_x
        Horizontal frequencies, in cycles/px.
    transfer
        Transfer functions (H0, H1) of both cameras.
    transfer_slope
        Derivatives of H0 and H1 with respect to depth, in 1/m.
    disparity_slope_px_per_m
        Derivative of the disparity with respect to depth, in px/m.
    noise_sigma
        Standard deviation of the noise of one view, in the unit of the texture.
    """
    (h0, h1), (h0_slope, h1_slope) = transfer, transfer_slope
    length = np.hypot(h0, h1)  # divide before squaring: squares of small transfers underflow
    unit = [np.divide(h, length, out=np.zeros_like(h), where=length > 0) for h in (h0, h1)]
    shift = 2 * np.pi * np.asarray(frequency_x) * disparity_slope_px_per_m * unit[0] * h1
    blur = unit[0] * h1_slope - unit[1] * h0_slope
    return DepthInformation(
        np.asarray(np.sum(np.asarray(energy) * shift**2) / noise_sigma**2),
        np.asarray(np.sum(np.asarray(energy) * blur**2) / noise_sigma**2),
    )


def usable_share(
    power: ArrayLike, transfer: tuple[FloatArray, FloatArray], noise_sigma: float
) -> FloatArray:
    """Share of the information of a frequency that noise leaves, P / (P + noise²), 0 to 1.

    Parameters
    ----------
    power
        Expected power density of the sharp texture at each frequency, per cycle²/px²; white noise
        has the density noise_sigma².
    transfer
        Transfer functions (H0, H1) of both cameras at each frequency.
    noise_sigma
        Standard deviation of the noise of one view.
    """
    signal = np.asarray(power) * (transfer[0] ** 2 + transfer[1] ** 2)
    return np.asarray(signal / (signal + noise_sigma**2))


def scale_invariant_power(frequency: ArrayLike, *, contrast: float, window_px: int) -> FloatArray:
    """Power density of a scale-invariant texture, per cycle²/px².

    The density falls with the square of the frequency, as in natural images, from one cycle per
    window to half a cycle per pixel, and is 0 elsewhere.

    Parameters
    ----------
    frequency
        Spatial frequencies, in cycles/px.
    contrast
        Standard deviation of the texture over that band, full scale 1.
    window_px
        Side of the window, in pixels.
    """
    f = np.asarray(frequency, dtype=np.float64)
    inside = (f >= 1.0 / window_px) & (f <= 0.5)
    density = contrast**2 / (2 * np.pi * np.log(0.5 * window_px))
    return np.asarray(np.divide(density, f**2, out=np.zeros_like(f), where=inside))


def expected_information(
    depth_m: float,
    transfer_left: TransferFunction,
    transfer_right: TransferFunction,
    *,
    focal_length_px: float,
    baseline_m: float,
    contrast: float,
    noise_sigma: float,
    window_px: int,
) -> DepthInformation:
    """Expected Fisher information of a window of scale-invariant texture at a depth.

    For the design of a camera: no image is needed, only the transfer functions of both cameras.
    Frequencies below the noise are discounted (`usable_share`). Texture and transfer are
    isotropic, so the frequency plane is summed ring by ring.

    Parameters
    ----------
    depth_m
        Depth of the window, in metres.
    transfer_left, transfer_right
        Transfer functions of both cameras.
    focal_length_px, baseline_m
        As for `window_information`.
    contrast
        Standard deviation of the sharp texture, full scale 1.
    noise_sigma
        Standard deviation of the noise of one view, full scale 1.
    window_px
        Side of the window, in pixels.
    """
    edges = np.geomspace(1.0 / window_px, 0.5, 513)
    frequency = np.sqrt(edges[1:] * edges[:-1])
    rings = np.pi * (edges[1:] ** 2 - edges[:-1] ** 2)
    power = scale_invariant_power(frequency, contrast=contrast, window_px=window_px)
    transfers = (transfer_left, transfer_right)
    h0, h1 = (transfer(frequency, depth_m) for transfer in transfers)
    h0_slope, h1_slope = (_depth_slope(transfer, frequency, depth_m) for transfer in transfers)
    usable = usable_share(power, (h0, h1), noise_sigma)
    slope = disparity_slope_px_per_m(
        depth_m, focal_length_px=focal_length_px, baseline_m=baseline_m
    )
    return spectral_information(
        window_px**2 * rings * power * usable,
        frequency / np.sqrt(2),  # the root mean square of fx on a ring
        (h0, h1),
        (h0_slope, h1_slope),
        disparity_slope_px_per_m=float(slope),
        noise_sigma=noise_sigma,
    )


def depth_bound_map(
    left: ArrayLike,
    right: ArrayLike,
    depth_m: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
    disparity_offset_px: float,
    alpha_px2_m: float,
    noise_sigma: ArrayLike,
    window_px: int,
) -> DepthBound:
    """Cramér-Rao bound for the window around each pixel of the left view, (rows, cols).

    Derivatives of the right view are computed first and then aligned at the given depth. The
    energy of a derivative is its product over the two views; independent noise does not change the
    mean of this product, so noisy images are allowed. In a window without texture only the product
    of two noises remains, and the bound is random.

    Pixels that the right view does not see, without a depth, or within `windows.MARGIN_PX` of a
    border add nothing; the bound at such a pixel is NaN. See `window_information` for the blur
    that the defocus term assumes. Near half a cycle per pixel the derivatives are too small: the
    bound of natural texture without any blur is 17 % too large, with a blur sigma of 1 px it is
    right within 1 %.

    Parameters
    ----------
    left, right
        Views of a rectified pair, (rows, cols).
    depth_m
        Depth in the left view, in metres, a number or a map (rows, cols).
    focal_length_px, baseline_m, alpha_px2_m, noise_sigma
        As for `window_information`.
    disparity_offset_px
        Disparity of a point at infinity, in pixels.
    window_px
        Side of the window, odd, in pixels.
    """
    depth = np.broadcast_to(np.asarray(depth_m, dtype=np.float64), np.shape(left))
    depth = np.where(depth > 0, depth, np.nan)
    disparity = disparity_px(
        depth,
        focal_length_px=focal_length_px,
        baseline_m=baseline_m,
        disparity_offset_px=disparity_offset_px,
    )
    gradient = sharp_gradient_x(left) * shifted_right(sharp_gradient_x(right), disparity)
    laplacian = sharp_laplacian(left) * shifted_right(sharp_laplacian(right), disparity)
    bounds = depth_bound(
        window_information(
            _energy(gradient, window_px),
            _energy(laplacian, window_px),
            depth,
            focal_length_px=focal_length_px,
            baseline_m=baseline_m,
            alpha_px2_m=alpha_px2_m,
            noise_sigma=noise_sigma,
        )
    )
    column = np.arange(depth.shape[1]) - disparity
    seen = (column >= 0) & (column <= depth.shape[1] - 1) & np.isfinite(np.asarray(left))
    return DepthBound(*(np.where(seen, bound, np.nan) for bound in bounds))


def _energy(product: FloatArray, window_px: int) -> FloatArray:
    """Windowed sum without NaN, clipped at 0 (noise can make the sum negative)."""
    return np.maximum(window_sum(np.nan_to_num(product), window_px), 0.0)


def _depth_slope(transfer: TransferFunction, frequency: FloatArray, depth_m: float) -> FloatArray:
    step_m = 1e-4 * depth_m
    ahead, behind = transfer(frequency, depth_m + step_m), transfer(frequency, depth_m - step_m)
    return np.asarray((ahead - behind) / (2 * step_m))
