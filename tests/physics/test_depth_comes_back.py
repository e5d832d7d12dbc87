"""Depth comes back from each formula, on images made in closed form and differentiated numerically.

Independent of the algebra: `analytic.py` shares nothing with the package but the holders of
numbers. Each case runs with both signs of every rate, nearer and farther than the focus.
"""

from dataclasses import replace

import numpy as np
import pytest

import analytic
from analytic import RESTING, Camera, Texture
from d3s.errors import InputError
from d3s.optics import cases, d3, relation, roots, stereo
from d3s.optics.lens import ImageDerivatives, Rates

TOLERANCE = 1e-6

NEAR = Camera(x=1e-3, y=-2e-3, depth=0.7, power=82.9, aperture=1.1e-3, sensor=0.0122)
FAR = Camera(x=-2e-3, y=1e-3, depth=1.6, power=83.7, aperture=0.9e-3, sensor=0.0121)
CAMERAS = {"nearer than focus": NEAR, "beyond focus": FAR}
RATES = Camera(x=1e-5, y=-2e-5, depth=0.03, power=0.05, aperture=2e-5, sensor=1e-5)
SIGNS = (1.0, -1.0)


def _moving(sign: float, *names: str) -> Camera:
    return replace(RESTING, **{name: sign * getattr(RATES, name) for name in names})


def _derivatives(camera: Camera, rates: Camera, seed: int, **options: object) -> ImageDerivatives:
    return analytic.derivatives(
        Texture.random(seed), camera, rates, *analytic.pixels(seed), **options
    )


def _relative_error(depth: np.ndarray, camera: Camera) -> np.ndarray:
    return np.abs(depth / camera.depth - 1)


# Arguments of each closed form, from the rates of the camera.
CASES = {
    "lateral": (cases.lateral_depth_m, ("x", "y"), {"lateral_x_m": "x", "lateral_y_m": "y"}),
    "power": (cases.power_depth_m, ("power",), {"power_rate_dpt": "power"}),
    "sensor": (cases.sensor_distance_depth_m, ("sensor",), {"sensor_rate_m": "sensor"}),
    "combined": (
        cases.combined_depth_m,
        ("x", "y", "power", "sensor"),
        {
            "lateral_x_m": "x",
            "lateral_y_m": "y",
            "power_rate_dpt": "power",
            "sensor_rate_m": "sensor",
        },
    ),
    "aperture": (cases.aperture_depths_m, ("aperture",), {"aperture_rate_m": "aperture"}),
    "axial": (cases.axial_depths_m, ("depth",), {"depth_rate_m": "depth"}),
}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("raw", [False, True], ids=["rescaled", "raw"])
def test_special_case(name, camera, sign, raw):
    function, moving, arguments = CASES[name]
    rates = _moving(sign, *moving)
    derivatives = _derivatives(camera, rates, seed=3, raw=raw)
    lens = analytic.lens_of(camera, raw=raw)
    if raw:
        derivatives = relation.rescaled_derivatives(derivatives, lens, analytic.rates_of(rates))
    depth = function(
        derivatives, lens, **{key: getattr(rates, rate) for key, rate in arguments.items()}
    )
    error = _relative_error(depth, camera)
    if error.ndim == 2:  # two solutions: one of them is the depth
        error = np.nanmin(error, axis=0)
    assert error.max() < TOLERANCE


@pytest.mark.parametrize("sign", SIGNS)
def test_aperture_tells_the_side_of_the_focus_by_the_order_of_its_solutions(sign):
    rates = _moving(sign, "aperture")
    for camera, side in ((NEAR, 0), (FAR, 1)):
        depth = cases.aperture_depths_m(
            _derivatives(camera, rates, seed=3),
            analytic.lens_of(camera),
            aperture_rate_m=rates.aperture,
        )
        assert _relative_error(depth[side], camera).max() < TOLERANCE


@pytest.mark.parametrize("signs", np.array(np.meshgrid(*[SIGNS] * 6)).reshape(6, -1).T)
@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
def test_general_relation_with_everything_moving(camera, signs):
    names = ("x", "y", "depth", "power", "aperture", "sensor")
    rates = replace(
        RESTING, **{n: s * getattr(RATES, n) for n, s in zip(names, signs, strict=True)}
    )
    derivatives = _derivatives(camera, rates, seed=4)
    lens = analytic.lens_of(camera)
    cubic = relation.depth_cubic(derivatives, lens, analytic.rates_of(rates))
    found = roots.real_cubic_roots(*cubic)
    error = np.nanmin(_relative_error(found, camera), axis=0)
    # A tangent root is known to half the digits only; none of these pixels is that unlucky.
    assert error.max() < TOLERANCE
    rate = relation.image_rate(derivatives, camera.depth, lens, analytic.rates_of(rates))
    np.testing.assert_allclose(rate, derivatives.rate, atol=1e-9 * np.abs(derivatives.rate).max())


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
def test_general_depths_are_the_roots_that_are_not_zero(camera):
    rates = _moving(1.0, "x", "y", "depth", "power", "aperture", "sensor")
    derivatives, lens = _derivatives(camera, rates, seed=4), analytic.lens_of(camera)
    both = cases.general_depths_m(derivatives, lens, analytic.rates_of(rates))
    assert both.shape == (2, 60)
    assert np.nanmin(_relative_error(both, camera), axis=0).max() < TOLERANCE


@pytest.mark.parametrize(
    ("missing", "rates"),
    [
        ("grad_x", Rates(lateral_x_m=1e-5)),
        ("grad_y", Rates(lateral_y_m=1e-5)),
        ("laplacian", Rates(optical_power_dpt=0.1)),
        ("radial", Rates(axial_m=0.1)),
    ],
)
def test_missing_derivative_is_an_error_not_a_zero(missing, rates):
    given = {name: 1.0 for name in ("grad_x", "grad_y", "laplacian", "radial") if name != missing}
    derivatives = ImageDerivatives(rate=1.0, **given)
    for function in (relation.depth_cubic, lambda d, lens, r: relation.image_rate(d, 1.0, lens, r)):
        with pytest.raises(InputError, match=f"{missing} is missing"):
            function(derivatives, analytic.lens_of(NEAR), rates)
    still = Rates()
    assert relation.image_rate(derivatives, 1.0, analytic.lens_of(NEAR), still) == 0


def test_rescaled_image_is_not_rescaled_again():
    with pytest.raises(InputError, match="must equal"):
        relation.rescaled_derivatives(ImageDerivatives(rate=1.0), analytic.lens_of(NEAR), Rates())


def test_aperture_that_is_not_round():
    covariance = 0.25 * np.array([[1.3, 0.4], [0.4, 0.6]])
    rates = _moving(1.0, "x", "y", "depth", "power", "aperture", "sensor")
    derivatives = _derivatives(NEAR, rates, seed=6, covariance=covariance)
    rate = relation.image_rate(
        derivatives, NEAR.depth, analytic.lens_of(NEAR), analytic.rates_of(rates)
    )
    np.testing.assert_allclose(rate, derivatives.rate, atol=1e-9 * np.abs(derivatives.rate).max())


# --- D3 on pairs ---------------------------------------------------------------------------------


def _pair(
    camera: Camera, baseline_m: float, power_difference: float, seed: int
) -> tuple[analytic.Image, analytic.Image]:
    """Left and right view; the right camera stands to the right of the left one."""
    texture = Texture.random(seed)
    left = replace(camera, x=camera.x - baseline_m / 2, power=camera.power + power_difference / 2)
    right = replace(camera, x=camera.x + baseline_m / 2, power=camera.power - power_difference / 2)
    return analytic.image(texture, left), analytic.image(texture, right)


def _lenses(camera: Camera, power_difference: float) -> tuple[float, float]:
    left = analytic.lens_of(replace(camera, power=camera.power + power_difference / 2))
    right = analytic.lens_of(replace(camera, power=camera.power - power_difference / 2))
    return d3.alpha_px2_m(left, right), d3.kappa_dpt(left, right)


FOCAL_PX = analytic.S0 / analytic.PITCH


def _shift(camera: Camera, virtual_m: float) -> float:
    """What aligns the prototype's right view to a virtual baseline at the camera's depth."""
    line = {"focal_length_px": FOCAL_PX, "baseline_m": 3.84e-3, "disparity_offset_px": 0.0}
    return float(stereo.alignment_shift_px(camera.depth, virtual_m, **line))


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
@pytest.mark.parametrize("baseline_sign", SIGNS)
@pytest.mark.parametrize("power_sign", [1.0, -1.0, 0.0])
def test_d3_of_a_pair(camera, baseline_sign, power_sign):
    # A full baseline of 3.84 mm, aligned to a virtual one so small that the first-order
    # expansion is exact to 1e-6.
    virtual_m, power_difference = baseline_sign * 3e-8, power_sign * 1e-4
    left, right = _pair(camera, 3.84e-3, power_difference, seed=8)
    shift = _shift(camera, virtual_m)
    x, y = analytic.pixels(8)

    def mean(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return 0.5 * (left(u, v) + right(u - shift, v))

    h, first, second = 0.25, analytic._FIRST, analytic._SECOND
    steps = range(-4, 5)
    grad_x = sum(w * mean(x + k * h, y) for k, w in zip(steps, first, strict=True)) / h
    xx = sum(w * mean(x + k * h, y) for k, w in zip(steps, second, strict=True)) / h**2
    yy = sum(w * mean(x, y + k * h) for k, w in zip(steps, second, strict=True)) / h**2
    derivatives = d3.PairDerivatives(left(x, y) - right(x - shift, y), grad_x, xx + yy)
    alpha, kappa = _lenses(camera, power_difference)
    terms = {"focal_length_px": FOCAL_PX, "alpha_px2_m": alpha, "kappa_dpt": kappa}
    depth = d3.d3_depth_m(derivatives, virtual_m, **terms)
    assert _relative_error(depth, camera).max() < TOLERANCE
    image_like = d3.PairDerivatives(*(np.reshape(value, (6, 10)) for value in derivatives))
    windowed = d3.d3_windowed_depth_m(image_like, virtual_m, window_px=5, **terms)
    assert _relative_error(windowed, camera).max() < TOLERANCE


def test_d3_on_sampled_images_with_the_prototypes_powers():
    """The whole chain on a pixel grid: the texture is smooth, so differences are nearly exact."""
    camera = replace(FAR, sensor=analytic.S0, power=83.83, aperture=1e-3)
    left, right = _pair(camera, 3.84e-3, 0.1, seed=9)
    virtual_m = 0.02e-3
    shift = _shift(camera, virtual_m)
    y, x = np.mgrid[-40.0:41.0, -40.0:41.0]
    derivatives = d3.finite_differences(left(x, y), right(x - shift, y))
    alpha, kappa = _lenses(camera, 0.1)
    depth = d3.d3_windowed_depth_m(
        derivatives,
        virtual_m,
        focal_length_px=FOCAL_PX,
        alpha_px2_m=alpha,
        kappa_dpt=kappa,
        window_px=21,
    )
    inner = depth[12:-12, 12:-12]
    # Three-point differences are 1 - k²/6 short: 2 % at the texture's mean frequency.
    assert np.abs(inner / camera.depth - 1).max() < 0.05
    assert np.isnan(depth[0, 0])


def test_flow_of_a_sideways_moving_lens_by_hand():
    derivatives = ImageDerivatives(rate=0.0, grad_x=2.0, grad_y=-1.0)
    # 6050 px (0.001 m * 2 / px - 0.003 m * 1 / px) = -6.05 m
    flow = relation.lateral_flow(derivatives, analytic.lens_of(FAR), 1e-3, 3e-3)
    assert flow == pytest.approx(-6.05)
