"""Cramér-Rao bound of the windows of `joint` on a texture, by cue."""

import numpy as np

from d3s.lab.design.window_fit import Diffraction, transfer_at
from d3s.optics.information import (
    DepthBound,
    DepthInformation,
    depth_bound,
    spectral_information,
    usable_share,
)
from d3s.optics.lens import Lens
from d3s.optics.stereo import disparity_slope_px_per_m
from d3s.rig import Optics
from d3s.types import FloatArray

_STEP_SHARE = 1e-4  # of the depth, for derivatives


def texture_bound(
    texture: FloatArray,
    depth_m: float,
    optics: Optics,
    *,
    window_px: int,
    noise_sigma: float,
    diffraction: Diffraction = Diffraction(),  # noqa: B008 - immutable
) -> DepthBound:
    """Smallest standard deviation of the depth of a window of a texture, in metres, by cue.

    `texture` is a sharp picture of the surface, (rows, cols), one texel per pixel; the noise of a
    pixel is of full scale.
    """
    power, radius, across = _spectrum(texture, window_px)
    lenses = [optics.lens(camera) for camera in (0, 1)]
    transfers = [_transfers(lens, depth_m, diffraction, radius) for lens in lenses]
    (h0, h0_slope), (h1, h1_slope) = transfers
    usable = usable_share(power, (h0, h1), noise_sigma)
    slope = disparity_slope_px_per_m(
        depth_m, focal_length_px=optics.focal_length_px, baseline_m=optics.baseline_m
    )
    found = spectral_information(
        window_px**2 * power * usable / power.size,
        across,
        (h0, h1),
        (h0_slope, h1_slope),
        disparity_slope_px_per_m=float(slope),
        noise_sigma=noise_sigma,
    )
    return depth_bound(DepthInformation(*found))


def _spectrum(texture: FloatArray, window_px: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Power density of a picture at each frequency, and the frequencies, radial and along rows."""
    from scipy import fft

    taper = np.outer(*(np.hanning(size + 2)[1:-1] for size in texture.shape))
    spectrum = fft.fft2((texture - texture.mean()) * taper)
    power = np.abs(spectrum) ** 2 / np.square(taper).sum()
    down, across = (np.fft.fftfreq(size) for size in texture.shape)
    radius = np.hypot(down[:, np.newaxis], across)
    # Coarser detail than the window is seen by it as shading.
    power[radius < 1 / window_px] = 0.0
    return power, radius, np.broadcast_to(across, radius.shape)


def _transfers(
    lens: Lens, depth_m: float, diffraction: Diffraction, radius: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Transfer function of a lens, and its derivative by the depth, at frequencies."""
    step_m = _STEP_SHARE * depth_m
    near, here, far = (
        transfer_at(radius, lens, depth_m + sign * step_m, diffraction) for sign in (-1, 0, 1)
    )
    return here, (far - near) / (2 * step_m)
