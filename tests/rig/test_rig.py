"""Rig records: derived values, rules, and error messages."""

import math
import pickle
from typing import Any

import numpy as np
import pytest

from d3s.errors import RigError
from d3s.rig import Calibration, Optics, Provenance, Rig

PAPER = dict(Rig.paper_prototype().optics)
PROVENANCE = {
    "residuals": {"anchor_px": 0.21},
    "input_sha256": {"near/0001.png": "0123456789abcdef" * 4},
    "created": "2025-01-31T12:00:00+01:00",
    "d3s_version": "0.1.0",
}
CALIBRATION = {
    "anchor_left_px": [1000.25, 750.0],
    "anchor_right_px": [2960.5, 752.0],
    "crop_rows_px": 902,
    "crop_cols_px": 1802,
    "rectify_scale": 1.25,
    "rectify_angle_rad": math.asin(0.28),
    "rectify_shift_y_px": -2.5,
    "virtual_baselines_m": [0.45e-3, 0.50e-3, 0.55e-3],
    "a_cubic_m_px": [1.0, -2e3, 3e6, -4e9],
    "b_cubic_m": [-0.5, 10.0, 0.0, 0.0],
    "provenance": PROVENANCE,
}


def problems_of(make: Any, **values: Any) -> tuple[str, ...]:
    with pytest.raises(RigError) as caught:
        make(**values)
    assert caught.value.path is None
    return caught.value.problems


def optics_problem(**changes: Any) -> str:
    (problem,) = problems_of(Optics, **{**PAPER, **changes})
    return problem


def calibration_problem(**changes: Any) -> str:
    (problem,) = problems_of(Calibration, **{**CALIBRATION, **changes})
    return problem


def test_paper_prototype() -> None:
    optics = Rig.paper_prototype().optics
    # 1 / (83.88 - 1/0.0121) = 1 / 1.2353719 and 1 / (83.78 - 1/0.0121) = 1 / 1.1353719
    assert optics.focus_distances_m == pytest.approx((0.8094728, 0.8807687), rel=1e-6)
    assert optics.kappa_dpt == pytest.approx(1.1853719, rel=1e-7)
    assert optics.focal_length_px == pytest.approx(6050, rel=1e-12)
    assert optics.disparity_px(1.0) == pytest.approx(23.232, rel=1e-12)
    assert optics.alpha_px2_m == pytest.approx(0.9150625, rel=1e-9)
    assert optics.f_number == pytest.approx(6.05, rel=1e-12)


def test_blur_is_signed_and_zero_in_focus() -> None:
    optics = Rig.paper_prototype().optics
    # s0 A / p = 6.05 px m; at 0.5 m the left lens is out of focus by 2 - 1.2353719 dioptres.
    assert optics.blur_radius_px(0.5, 0) == pytest.approx(6.05 * 0.7646281, rel=1e-6)
    assert optics.blur_sigma_px(0.5, 0) == pytest.approx(3.025 * 0.7646281, rel=1e-6)
    assert optics.blur_sigma_px(2.0, 1) == pytest.approx(3.025 * (0.5 - 1.1353719), rel=1e-6)
    for camera in (0, 1):
        focus_m = optics.focus_distances_m[camera]
        assert optics.blur_sigma_px(focus_m, camera) == pytest.approx(0, abs=1e-9)


def test_calibration_cubics_use_the_magnitude() -> None:
    calibration = Calibration(**CALIBRATION)
    # at 1 mm: 1 - 2 + 3 - 4 and -0.5 + 0.01
    assert calibration.a_m_px(1e-3) == pytest.approx(-2)
    np.testing.assert_allclose(calibration.b_m([1e-3, -1e-3]), [-0.49, -0.49])


def test_rectification_matrix() -> None:
    # scale 5/4, and an angle whose sine is 7/25 and cosine 24/25
    expected = [[1.2, -0.35, 0], [0.35, 1.2, -2.5], [0, 0, 1]]
    np.testing.assert_allclose(Calibration(**CALIBRATION).rectification_matrix, expected)


def test_middlebury_pair() -> None:
    rig = Rig.from_pinhole(focal_length_px=994.978, baseline_m=0.193, disparity_offset_px=-31.0)
    assert rig.optics.disparity_px(2.0) == pytest.approx(994.978 * 0.193 / 2 - 31)
    assert rig.optics.blur_sigma_px(0.1, 0) == 0
    assert rig.optics.alpha_px2_m == 0
    assert rig.optics.f_number == math.inf
    assert rig.optics.focus_distances_m == (math.inf, math.inf)
    assert rig.calibration is None


def test_errors_name_the_arguments() -> None:
    wrong = {"baseline_m": -0.193, "disparity_offset_px": math.nan, "name": "two\nlines"}
    assert problems_of(Rig.from_pinhole, focal_length_px=0.0121, **wrong) == (
        "focal_length_px=0.0121 must be at least 10: "
        "it is in pixels, the focal length over the pixel pitch.",
        "baseline_m=-0.193 must be above 0: it is in metres.",
        "disparity_offset_px=nan must be a finite number.",
        "name='two\\nlines' must be one line of text, and not empty.",
    )


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ("baseline_m", "must be at most 50 times sensor_distance_m=0.0121"),
        ("sensor_distance_m", "must be below "),
        ("aperture_radius_m", "must be below "),
    ],
)
def test_lengths_in_millimetres(field: str, rule: str) -> None:
    problem = optics_problem(**{field: PAPER[field] * 1000})
    assert problem.startswith(f"{field}={PAPER[field] * 1000} {rule}")
    assert problem.endswith(": it is in metres. Did you pass millimetres?")


@pytest.mark.parametrize(("pitch", "unit"), [(2.0, "micro"), (0.002, "milli")])
def test_pixel_pitch(pitch: float, unit: str) -> None:
    problem = optics_problem(pixel_pitch_m=pitch)
    assert problem.startswith(f"pixel_pitch_m={pitch} must be below 0.0001: it is in metres.")
    assert problem.endswith(f"Did you pass {unit}metres?")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("power", [0.08383, 0.0119])
def test_power_in_millimetres_or_focal_length_in_metres(side: str, power: float) -> None:
    field = f"optical_power_{side}_dpt"
    assert optics_problem(**{field: power}) == (
        f"{field}={power} must be at least 1: it is in dioptres, 1/m. "
        "Did you pass 1/millimetre, or the focal length?"
    )


def test_focal_length_in_millimetres_as_a_power() -> None:
    assert optics_problem(optical_power_right_dpt=11.9) == (
        "optical_power_right_dpt=11.9 must be between 41.3223 and 165.289, half and twice "
        "1 / sensor_distance_m: it is in dioptres, 1/m. Did you pass the focal length, or "
        "sensor_distance_m=0.0121 in another unit?"
    )


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("baseline_m", -1e-3, "must be at least 0"),
        ("aperture_gaussian_width", 1.5, "must be at most 1"),
        ("disparity_offset_px", 2e5, "must be at most 100000: it is in pixels"),
        ("optical_power_left_dpt", 83880.0, "must be at most 20000"),
        ("baseline_m", True, "must be a finite number"),
        ("baseline_m", "0.00384", "must be a finite number"),
        pytest.param("baseline_m", 1 << 20_000, "must be a finite number", id="huge"),
    ],
)
def test_rules_of_optics(field: str, value: Any, rule: str) -> None:
    problem = optics_problem(**{field: value})
    assert problem.startswith(f"{field}=")
    assert f" {rule}" in problem


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("crop_rows_px", 0, "must be above 0"),
        ("crop_rows_px", 65537, "must be at most 65536"),
        ("crop_cols_px", 1802.0, "must be a whole number"),
        ("baseline_angle_rad", -0.5, "must be above -0.5: it is in radians"),
        ("frame_rows_px", 0, "must be above 0"),
        ("noise_gain", 1e-4, "needs noise_read beside it"),
        ("anchor_left_px", {1.0, 2.0}, "must be a list"),
        ("a_cubic_m_px", [1.0] * 5, "must have at most 4 values"),
        ("virtual_baselines_m", [], "must have at least 1 value"),
        ("virtual_baselines_m", [5e-4, 5e-4], "must be strictly increasing"),
        ("provenance", "me", "must be Provenance, or a table of its fields"),
    ],
)
def test_rules_of_calibration(field: str, value: Any, rule: str) -> None:
    problem = calibration_problem(**{field: value})
    assert problem.startswith(f"{field}=")
    assert f" {rule}" in problem


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("created", "2025-01-31T12:00:00", "created='2025-01-31T12:00:00' must be a time with"),
        ("d3s_version", " ", "d3s_version=' ' must be one line of text, and not empty"),
        ("residuals", {"rms_px": math.nan}, "residuals.rms_px=nan must be a finite number"),
        ("residuals", {"": 1.0}, "residuals.\"\"='' must be one line of text"),
        ("residuals", {1: 1.0}, "residuals[1]=1 must be text"),
        ("residuals", [0.1], "residuals=(0.1,) must be a table"),
        ("input_sha256", {"a/b.png": "F" * 64}, 'input_sha256."a/b.png"='),
        ("input_sha256", {"a": "0" * 63}, "must be 64 lower-case hexadecimal digits"),
        ("input_sha256", {"\ud800": "0" * 64}, "='\\ud800' must be text"),
    ],
)
def test_rules_of_provenance(field: str, value: Any, problem: str) -> None:
    (found,) = problems_of(Provenance, **{**PROVENANCE, field: value})
    assert problem in found


def test_missing_and_unknown_fields_say_what_is_meant() -> None:
    missing, unknown = problems_of(
        Optics, baselin_m=1, **{key: PAPER[key] for key in PAPER if key != "baseline_m"}
    )
    assert missing.startswith("baseline_m is missing: the distance between the two lens centres")
    assert unknown == "baselin_m is unknown. Did you mean baseline_m?"
    assert optics_problem(xyz=1).startswith("xyz is unknown. Known are: sensor_distance_m, ")


def test_virtual_baselines_are_below_the_real_one() -> None:
    calibration = Calibration(**{**CALIBRATION, "virtual_baselines_m": [0.045, 0.05]})
    (problem,) = problems_of(Rig, optics=Optics(**PAPER), calibration=calibration)
    assert problem == (
        "calibration.virtual_baselines_m=(0.045, 0.05) must be below optics.baseline_m=0.00384: "
        "it is in metres. Did you pass millimetres?"
    )


def test_rigs_and_their_errors_travel_between_processes() -> None:
    rig = Rig.paper_prototype().replace(calibration=CALIBRATION)
    assert pickle.loads(pickle.dumps(rig)) == rig
    error = RigError("baseline_m is missing: b.", "name is missing: n.", path="rig.toml")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems, again.path) == (str(error), error.problems, "rig.toml")


def test_principal_points_of_both_views() -> None:
    numbers = {"focal_length_px": 500.0, "baseline_m": 0.1, "principal_point_px": (40.0, 30.0)}
    rig = Rig.from_pinhole(**numbers, principal_point_right_px=(52.5, 30.0), shape=(60, 80))
    assert rig.optics.disparity_offset_px == -12.5
    assert rig.stereo is not None
    assert (rig.stereo.shape, rig.principal_point_px) == ((60, 80), (40.0, 30.0))
    assert Rig.paper_prototype().principal_point_px is None
    wrong = {"principal_point_right_px": (52.5, 31.0)}
    (problem,) = problems_of(Rig.from_pinhole, **numbers, **wrong)
    assert "must be on the row 30 of principal_point_px" in problem
    (problem,) = problems_of(
        Rig.from_pinhole,
        **numbers,
        principal_point_right_px=(52.5, 30.0),
        disparity_offset_px=12.5,
    )
    assert "gives a disparity of -12.5 px at infinity, and disparity_offset_px=12.5" in problem


def test_views_of_two_cameras_stand_alone() -> None:
    stereo = {"principal_point_px": (40.0, 30.0)}
    rig = Rig.paper_prototype().replace(calibration=CALIBRATION)
    (problem,) = problems_of(rig.replace, stereo=stereo)
    assert "must not be given beside calibration" in problem
