"""The depth equations derived again with SymPy, from the image formation model alone.

A texture is a sum of plane waves and everything is linear in it, so one wave proves it for all.
"""

import numpy as np
import pytest
import sympy as sp

from d3s.optics import cases, relation
from d3s.optics.lens import ImageDerivatives, Lens, Rates

t, x, y, qx, qy = sp.symbols("t x y q_x q_y", real=True)
s0, p, w = sp.symbols("s_0 p w", positive=True)
X0, Y0, Z, rho, A, s = (sp.Function(name)(t) for name in ("X_0", "Y_0", "Z", "rho", "A", "s"))

# Plain symbols that stand for the functions and their rates once the derivative is taken.
NAMES = ("X0", "Y0", "Z", "rho", "A", "s")
VALUES = dict(zip(NAMES, sp.symbols("x_0 y_0 z r a s", positive=True), strict=True))
RATES = dict(zip(NAMES, sp.symbols("dx_0 dy_0 dz dr da ds", real=True), strict=True))
IMAGE = dict(zip(("It", "Ix", "Iy", "L", "R"), sp.symbols("I_t I_x I_y L R"), strict=True))


def _plain(expression: sp.Expr) -> sp.Expr:
    functions = dict(zip(NAMES, (X0, Y0, Z, rho, A, s), strict=True))
    rates = {functions[n].diff(t): RATES[n] for n in NAMES}
    values = {functions[n]: VALUES[n] for n in NAMES}
    return expression.subs(rates).subs(values)


def _wave_rate(scale: sp.Expr, sigma: sp.Expr) -> sp.Expr:
    """Rate of a blurred plane wave over its value; `scale` is metres on the target a pixel."""
    kx, ky = qx * scale, qy * scale
    phase = qx * X0 + qy * Y0 + kx * x + ky * y
    wave = sp.exp(-(sigma**2) * (kx**2 + ky**2) / 2) * sp.exp(sp.I * phase)
    return sp.expand(_plain(wave.diff(t) / wave).doit())


def _relation(scale: sp.Expr, sigma: sp.Expr, terms: sp.Expr) -> sp.Expr:
    """`terms` with the derivatives of the plane wave inserted, over the value of the wave."""
    kx, ky = _plain(qx * scale), _plain(qy * scale)
    wave = {
        IMAGE["Ix"]: sp.I * kx,
        IMAGE["Iy"]: sp.I * ky,
        IMAGE["L"]: -(kx**2 + ky**2),
        IMAGE["R"]: sp.I * (kx * x + ky * y),
    }
    return sp.expand(terms.subs(wave))


SIGMA = w * s0 * A * (1 / Z - rho + 1 / s) / p
RAW_SIGMA = w * A * ((1 / Z - rho) * s + 1) / p


def _general_terms() -> sp.Expr:
    """Right side of the image-rate equation, as the derivation gives it."""
    sigma, sigma_rate = _plain(SIGMA), _plain(SIGMA.diff(t))
    depth, closing = VALUES["Z"], RATES["Z"] / VALUES["Z"]
    lateral = IMAGE["Ix"] * RATES["X0"] + IMAGE["Iy"] * RATES["Y0"]
    return (
        (sigma * sigma_rate + sigma**2 * closing) * IMAGE["L"]
        + s0 / (depth * p) * lateral
        + closing * IMAGE["R"]
    )


def test_gaussian_psf_spreads_like_heat_whatever_its_shape():
    a, b, c, sigma_rate = sp.symbols("a b c v", positive=True)
    sigma = sp.Function("sigma", positive=True)(t)
    covariance = sp.Matrix([[a, b], [b, c]])
    position = sp.Matrix([x, y])
    form = (position.T * covariance.inv() * position)[0]
    kernel = sp.exp(-form / (2 * sigma**2)) / sigma**2
    rate = kernel.diff(t).subs(sigma.diff(t), sigma_rate)
    hessian = sp.hessian(kernel, (x, y))
    weighted = a * hessian[0, 0] + 2 * b * hessian[0, 1] + c * hessian[1, 1]
    assert sp.simplify((rate - sigma * sigma_rate * weighted) / kernel) == 0


def test_image_rate_follows_from_the_formation_model():
    scale = Z * p / s0
    difference = _wave_rate(scale, SIGMA) - _relation(scale, SIGMA, _general_terms())
    assert sp.simplify(difference) == 0


def test_raw_image_rate_is_linear_in_inverse_depth_without_axial_motion():
    still = {RATES["Z"]: 0, RATES["A"]: 0}
    refocus = RATES["rho"] + RATES["s"] / VALUES["s"] ** 2
    gain = w * VALUES["A"] * VALUES["s"] / p
    defocus = 1 / VALUES["Z"] - VALUES["rho"] + 1 / VALUES["s"]
    lateral = IMAGE["Ix"] * RATES["X0"] + IMAGE["Iy"] * RATES["Y0"]
    terms = (
        -(gain**2) * defocus * refocus * IMAGE["L"]
        + VALUES["s"] / (VALUES["Z"] * p) * lateral
        - RATES["s"] / VALUES["s"] * IMAGE["R"]
    )
    rate = _wave_rate(Z * p / s, RAW_SIGMA).subs(still)
    assert sp.simplify(rate - _relation(Z * p / s, RAW_SIGMA, terms)) == 0


def _polynomial() -> sp.Poly:
    return sp.Poly(sp.expand((IMAGE["It"] - _general_terms()) * VALUES["Z"] ** 3), VALUES["Z"])


def test_general_relation_is_a_quadratic():
    polynomial = _polynomial()
    assert polynomial.degree() == 3
    assert sp.simplify(polynomial.coeff_monomial(1)) == 0  # a0: Z = 0 is a root, two are left


SAMPLE = np.random.default_rng(5)
NUMBERS = {
    "lens": Lens(
        optical_power_dpt=83.9,
        aperture_radius_m=1.1e-3,
        sensor_distance_m=0.0123,
        reference_distance_m=0.0121,
        pixel_pitch_m=2e-6,
        aperture_gaussian_width=0.47,
    ),
    "rates": Rates(
        lateral_x_m=1e-5,
        lateral_y_m=-3e-5,
        axial_m=0.02,
        optical_power_dpt=0.06,
        aperture_radius_m=-2e-5,
        sensor_distance_m=4e-6,
    ),
    "image": ImageDerivatives(
        rate=SAMPLE.normal(size=40),
        grad_x=SAMPLE.normal(size=40),
        grad_y=SAMPLE.normal(size=40),
        laplacian=SAMPLE.normal(size=40),
        radial=SAMPLE.normal(size=40),
    ),
}


def _numbers(rates: Rates) -> dict[sp.Symbol, object]:
    lens, image = NUMBERS["lens"], NUMBERS["image"]
    return {
        s0: lens.reference_distance_m,
        p: lens.pixel_pitch_m,
        w: lens.aperture_gaussian_width,
        VALUES["rho"]: lens.optical_power_dpt,
        VALUES["A"]: lens.aperture_radius_m,
        VALUES["s"]: lens.sensor_distance_m,
        RATES["X0"]: rates.lateral_x_m,
        RATES["Y0"]: rates.lateral_y_m,
        RATES["Z"]: rates.axial_m,
        RATES["rho"]: rates.optical_power_dpt,
        RATES["A"]: rates.aperture_radius_m,
        RATES["s"]: rates.sensor_distance_m,
        IMAGE["It"]: image.rate,
        IMAGE["Ix"]: image.grad_x,
        IMAGE["Iy"]: image.grad_y,
        IMAGE["L"]: image.laplacian,
        IMAGE["R"]: image.radial,
    }


def _evaluated(expression: sp.Expr, rates: Rates) -> np.ndarray:
    numbers = _numbers(rates)
    return sp.lambdify(list(numbers), expression, "numpy")(*numbers.values())


@pytest.mark.parametrize("power", [1, 2, 3])
def test_coefficients_are_those_of_the_code(power):
    derived = sp.simplify(_polynomial().coeff_monomial(VALUES["Z"] ** power))
    code = relation.depth_cubic(NUMBERS["image"], NUMBERS["lens"], NUMBERS["rates"])
    np.testing.assert_allclose(code[power], _evaluated(derived, NUMBERS["rates"]), rtol=1e-9)
    assert not np.any(code.a0)


LATERAL = {"lateral_x_m": 1e-5, "lateral_y_m": -3e-5}
LINEAR_CASES = {
    "lateral": (cases.lateral_depth_m, LATERAL, LATERAL),
    "power": (cases.power_depth_m, {"power_rate_dpt": 0.06}, {"optical_power_dpt": 0.06}),
    "sensor": (cases.sensor_distance_depth_m, {"sensor_rate_m": 4e-6}, {"sensor_distance_m": 4e-6}),
    "combined": (
        cases.combined_depth_m,
        {**LATERAL, "power_rate_dpt": 0.06, "sensor_rate_m": 4e-6},
        {**LATERAL, "optical_power_dpt": 0.06, "sensor_distance_m": 4e-6},
    ),
}
QUADRATIC_CASES = {
    "aperture": (cases.aperture_depths_m, {"aperture_rate_m": -2e-5}, {"aperture_radius_m": -2e-5}),
    "axial": (cases.axial_depths_m, {"depth_rate_m": 0.02}, {"axial_m": 0.02}),
}


def _solutions(moving: dict[str, float]) -> list[np.ndarray]:
    """All depths that the derived relation allows when only the named rates are not zero."""
    symbols = dict(zip(Rates.__dataclass_fields__, RATES.values(), strict=True))
    resting = {symbol: 0 for name, symbol in symbols.items() if name not in moving}
    equation = sp.expand((IMAGE["It"] - _general_terms()).subs(resting) * VALUES["Z"] ** 2)
    depths = sp.solve(sp.simplify(equation), VALUES["Z"])
    with np.errstate(invalid="ignore"):
        found = [_evaluated(depth, Rates(**moving)) for depth in depths if depth != 0]
    return [np.asarray(depth) for depth in found]


@pytest.mark.parametrize("name", LINEAR_CASES)
def test_linear_special_case_is_the_solution_of_the_relation(name):
    function, arguments, moving = LINEAR_CASES[name]
    (derived,) = _solutions(moving)
    code = function(NUMBERS["image"], NUMBERS["lens"], **arguments)
    np.testing.assert_allclose(code, derived, rtol=1e-8)


@pytest.mark.parametrize("name", QUADRATIC_CASES)
def test_quadratic_special_case_has_both_solutions_of_the_relation(name):
    function, arguments, moving = QUADRATIC_CASES[name]
    derived = np.stack(_solutions(moving))
    code = function(NUMBERS["image"], NUMBERS["lens"], **arguments)
    assert derived.shape == code.shape == (2, 40)
    np.testing.assert_array_equal(np.isnan(code), np.isnan(derived))
    np.testing.assert_allclose(np.sort(code, axis=0), np.sort(derived, axis=0), rtol=1e-7)
    assert np.isfinite(code).any()


def test_blur_variance_difference_factors_exactly():
    rho0, rho1, depth = sp.symbols("rho_0 rho_1 z", positive=True)
    gain = w * s0 * A / p
    variance = {r: (gain * (1 / depth - r + 1 / s0)) ** 2 for r in (rho0, rho1)}
    alpha, kappa = gain**2 * (rho0 - rho1), (rho0 + rho1) / 2 - 1 / s0
    difference = variance[rho0] - variance[rho1]
    assert sp.simplify(difference + 2 * alpha * (1 / depth - kappa)) == 0
