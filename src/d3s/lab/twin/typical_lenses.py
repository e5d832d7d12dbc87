"""Typical lenses: two stock achromats of 12 mm at f/6 in a home-made camera.

`benchmarks/ray_trace.py` traces the cemented achromat AC064-013-A of Thorlabs, scaled to the focal
length of the paper's prototype, with a stop of 2 mm at its front; `benchmarks/results/
lens_trace.json` holds all figures and is the origin of these. Light has 550 nm. Places r are
distances from the axis of the lens in an upright view, as a vector of unit `FIELD_RADIUS_PX`;
points u of the opening are in units of its radius, with X to the right and Y down as in the scene.

The cat-eye pupil is that of the same lens with 2 mm of glass, cut to 2 mm across: small lenses
clip oblique light at their rear face. It takes 4 % of the light at the field radius, which is not
in `FALLOFF`.

Two such lenses differ by how they are made and glued in; the trace also says what a tilt, a stop
off its place and an error of centration do.
"""

import numpy as np

from d3s.lab.twin.lens_errors import LensErrors
from d3s.lab.twin.sensor import seed_sequence
from d3s.optics.wavefront import overlap_share
from d3s.types import FloatArray

# Distance from the axis of the side of a view of 902 x 1802, in pixels of 2 um (8.5 degrees).
FIELD_RADIUS_PX = 902.0
# Field curvature: the image across the radius is nearer to the lens by this times |r|², in m.
FOCUS_SAGITTAL_M = 0.0002093
# Field curvature: the image along the radius is nearer to the lens by this times |r|², in m.
FOCUS_TANGENTIAL_M = 0.000438
# Distortion of 3rd order: places are r (1 + this |r|² + ...), with r that of a perfect lens.
DISTORTION_3 = -0.001743
# Distortion of 5th order, the factor of |r|⁴.
DISTORTION_5 = 1.016e-05
# Loss of light without clipping: illumination is 1 - this |r|².
FALLOFF = 0.03553
# Coma: the path is longer by this times |u|² (u . r), in waves; light lies nearer to the axis.
COMA_WAVES = 0.3998
# Spherical aberration: the path is longer by this times |u|⁴, in waves, everywhere.
SPHERICAL_WAVES = -0.08796
# Radius of a second opening, that of the rear face seen through the lens, in opening radii.
CAT_EYE_RADIUS = 1.109
# Middle of the second opening: u = this times r. Light passes where both openings are free.
CAT_EYE_SHIFT = 0.206

# Separates the differences of lenses from other streams of a small seed.
_LENS_KEY = int.from_bytes(b"LENS")

# Sensor distance of the camera that the lens was traced for, and its pixel pitch.
_SENSOR_DISTANCE_M = 0.0121
_FIELD_RADIUS_M = FIELD_RADIUS_PX * 2e-6

# Glare of a coated simple lens in a matt black box, and light past the partition: not traced.
_GLARE, _CROSSTALK = 0.01, 0.003

TYPICAL_LENS = LensErrors(
    field_radius_px=FIELD_RADIUS_PX,
    distortion_third=DISTORTION_3,
    distortion_fifth=DISTORTION_5,
    # The image is formed nearer to the lens by this many metres.
    focus_sagittal_dpt=FOCUS_SAGITTAL_M / _SENSOR_DISTANCE_M**2,
    focus_tangential_dpt=FOCUS_TANGENTIAL_M / _SENSOR_DISTANCE_M**2,
    spherical_waves=SPHERICAL_WAVES,
    coma_field_waves=COMA_WAVES,
    # The rear face cuts the inner side of the pupil off.
    clipping=-round(1 - float(overlap_share(CAT_EYE_SHIFT, CAT_EYE_RADIUS)), 5),
    clipping_radius=CAT_EYE_RADIUS,
    falloff=FALLOFF,
    glare=_GLARE,
    crosstalk=_CROSSTALK,
)
"""The lens as designed and traced, on its seat and on its axis."""

# Standard deviations between lenses of a kind.
_TILT_RAD = np.radians(0.5)  # glue: 20 um over a seat of 2 mm
_SENSOR_TILT_RAD = np.radians(0.3)  # of the sensor against the plate of both lenses
_STOP_SHARE = 0.15  # distortion, by a stop 0.1 mm off its place
_POWER_SHARE = 0.02  # curvature, astigmatism and coma, by 1 % of focal length
_COMA_WAVES = 0.02  # centration of 3 arc minutes
_APERTURE_SHIFT_M = 20e-6
_FALLOFF_CENTRE_PX = 10.0
_TRANSMISSION = 0.03  # opening drilled to 1 %, coating, dirt; of the right lens against the left

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
    >>> import d3s
    >>> left, right = d3s.typical_lenses(seed=3)
    >>> left.distortion_third != right.distortion_third
    True
    """
    entropy = seed_sequence(seed).entropy  # refuses a bad seed
    rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(_LENS_KEY,)))
    sensor_tilt_dpt = _tilt_dpt(_SENSOR_TILT_RAD) * rng.standard_normal(2)
    left, right = (_one_of_its_kind(rng, sensor_tilt_dpt) for _ in range(2))
    right = right.replace(transmission=1 + _TRANSMISSION * rng.standard_normal())
    if not curvature:
        left, right = left.replace(**FLAT_FIELD), right.replace(**FLAT_FIELD)
    return left, right


def _tilt_dpt(angle_rad: float) -> float:
    """Change of focus at the field radius by a tilt of the image plane: h tan(angle) / s0²."""
    return float(_FIELD_RADIUS_M * np.tan(angle_rad) / _SENSOR_DISTANCE_M**2)


def _one_of_its_kind(rng: np.random.Generator, sensor_tilt_dpt: FloatArray) -> LensErrors:
    # A tilted lens has its axis, the centre of all aberrations, at s0 tan(tilt), and its image
    # plane is tilted with it.
    tilt = _TILT_RAD * rng.standard_normal(2)
    centre_px = np.tan(tilt) * _SENSOR_DISTANCE_M / 2e-6
    focus_dpt = [_tilt_dpt(angle) for angle in tilt] + sensor_tilt_dpt
    stop, power = 1 + np.array([_STOP_SHARE, _POWER_SHARE]) * rng.standard_normal(2)
    coma = _COMA_WAVES * rng.standard_normal(2)
    aperture_m = _APERTURE_SHIFT_M * rng.standard_normal(2)
    brightest_px = _FALLOFF_CENTRE_PX * rng.standard_normal(2)
    design = TYPICAL_LENS
    return design.replace(
        centre_x_px=centre_px[0],
        centre_y_px=centre_px[1],
        distortion_third=design.distortion_third * stop,
        distortion_fifth=design.distortion_fifth * stop,
        focus_tilt_x_dpt=focus_dpt[0],
        focus_tilt_y_dpt=focus_dpt[1],
        focus_sagittal_dpt=design.focus_sagittal_dpt * power,
        focus_tangential_dpt=design.focus_tangential_dpt * power,
        coma_field_waves=design.coma_field_waves * power,
        coma_x_waves=coma[0],
        coma_y_waves=coma[1],
        aperture_shift_x_m=aperture_m[0],
        aperture_shift_y_m=aperture_m[1],
        falloff_centre_x_px=brightest_px[0],
        falloff_centre_y_px=brightest_px[1],
    )
