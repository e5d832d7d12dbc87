"""Limits of a camera: blur, disparity and Cramér-Rao bound of the depth, by cue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from d3s.errors import DesignError, InputError, RecordError
from d3s.optics import psf
from d3s.optics.information import (
    DepthBound,
    DepthInformation,
    TransferFunction,
    depth_bound,
    expected_information,
    spectral_information,
    usable_share,
)
from d3s.optics.lens import Lens
from d3s.optics.stereo import disparity_slope_px_per_m
from d3s.optics.thin_lens import blur_radius_px, blur_sigma_px
from d3s.record import Record
from d3s.rig import Optics
from d3s.types import FloatArray

Spread = Literal["gaussian", "disk", "diffraction"]

WAVELENGTH_M = 550e-9
"""Wavelength of the light: green."""

# Frequencies of the tables of transfer functions, from 0 to the corner of the spectrum.
_TABLE_STEPS = 640
_CORNER = np.sqrt(0.5)


class Conditions(Record):
    """Assumptions of a limit: texture, noise, window and light.

    The texture is scale-invariant (`optics.information.scale_invariant_power`), so its difficulty
    does not depend on distance. The bound is nearly proportional to the inverse of its contrast.
    """

    error: ClassVar[type[RecordError]] = DesignError

    noise_sigma: float = Field(
        default=0.01,  # that of the figures in the documentation
        gt=0,
        lt=1,
        description="the standard deviation of the noise of a pixel, of full scale",
    )
    contrast: float = Field(
        default=0.15,  # moderate
        gt=0,
        le=1,
        description="the standard deviation of the sharp texture, of full scale",
    )
    window_px: int = Field(
        default=31,  # small compared with most objects in a frame
        ge=3,
        le=10_000,
        description="the side of the window whose pixels share a depth",
    )
    wavelength_m: float = Field(
        default=550e-9, gt=1e-7, lt=1e-4, description="the wavelength of the light, for diffraction"
    )


@dataclass(frozen=True, kw_only=True)
class DepthLimits:
    """Geometry and accuracy bound of a camera at several depths; one value per depth."""

    depth_m: FloatArray
    conditions: Conditions
    disparity_px: FloatArray
    blur_sigma_px: tuple[FloatArray, FloatArray]
    information: DepthInformation

    @property
    def bound(self) -> DepthBound:
        """Smallest possible standard deviation of the depth of a window, in metres, by cue."""
        return depth_bound(self.information)


def depth_limits(
    optics: Optics,
    depths_m: Sequence[float] | FloatArray,
    *,
    spread: Spread,
    conditions: Conditions,
) -> DepthLimits:
    """Blur, disparity and accuracy bound of a camera at several depths.

    `spread` is the shape of the PSF: "gaussian" of the depth equations, "disk" of geometric optics,
    or "diffraction" of a perfect lens, the best that a real lens can reach. An InputError if it is
    unknown, or a depth is not positive and finite.
    """
    depths = np.asarray(depths_m, dtype=np.float64)
    if depths.ndim != 1 or not np.all(np.isfinite(depths) & (depths > 0)):
        raise InputError(
            f"depths_m={depths_m!r} must be a list of positive, finite depths, in metres."
        )
    transfers = tuple(
        transfer_function(optics.lens(camera), spread, conditions.wavelength_m) for camera in (0, 1)
    )
    information = [
        expected_information(
            float(depth),
            *transfers,
            focal_length_px=optics.focal_length_px,
            baseline_m=optics.baseline_m,
            contrast=conditions.contrast,
            noise_sigma=conditions.noise_sigma,
            window_px=conditions.window_px,
        )
        for depth in depths
    ]
    return DepthLimits(
        depth_m=depths,
        conditions=conditions,
        disparity_px=optics.disparity_px(depths),
        blur_sigma_px=(optics.blur_sigma_px(depths, 0), optics.blur_sigma_px(depths, 1)),
        information=DepthInformation(
            np.array([at_depth.stereo_per_m2 for at_depth in information]),
            np.array([at_depth.defocus_per_m2 for at_depth in information]),
        ),
    )


def transfer_function(lens: Lens, spread: Spread, wavelength_m: float) -> TransferFunction:
    """Transfer function of one camera, of frequency (cycles/px) and depth (m)."""
    functions: dict[Spread, TransferFunction] = {
        "gaussian": lambda f, depth: psf.gaussian_otf(f, blur_sigma_px(depth, lens)),
        "disk": lambda f, depth: psf.disk_otf(f, blur_radius_px(depth, lens)),
        "diffraction": lambda f, depth: psf.diffraction_otf(
            f, blur_radius_px(depth, lens), lens, wavelength_m
        ),
    }
    if spread not in functions:
        raise InputError(f"spread={spread!r} must be one of {', '.join(functions)}.")
    return functions[spread]


_STEP_SHARE = 1e-4  # of the depth, for derivatives


def texture_bound(
    texture: FloatArray,
    depth_m: float,
    optics: Optics,
    *,
    window_px: int,
    noise_sigma: float,
) -> DepthBound:
    """Smallest standard deviation of the depth of a window of a texture, in metres, by cue.

    `texture` is a sharp picture of the surface, (rows, cols), one texel per pixel; the noise of a
    pixel is of full scale.
    """
    power, radius, across = _spectrum(texture, window_px)
    lenses = [optics.lens(camera) for camera in (0, 1)]
    transfers = [_transfers(lens, depth_m, radius) for lens in lenses]
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


def _transfers(lens: Lens, depth_m: float, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Transfer function of a lens, and its derivative by the depth, at frequencies."""
    step_m = _STEP_SHARE * depth_m
    near, here, far = (transfer_at(radius, lens, depth_m + sign * step_m) for sign in (-1, 0, 1))
    return here, (far - near) / (2 * step_m)


def transfer_at(
    radius: FloatArray,
    lens: Lens,
    depth_m: float,
) -> FloatArray:
    """Transfer function of a lens at frequencies in cycles/px, interpolated in a table of it."""
    if lens.aperture_radius_m == 0:
        return np.ones_like(radius)
    table_at = np.linspace(0.0, _CORNER, _TABLE_STEPS + 1)
    function = transfer_function(lens, "diffraction", WAVELENGTH_M)
    return np.asarray(np.interp(radius, table_at, function(table_at, depth_m)))
