"""Depth in closed form when only some parameters of the camera change.

One function for each row of the paper's table of special cases, for an image that is rescaled to a
reference sensor distance. For a raw image (Alexander, 2019), convert the derivatives with
`relation.rescaled_derivatives` first; this matters only where the sensor moves.

Depth is not clamped: wrong derivatives may give a negative or infinite depth. Depth is NaN where
the equation has no real solution.

All functions take `derivatives`, the rate and the spatial derivatives of the image (arrays that
broadcast against each other), and `lens`, the camera at this time. Rates are per unit of the time
of `derivatives.rate`. Depths have the shape of the derivatives.
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
    """Depth from lateral motion of the lens, in metres: differential stereo.

    Parameters
    ----------
    derivatives, lens
        See the module.
    lateral_x_m, lateral_y_m
        Velocity of the lens centre, to the right and down, in metres.
    """
    flow = lateral_flow(derivatives, lens, lateral_x_m, lateral_y_m)
    return _linear_depth(derivatives, lens, flow, 0.0)


def power_depth_m(
    derivatives: ImageDerivatives, lens: Lens, *, power_rate_dpt: float
) -> FloatArray:
    """Depth from a change of the optical power, in metres.

    Parameters
    ----------
    derivatives, lens
        See the module.
    power_rate_dpt
        Rate of the optical power, in 1/m.
    """
    return _linear_depth(derivatives, lens, np.zeros(()), power_rate_dpt)


def sensor_distance_depth_m(
    derivatives: ImageDerivatives, lens: Lens, *, sensor_rate_m: float
) -> FloatArray:
    """Depth from axial motion of the sensor, in metres.

    Parameters
    ----------
    derivatives, lens
        See the module.
    sensor_rate_m
        Rate of the sensor distance, in metres.
    """
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
    """Depth from lateral motion and simultaneous refocusing, in metres.

    Differential form of D3 (paper Eq. 10). Linear in the depth, so the solution is unique.

    Parameters
    ----------
    derivatives, lens
        See the module.
    lateral_x_m, lateral_y_m
        Velocity of the lens centre, to the right and down, in metres.
    power_rate_dpt
        Rate of the optical power, in 1/m.
    sensor_rate_m
        Rate of the sensor distance, in metres.
    """
    flow = lateral_flow(derivatives, lens, lateral_x_m, lateral_y_m)
    refocus_dpt = power_rate_dpt + sensor_rate_m / lens.sensor_distance_m**2
    return _linear_depth(derivatives, lens, flow, refocus_dpt)


def aperture_depths_m(
    derivatives: ImageDerivatives, lens: Lens, *, aperture_rate_m: float
) -> FloatArray:
    """Both depths that explain a change of the aperture, in metres, (2, ...).

    First the depth nearer than the focus distance, then the depth beyond: the aperture does not
    reveal the side. The second is negative where no point beyond the focus has this much blur.
    Both are NaN where no blur explains the derivatives.

    Parameters
    ----------
    derivatives, lens
        See the module.
    aperture_rate_m
        Rate of the aperture radius, in metres.
    """
    opening = aperture_gain_px(lens) ** 2 * lens.aperture_radius_m * aperture_rate_m
    rate = np.asarray(derivatives.rate, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        defocus_dpt = np.sqrt(_ratio(rate, derivatives.times(opening, "laplacian")))
    vergences = focus_vergence_dpt(lens) + np.stack([defocus_dpt, -defocus_dpt])
    return _ratio(np.ones(()), vergences)


def axial_depths_m(derivatives: ImageDerivatives, lens: Lens, *, depth_rate_m: float) -> FloatArray:
    """Both depths that explain an axial motion, in metres, (2, ...), by decreasing 1/Z.

    Paper Eq. S4. The paper gives no closed form; with the magnification of the blur included, the
    relation is a quadratic in 1/Z (erratum E11). A camera focused at infinity has one solution, and
    the second depth is NaN.

    Parameters
    ----------
    derivatives, lens
        See the module.
    depth_rate_m
        Rate of the depth, in metres: positive if the target recedes.
    """
    rates = Rates(axial_m=depth_rate_m)
    return general_depths_m(derivatives, lens, rates)


def general_depths_m(derivatives: ImageDerivatives, lens: Lens, rates: Rates) -> FloatArray:
    """Both depths that explain any change of the camera, in metres, (2, ...).

    General relation (paper Eq. 9) solved for 1/Z, which stays finite when a depth passes through
    infinity. Depths are in order of decreasing 1/Z: positive depths first, the nearest of them
    leading. Where the relation is linear, the only depth comes first and the second is NaN.

    Parameters
    ----------
    derivatives, lens
        See the module.
    rates
        Rates of the camera.
    """
    cubic = depth_cubic(derivatives, lens, rates)
    vergences = real_quadratic_roots(cubic.a3, cubic.a2, cubic.a1)
    # Descending order with NaN last, so that a single root comes first.
    return _ratio(np.ones(()), -np.sort(-vergences, axis=0))


def _linear_depth(
    derivatives: ImageDerivatives, lens: Lens, flow: FloatArray, refocus_dpt: float
) -> FloatArray:
    """Depth (flow - alpha L) / (I' - alpha kappa L) for a focus that changes at a rate in 1/m."""
    alpha = blur_gain_px_m(lens) ** 2 * refocus_dpt
    diffusion = derivatives.times(alpha, "laplacian")
    rate = np.asarray(derivatives.rate, dtype=np.float64)
    return _ratio(flow - diffusion, rate - focus_vergence_dpt(lens) * diffusion)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / denominator)
