"""Errors of lenses over the field: maps worked by hand, files, and values that are refused."""

from typing import Any

import numpy as np
import pytest

from calibrations import calibration
from d3s.errors import RigError
from d3s.rig import LensMaps, Optics

# gain: 0.5 * 0.0125 / 2.5e-6 * 0.001 = 2.5 px a dioptre; sharp on the axis at 1 and at 2 dioptres.
OPTICS = Optics(
    sensor_distance_m=0.0125,
    aperture_radius_m=0.001,
    baseline_m=0.004,
    optical_power_left_dpt=81.0,
    optical_power_right_dpt=82.0,
    pixel_pitch_m=2.5e-6,
    aperture_gaussian_width=0.5,
    disparity_offset_px=0.0,
)
FULL: dict[str, Any] = {
    "field_radius_px": 40.0,
    "distortion_left": (-0.01, 0.002, 0.001, -0.002),
    "distortion_right": (0.01, 0.0, 0.0, 0.0),
    "illumination_left": (1.0, 0.01, 0.02, -0.1, 0.0, -0.1),
    "illumination_right": (0.95,),
    "focus_left_dpt": (0.1, 0.2, 0.5, 1.5),
    "focus_right_dpt": (0.0, 0.0, 0.5, 1.0),
    "blur_ratio": 1.2,
    "extra_blur_left_px2": (0.1, 0.0, 0.0),
    "extra_blur_right_px2": (0.25,),
    "disparity_px": ((0.1, 0.2, 0.3), (0.01,)),
    "disparity_sigma_px": 0.02,
}


def test_distortion_worked_by_hand() -> None:
    lenses = LensMaps(**FULL)
    # r² = 0.25: 1 - 0.01 * 0.25 + 0.002 * 0.0625 = 0.997625; lean 2 * (0.0003 - 0.0008) = -0.001.
    np.testing.assert_allclose(
        lenses.distorted(0, 0.3, 0.4),
        (0.3 * 0.996625 + 0.001 * 0.25, 0.4 * 0.996625 - 0.002 * 0.25),
        rtol=1e-12,
    )
    np.testing.assert_allclose(lenses.distorted(1, [0.0, 1.0], 0.0), [[0, 1.01], [0, 0]])


def test_focus_along_and_across_the_radius() -> None:
    lenses = LensMaps(**FULL)
    # On the x axis the radius is along x: tangential there, sagittal along y.
    np.testing.assert_allclose(lenses.focus_dpt(1, 2.0, 0.0), (4.0, 0.0, 2.0))
    np.testing.assert_allclose(lenses.focus_dpt(1, 0.0, 2.0), (2.0, 0.0, 4.0))
    # On the diagonal, r² = 2: the tensor has eigenvalues 2 along and 1 across.
    across, mixed, down = lenses.focus_dpt(1, 1.0, 1.0)
    values = np.linalg.eigvalsh([[across, mixed], [mixed, down]])
    np.testing.assert_allclose(values, (1.0, 2.0))
    # Tilt of the focus: 0.1 + 0.2 * 2, the same along both.
    tilted = LensMaps(field_radius_px=40, focus_left_dpt=(0.1, 0.2, 0.0, 0.0))
    np.testing.assert_allclose(tilted.focus_dpt(0, 1.0, 2.0), (0.5, 0.0, 0.5))


def test_blur_worked_by_hand() -> None:
    lenses = LensMaps(**FULL)
    # Right, at (1, 0): tangential focus 2 + 1.0, sagittal focus 2 + 0.5 dioptres. Blur is 1.2 times
    # 2.5 px a dioptre.
    blur_px2 = lenses.blur_px2(1, 1.0, 0.0, [3.0, 2.5, 2.0], OPTICS)
    np.testing.assert_allclose(blur_px2[0], 9.0 * np.array([0, 0.25, 1]) + 0.25, atol=1e-9)
    np.testing.assert_allclose(blur_px2[1], 0, atol=1e-9)
    np.testing.assert_allclose(blur_px2[2], 9.0 * np.array([0.25, 0, 0.25]) + 0.25, atol=1e-9)
    # The left view, one dioptre from its focus.
    assert lenses.blur_px2(0, 0.0, 0.0, 2.0, OPTICS)[0] == pytest.approx(6.25 + 0.1)
    # At (1, 1), 0 dioptres from the focus of the axis: u - K is -[[1.5, 0.5], [0.5, 1.5]].
    np.testing.assert_allclose(
        lenses.blur_px2(1, 1.0, 1.0, 2.0, OPTICS),
        (9.0 * 2.5 + 0.25, 9.0 * 1.5, 9.0 * 2.5 + 0.25),
        atol=1e-9,
    )


def test_light_and_disparity_worked_by_hand() -> None:
    lenses = LensMaps(**FULL)
    assert lenses.illumination(0, 1.0, 0.5) == pytest.approx(1 + 0.01 + 0.01 - 0.1 - 0.025)
    assert lenses.illumination(1, 1.0, 0.5) == pytest.approx(0.95)
    # 0.1 + 0.2 x + 0.3 y and 0.01 u
    assert lenses.remaining_disparity_px(1.0, 0.5, 2.0, OPTICS) == pytest.approx(0.47)
    assert lenses.remaining_disparity_px(np.zeros(3), 0.0, np.ones((2, 1)), OPTICS).shape == (2, 3)


def test_detail_moves_away_from_the_wider_blur() -> None:
    """A wave, each point of it spread by its own Gaussian, is shifted as the formula says."""
    lenses = LensMaps(field_radius_px=200.0, focus_left_dpt=(-1.0, 0.0, 0.0, 0.0))
    across = np.arange(-60.0, 201.0)

    def variance(at: Any) -> Any:
        return lenses.blur_px2(0, at / 200, 0 * at, 1.5, OPTICS)[0]

    wave = 0.08
    paint = np.exp(1j * wave * across)
    width = variance(across)
    spread = np.exp(-((across[:, np.newaxis] - across) ** 2) / (2 * width)) / np.sqrt(width)
    seen = (spread @ paint) / np.sqrt(2 * np.pi)
    here = np.array([60, 120])
    measured = -np.angle(seen[here] / paint[here]) / wave
    expected = lenses.blur_shift_px(0, across[here] / 200, np.zeros(2), 1.5, OPTICS)
    # The blur grows to the right: 2.5² (0.5 + x)² at x, so that the wave moves to the left.
    assert expected[0, 0] == pytest.approx(-2 * 2.5**2 * 0.5 / 200, rel=1e-6)
    np.testing.assert_allclose(expected[1], 0.0, atol=1e-9)
    np.testing.assert_allclose(measured, expected[0], rtol=0.06)


def test_disparity_of_sharp_detail_and_of_further_maps() -> None:
    lenses = LensMaps(
        field_radius_px=50.0,
        disparity_px=((0.1,),),
        sharp_disparity_px=(0.2,),
    )
    # Sharp at 1 dpt, and 2.5² px² of blur at 2 dpt.
    assert lenses.remaining_disparity_px(0.0, 0.0, 1.0, OPTICS) == pytest.approx(0.3)
    half = 0.1 + 0.2 / (1 + 6.25)
    assert lenses.remaining_disparity_px(0.0, 0.0, 2.0, OPTICS) == pytest.approx(half)
    further = ((0.01,), (0.02,))
    with_it = lenses.remaining_disparity_px(0.0, 0.0, 2.0, OPTICS, further)
    assert with_it == pytest.approx(half + 0.05)


@pytest.mark.parametrize(
    ("field", "wrong", "words"),
    [
        ("field_radius_px", 0.5, "field_radius_px=0.5 must be above 1: it is in pixels"),
        ("distortion_left", (0.0, 0.0), r"distortion_left\[2\] is missing"),
        ("distortion_left", (3.0, 0.0, 0.0, 0.0), r"distortion_left\[0\]=3.0 must be at most 1"),
        ("illumination_left", (1.0, 0.0), r"illumination_left=\(1.0, 0.0\) must have 1, 3, 6,"),
        ("illumination_left", (), r"illumination_left=\(\) must have 1, 3, 6,"),
        ("illumination_left", "bright", "illumination_left='bright' must be a list"),
        ("focus_left_dpt", (float("nan"), 0.0, 0.0, 0.0), "must be a finite number"),
        ("extra_blur_left_px2", [[1.0]], r"extra_blur_left_px2\[0\]=\[1.0\] must be a finite"),
        ("disparity_px", ((1.0, 2.0),), r"disparity_px\[0\]=\(1.0, 2.0\) must have 1, 3, 6,"),
        ("disparity_px", (1.0,), r"disparity_px\[0\]=1.0 must be a list"),
        ("disparity_px", ((1.0,),) * 5, "must have at most 4 values"),
        ("disparity_sigma_px", -0.1, "disparity_sigma_px=-0.1 must be at least 0"),
        ("vignetting", 1.0, "vignetting is unknown"),
    ],
)
def test_wrong_values_are_named(field: str, wrong: Any, words: str) -> None:
    with pytest.raises(RigError, match=words):
        LensMaps(**{**FULL, field: wrong})


def test_maps_must_fit_the_views_of_their_calibration() -> None:
    # Views of 61 x 81 px: at the side x = 1, in the corner r² = 1 + 0.75².
    dark = LensMaps(field_radius_px=40, illumination_right=(1.0, 0.0, 0.0, -1.0, 0.0, 0.0))
    with pytest.raises(RigError, match=r"light of 0 to 1 within the right view of 61 x 81 px"):
        calibration(lenses=dark)
    folded = LensMaps(field_radius_px=40, distortion_left=(-0.3, 0.0, 0.0, 0.0))
    with pytest.raises(RigError, match=r"magnifies parts of the left view .* Make the view small"):
        calibration(lenses=folded)
    assert calibration(lenses=folded, crop_rows_px=15, crop_cols_px=15).lenses == folded
    with pytest.raises(RigError, match=r"^crop_rows_px=0 must be above 0: it is in pixels\.$"):
        calibration(lenses=dark, crop_rows_px=0)
