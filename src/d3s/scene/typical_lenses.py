"""Typical lenses: a stock lens as traced, and the differences between two of a kind."""

import numpy as np

from d3s.scene.lens_errors import LensErrors
from d3s.scene.sensor import seed_sequence

# Separates the differences of lenses from other streams of a small seed.
_LENS_KEY = int.from_bytes(b"LENS")

# A cemented achromat of 12 mm at f/6 with its stop at the lens, traced: at 8.5 degrees, 902 px from
# the axis, its sagittal and tangential foci lie 0.216 and 0.444 mm nearer to the lens, which is
# over the square of the sensor distance of 12.1 mm a change of focus in dioptres.
TYPICAL_LENS = LensErrors(
    field_radius_px=902.0,
    distortion_third=-0.0016,
    focus_sagittal_dpt=1.475,
    focus_tangential_dpt=3.033,
    falloff=0.075,
    glare=0.01,
    crosstalk=0.002,
)

# Standard deviations of the difference of one lens of a kind from the design: as a share of a
# value, and of what is 0 by design.
_SHARES = {
    "distortion_third": 0.1,
    "focus_sagittal_dpt": 0.03,
    "focus_tangential_dpt": 0.03,
    "falloff": 0.1,
}
_SPREADS = {
    "centre_x_px": 4.0,
    "centre_y_px": 4.0,
    "decentring_x": 5e-5,
    "decentring_y": 5e-5,
    "focus_tilt_x_dpt": 0.05,
    "focus_tilt_y_dpt": 0.05,
    "spherical_waves": 0.05,
    "coma_x_waves": 0.05,
    "coma_y_waves": 0.05,
    "aperture_shift_x_m": 10e-6,
    "aperture_shift_y_m": 10e-6,
    "falloff_centre_x_px": 8.0,
    "falloff_centre_y_px": 8.0,
}
_TRANSMISSIONS = (1.0, 0.95)

FLAT_FIELD = {
    "focus_sagittal_dpt": 0.0,
    "focus_tangential_dpt": 0.0,
    "focus_tilt_x_dpt": 0.0,
    "focus_tilt_y_dpt": 0.0,
}
"""Changes, for `LensErrors.replace`, that take field curvature and astigmatism away."""


def typical_lenses(seed: int = 0, *, curvature: bool = True) -> tuple[LensErrors, LensErrors]:
    """Left and right lens of one kind that differ as lenses of a kind do.

    Parameters
    ----------
    seed
        Seed of the differences from the design.
    curvature
        Whether focus changes over the field, by curvature, astigmatism and tilt.

    Examples
    --------
    >>> from d3s.scene.typical_lenses import typical_lenses
    >>> left, right = typical_lenses(seed=3)
    >>> left.transmission, right.transmission
    (1.0, 0.95)
    """
    entropy = seed_sequence(seed).entropy  # refuses a bad seed
    rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(_LENS_KEY,)))
    lenses = []
    for transmission in _TRANSMISSIONS:
        values = {
            name: getattr(TYPICAL_LENS, name) * (1 + share * rng.standard_normal())
            for name, share in _SHARES.items()
        }
        values |= {name: sigma * rng.standard_normal() for name, sigma in _SPREADS.items()}
        lens = TYPICAL_LENS.replace(transmission=transmission, **values)
        lenses.append(lens if curvature else lens.replace(**FLAT_FIELD))
    return lenses[0], lenses[1]
