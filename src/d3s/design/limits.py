"""What a camera can know of depth: blur, disparity and the Cramér-Rao bound over a depth range."""

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
)
from d3s.optics.lens import Lens
from d3s.optics.thin_lens import blur_radius_px, blur_sigma_px
from d3s.rig import Optics
from d3s.types import FloatArray

Spread = Literal["gaussian", "disk", "diffraction"]


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What a limit assumes of target, sensor and window.

    The texture is scale-invariant (`optics.information.scale_invariant_power`), so that it is
    as hard at every distance.

    Parameters
    ----------
    noise_sigma
        Standard deviation of a pixel's noise, full scale 1. 1 % is what our figures use.
    contrast
        Standard deviation of the sharp texture, full scale 1: a moderate one. The bound goes
        nearly with its inverse.
    window_px
        Side of the window whose pixels share a depth: small against most objects in a frame.
    wavelength_m
        Of the light, for diffraction. The middle of the visible.
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
    """Geometry and bound at each of some depths; all arrays have one value a depth."""

    depth_m: FloatArray
    conditions: Conditions
    disparity_px: FloatArray
    blur_sigma_px: tuple[FloatArray, FloatArray]
    information: DepthInformation

    @property
    def bound(self) -> DepthBound:
        """Smallest possible standard deviation of the depth of a window."""
        return depth_bound(self.information)


def depth_limits(
    optics: Optics,
    depths_m: Sequence[float] | FloatArray,
    *,
    spread: Spread,
    conditions: Conditions,
) -> DepthLimits:
    """Blur, disparity and the bound on the depth error of a camera, at each of some depths.

    Parameters
    ----------
    depths_m
        Positive depths.
    spread
        What blurs a point: the Gaussian of the depth equations, the disk of geometric optics, or
        the diffracted spot of a perfect lens, which is the most a real one can do.
    """
    depths = np.asarray(depths_m, dtype=np.float64)
    if depths.ndim != 1 or not np.all(np.isfinite(depths) & (depths > 0)):
        raise InputError(
            f"depths_m={depths_m!r} must be a list of positive, finite depths, in metres."
        )
    transfers = tuple(
        transfer_function(optics.lens(camera), spread, conditions.wavelength_m) for camera in (0, 1)
    )
    each = [
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
            np.array([one.stereo_per_m2 for one in each]),
            np.array([one.defocus_per_m2 for one in each]),
        ),
    )


def transfer_function(lens: Lens, spread: Spread, wavelength_m: float) -> TransferFunction:
    """The transfer of one camera as a function of frequency (cycles/px) and depth (m)."""
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
