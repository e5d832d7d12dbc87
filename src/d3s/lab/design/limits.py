"""Limits of a camera: blur, disparity and Cramér-Rao bound of the depth, by cue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from d3s.errors import InputError
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
from d3s.rig import Optics
from d3s.types import FloatArray

Spread = Literal["gaussian", "disk", "diffraction"]

WAVELENGTH_M = 550e-9
"""Wavelength of the light: green."""

# Frequencies of the tables of transfer functions, from 0 to the corner of the spectrum.
_TABLE_STEPS = 640
_CORNER = np.sqrt(0.5)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Assumptions of a limit: texture, noise, window and light.

    The texture is scale-invariant (`optics.information.scale_invariant_power`), so its difficulty
    does not depend on distance.

    Parameters
    ----------
    noise_sigma
        Standard deviation of the noise of a pixel, 0 to 1 of full scale. The default of 1 % is the
        noise of the figures in the documentation.
    contrast
        Standard deviation of the sharp texture, above 0, at most 1 of full scale. The default is a
        moderate contrast. The bound is nearly proportional to its inverse.
    window_px
        Side of the window whose pixels share a depth, 3 to 10000 px. The default is small compared
        with most objects in a frame.
    wavelength_m
        Wavelength of the light, for diffraction, 1e-7 to 1e-4 m. The default is the middle of the
        visible range.

    Raises
    ------
    InputError
        Naming every wrong value.
    """

    noise_sigma: float = 0.01
    contrast: float = 0.15
    window_px: int = 31
    wavelength_m: float = 550e-9

    def __post_init__(self) -> None:
        rules = {
            "noise_sigma": (
                _is_number(self.noise_sigma) and 0 < self.noise_sigma < 1,
                "between 0 and 1 of full scale. Did you pass per cent or grey levels?",
            ),
            "contrast": (
                _is_number(self.contrast) and 0 < self.contrast <= 1,
                "above 0 and at most 1 of full scale. Did you pass per cent?",
            ),
            "window_px": (
                isinstance(self.window_px, int) and 3 <= self.window_px <= 10_000,
                "a whole number between 3 and 10000 pixels.",
            ),
            "wavelength_m": (
                _is_number(self.wavelength_m) and 1e-7 < self.wavelength_m < 1e-4,
                "between 1e-7 and 1e-4: it is in metres. Did you pass nanometres?",
            ),
        }
        wrong = [
            f"{name}={getattr(self, name)!r} must be {rule}"
            for name, (is_good, rule) in rules.items()
            if not is_good
        ]
        if wrong:
            raise InputError("\n".join(wrong))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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

    Parameters
    ----------
    optics
        Optics of the camera.
    depths_m
        Depths in metres, (n,), positive and finite.
    spread
        Shape of the PSF: "gaussian" of the depth equations, "disk" of geometric optics, or
        "diffraction" of a perfect lens, the best that a real lens can reach.
    conditions
        Texture, noise, window and light.

    Raises
    ------
    InputError
        If a depth is not positive and finite, or `spread` is unknown.
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
