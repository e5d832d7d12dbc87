"""Correction of the disparity that fits of shrunk views find, measured for one camera.

Coma and decentred pupils shift fine detail otherwise than coarse detail, so that `joint` finds
another disparity where it fits views at a half or a quarter of their size. How much depends on how
it fits: a rig keeps the maps that its calibration has measured beside the version of the fit.
"""

import warnings
from typing import NamedTuple

from d3s.errors import DepthWarning, InputError
from d3s.rig import Calibration, Correction, Rig

METHOD = "joint"
VERSION = 1
"""Version of the fit that corrections are measured with: increased by a change that moves them."""

_NAMES = {2: "half_size", 4: "quarter_size"}

Maps = tuple[tuple[float, ...], ...]
"""Maps of the terms 1, u, u², ... of the vergence u = 1/Z, as in `LensMaps`."""


class SizeCorrection(NamedTuple):
    """Disparity in pixels to subtract also where views are fitted at a smaller size."""

    half_size_px: Maps = ()
    quarter_size_px: Maps = ()

    @classmethod
    def of(cls, calibration: Calibration | None) -> "SizeCorrection":
        """Return the correction that a calibration has; warn of one of another version."""
        for one in (calibration and calibration.corrections) or ():
            if one.method == METHOD and one.version == VERSION:
                return cls(*(one.disparity_px.get(name, ()) for name in _NAMES.values()))
            if one.method == METHOD:
                warnings.warn(
                    f"calibration.corrections: version={one.version} of {METHOD} must be "
                    f"{VERSION} to be used: depths far out of focus have errors that a "
                    "calibration by this version of D3S would remove. Calibrate again.",
                    DepthWarning,
                    stacklevel=2,
                )
        return cls()

    def maps_px(self, scale: int) -> Maps:
        """Return the maps of a scale: none for 1, or those of 2 or 4 frame pixels per pixel."""
        return {2: self.half_size_px, 4: self.quarter_size_px}.get(scale, ())

    def applied_to(self, rig: Rig) -> Rig:
        """Return the calibrated rig with this correction in place of the one that it had."""
        calibration = rig.calibration
        if calibration is None:
            raise InputError(f"the rig {rig.name!r} has no calibration. Calibrate it first.")
        kept = [one for one in calibration.corrections or () if one.method != METHOD]
        maps = {name: one for name, one in zip(_NAMES.values(), self, strict=True) if one}
        if maps:
            kept.append(Correction(method=METHOD, version=VERSION, disparity_px=maps))
        return rig.replace(calibration=calibration.replace(corrections=tuple(kept) or None))
