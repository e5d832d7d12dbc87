"""Depth in closed form when only some of the camera's parameters change.

One function for each row of the paper's table of special cases, for an image that is rescaled to
a reference sensor distance. For the raw image of Alexander (2019), pass the derivatives through
`relation.rescaled_derivatives` first: only the rows in which the sensor moves differ.

Depth is not clamped: a wrong derivative may give a negative or infinite one, and NaN comes back
where the equation has no real solution.
"""

import numpy as np

from d3s.optics.lens import ImageDerivatives, Lens, Rates
from d3s.optics.relation import depth_cubic, lateral_flow
from d3s.optics.roots import real_quadratic_roots
from d3s.optics.thin_lens import aperture_gain_px, blur_gain_px_m, focus_vergence_dpt
from d3s.types import FloatArray


def lateral_depth_m(
    derivatives: ImageDerivatives, lens: Lens, *, lateral_x_m: float, lateral_y_m: float
) -> FloatArray:
    """Depth from a lens that moves right and down at given rates: stereo in differential form."""
    flow = lateral_flow(derivatives, lens, lateral_x_m, lateral_y_m)
    return _linear_depth(derivatives, lens, flow, 0.0)


def power_depth_m(
    derivatives: ImageDerivatives, lens: Lens, *, power_rate_dpt: float
) -> FloatArray:
    """Depth from an optical power that changes at a given rate."""
    return _linear_depth(derivatives, lens, np.zeros(()), power_rate_dpt)


def sensor_distance_depth_m(
    derivatives: ImageDerivatives, lens: Lens, *, sensor_rate_m: float
) -> FloatArray:
    """Depth from a sensor that recedes from the lens at a given rate."""
    refocus_dpt = sensor_rate_m / lens.sensor_distance_m**2
    return _linear_depth(derivatives, lens, np.zeros(()), refocus_dpt)


def combined_depth_m(
    derivatives: ImageDerivatives,
    lens: Lens,
    *,
    lateral_x_m: float,
    lateral_y_m: float,
    power_rate_dpt: float,
    sensor_rate_m: float,
) -> FloatArray:
    """Depth from a lens that moves sideways while power and sensor distance change.

    The differential form of D3 (paper Eq. 10): linear in the depth, so there is one solution.
    """
    flow = lateral_flow(derivatives, lens, lateral_x_m, lateral_y_m)
    refocus_dpt = power_rate_dpt + sensor_rate_m / lens.sensor_distance_m**2
    return _linear_depth(derivatives, lens, flow, refocus_dpt)


def aperture_depths_m(
    derivatives: ImageDerivatives, lens: Lens, *, aperture_rate_m: float
) -> FloatArray:
    """Both depths that an aperture opening at a given rate allows, shape (2, ...).

    First the one nearer than the focus, then the one beyond it: an aperture cannot tell the side.
    The latter is negative where no point beyond the focus is blurred so much. NaN where the
    derivatives contradict any blur.
    """
    opening = aperture_gain_px(lens) ** 2 * lens.aperture_radius_m * aperture_rate_m
    rate = np.asarray(derivatives.rate, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        defocus_dpt = np.sqrt(_ratio(rate, derivatives.times(opening, "laplacian")))
    vergences = focus_vergence_dpt(lens) + np.stack([defocus_dpt, -defocus_dpt])
    return _ratio(np.ones(()), vergences)


def axial_depths_m(derivatives: ImageDerivatives, lens: Lens, *, depth_rate_m: float) -> FloatArray:
    """Both depths that a target receding at a given rate allows, shape (2, ...).

    The paper sees no closed form here; with the blur's magnification in the relation it is a
    quadratic in 1/Z (docs/errata.md). Larger vergence first; a camera focused at infinity has one
    solution, and the other is NaN.
    """
    rates = Rates(axial_m=depth_rate_m)
    return general_depths_m(derivatives, lens, rates)


def general_depths_m(derivatives: ImageDerivatives, lens: Lens, rates: Rates) -> FloatArray:
    """Both depths that any change of the camera allows, shape (2, ...), by larger vergence first.

    The general relation (paper Eq. 9) solved for 1/Z, which stays finite when a depth goes
    through infinity. Where it is linear the one depth comes first and the other is NaN.
    """
    cubic = depth_cubic(derivatives, lens, rates)
    vergences = real_quadratic_roots(cubic.a3, cubic.a2, cubic.a1)
    # Descending with NaN last, so that a lone root stays first.
    return _ratio(np.ones(()), -np.sort(-vergences, axis=0))


def _linear_depth(
    derivatives: ImageDerivatives, lens: Lens, flow: FloatArray, refocus_dpt: float
) -> FloatArray:
    """(flow - alpha L) / (I' - alpha kappa L), for a focus that changes by some 1/m a time."""
    alpha = blur_gain_px_m(lens) ** 2 * refocus_dpt
    spread = derivatives.times(alpha, "laplacian")
    rate = np.asarray(derivatives.rate, dtype=np.float64)
    return _ratio(flow - spread, rate - focus_vergence_dpt(lens) * spread)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / denominator)
