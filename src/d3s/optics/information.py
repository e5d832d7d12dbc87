"""How well can depth be known? The Cramér-Rao bound of a pair of noisy windows.

Both views show one unknown texture T, blurred by two optical transfer functions H0 and H1 and
displaced by the disparity d, each with white noise of the same standard deviation. Per spatial
frequency the texture is a nuisance to be estimated along with the depth; what is left for the depth
after that is, exactly and with no mixed term::

    |T|² [ (2 pi fx d' H0 H1)² + (H0 H1' - H1 H0')² ] / (H0² + H1²) / noise²

with a dash for the derivative to depth: what stereo knows, plus what defocus knows. It can be had
where the texture stands out of the noise. Of a frequency at which it does not, only the share
P / (P + noise²) can, with ``P = |T|² (H0² + H1²)``; see `usable_share`.
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
"""OTF of one camera: (frequency in cycles/px, depth in m) -> real transfer."""


class DepthInformation(NamedTuple):
    """Fisher information on depth, in 1/m², by cue. The cues are independent: they add."""

    stereo_per_m2: FloatArray
    defocus_per_m2: FloatArray

    @property
    def total_per_m2(self) -> FloatArray:
        """What both cues know together."""
        return np.asarray(self.stereo_per_m2 + self.defocus_per_m2)

    @property
    def defocus_share(self) -> FloatArray:
        """Part of the information that comes from defocus, 0 to 1."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.defocus_per_m2 / self.total_per_m2)


class DepthBound(NamedTuple):
    """Smallest standard deviation that an unbiased depth can have, in metres, by cue."""

    total_m: FloatArray
    stereo_m: FloatArray
    defocus_m: FloatArray


def depth_bound(information: DepthInformation) -> DepthBound:
    """The Cramér-Rao bound that belongs to an information; infinite where there is none."""
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
    """Information of a window whose two views are blurred almost alike.

    The stereo part holds for any blur. The defocus part is that of a Gaussian blur: for a disk,
    whose transfer has zeros that move with depth, the true one is larger, and for a lens that
    diffracts smaller; `spectral_information` takes any transfer.

    Parameters
    ----------
    gradient_energy, laplacian_energy
        Sums over the window of S_x² and (S_xx + S_yy)² of the aligned views' mean, noise-free.
    alpha_px2_m
        `d3.alpha_px2_m`; zero for lenses that focus alike.
    noise_sigma
        Standard deviation of the noise of one view, in the unit of the image; a number or a map.
    """
    slope = disparity_slope_px_per_m(
        depth_m, focal_length_px=focal_length_px, baseline_m=baseline_m
    )
    spread_slope = alpha_px2_m * vergence_dpt(depth_m) ** 2
    per_noise = 0.5 / np.square(np.asarray(noise_sigma, dtype=np.float64))
    return DepthInformation(
        np.asarray(per_noise * slope**2 * np.asarray(gradient_energy)),
        np.asarray(per_noise * spread_slope**2 * np.asarray(laplacian_energy)),
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
    """Information summed over frequencies, for any pair of transfer functions.

    Exact for a texture that stands out of the noise; see `usable_share` for one that does not.

    Parameters
    ----------
    energy
        Squared spectrum of the sharp texture, scaled to add up to its sum of squares.
    frequency_x
        Horizontal frequencies, in cycles/px.
    transfer, transfer_slope
        (H0, H1) and their derivatives to depth.
    """
    (h0, h1), (h0_slope, h1_slope) = transfer, transfer_slope
    length = np.hypot(h0, h1)  # divided by at once: squares of small transfers would vanish
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
    """Part of a frequency's information that noise leaves, P / (P + noise²), 0 to 1.

    `power` is the expected squared magnitude of a frequency of the sharp texture, on the scale on
    which white noise has noise²: a power density per cycle²/px².
    """
    signal = np.asarray(power) * (transfer[0] ** 2 + transfer[1] ** 2)
    return np.asarray(signal / (signal + noise_sigma**2))


def scale_invariant_power(frequency: ArrayLike, *, contrast: float, window_px: int) -> FloatArray:
    """Power density of a texture that looks the same at every distance, per cycle²/px².

    It falls with the square of the frequency, as in natural images, between one cycle a window
    and half a cycle a pixel; the standard deviation over that band is `contrast` (full scale 1).
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
    """Information that a window of a scale-invariant texture gives at a depth, on average.

    The designer's figure: it needs no image, only the transfer functions of both cameras. What
    lies below the noise is discounted (`usable_share`). Texture and transfer are the same in all
    directions, so the frequency plane is summed ring by ring.
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
    """Bound for the window around each pixel of the left view, (rows, cols).

    Derivatives of the right view are taken first and then aligned at the given depth, a number or
    a map in the left view. The energy of a derivative is its product over the two views, which
    independent noise does not raise on average, so that noisy images may be passed; but in a window
    without texture the product of two noises is left, and the bound with it is random.

    A pixel adds nothing where the right view does not see it, where it has no depth, or within
    `windows.MARGIN_PX` of a border; where the pixel itself is such a one the bound is NaN. See
    `window_information` for the blur that the defocus part assumes. Near half a cycle a pixel
    the derivatives fall short: for natural texture with no blur at all the bound is 17 % too
    large, and for one with a sigma of a pixel it is right within 1 %.
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
    """Windowed sum of what is known, never below zero (noise may push an empty window there)."""
    return np.maximum(window_sum(np.nan_to_num(product), window_px), 0.0)


def _depth_slope(transfer: TransferFunction, frequency: FloatArray, depth_m: float) -> FloatArray:
    step_m = 1e-4 * depth_m
    ahead, behind = transfer(frequency, depth_m + step_m), transfer(frequency, depth_m - step_m)
    return np.asarray((ahead - behind) / (2 * step_m))
