"""Raw frames split into pairs: positions, sharpness, noise, NaN and clipping."""

from typing import Any

import numpy as np
import pytest

from calibrations import calibration
from d3s.errors import InputError
from d3s.rig import Rig
from d3s.rig.interpolation import BEFORE, BEHIND, TAPS

FRAME = (120, 260)
CALIBRATION = calibration()
# Every parameter of the geometry, each with a fractional value.
SKEW = {
    "anchor_left_px": (188.3, 61.7),
    "anchor_right_px": (66.6, 57.2),
    "rectify_scale": 1.01,
    "rectify_angle_rad": 0.03,
    "rectify_shift_y_px": 2.4,
    "baseline_angle_rad": -0.02,
}


def rig_with(**changes: Any) -> Rig:
    return Rig.paper_prototype().replace(calibration=CALIBRATION.replace(**changes))


def waves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Smooth function of known value at every position."""
    return 0.5 + 0.2 * np.sin(0.31 * x + 0.17 * y) + 0.15 * np.cos(0.45 * y - 0.11 * x)


def raw_waves() -> np.ndarray:
    y, x = np.mgrid[: FRAME[0], : FRAME[1]]
    return waves(x, y).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("cycles", [0.02, 0.2, 0.35])
@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.77])
def test_response_is_flat_for_any_fraction(axis: int, cycles: float, fraction: float) -> None:
    place = np.mgrid[: FRAME[0], : FRAME[1]][axis]
    raw = (0.5 + 0.4 * np.sin(2 * np.pi * cycles * place)).astype(np.float32)
    anchor = [190.0, 60.0]
    anchor[1 - axis] += fraction
    left, _ = rig_with(anchor_left_px=tuple(anchor)).split(raw)
    at = np.mgrid[30:91, 150:231][axis] + fraction
    np.testing.assert_allclose(left, 0.5 + 0.4 * np.sin(2 * np.pi * cycles * at), atol=0.4 * 0.01)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, ">f4", ">u2"])
def test_full_scale_is_one_whatever_the_type(dtype: Any) -> None:
    scale = {"u1": 255, "u2": 65535}.get(np.dtype(dtype).str[1:], 1.0)
    levels = np.rint(raw_waves() * 255) / 255  # which all of them hold
    given = (levels * scale if scale == 1 else np.rint(levels * scale)).astype(dtype)
    before = given.copy()
    expected = rig_with(**SKEW).split(levels.astype(np.float32))
    for layout in (given, np.asfortranarray(given), np.repeat(given, 2, axis=1)[:, ::2]):
        layout.flags.writeable = False
        for view, other in zip(rig_with(**SKEW).split(layout), expected, strict=True):
            np.testing.assert_allclose(view, other, atol=1e-6)
    assert np.array_equal(given, before)


def test_nothing_is_invented_beyond_the_frame() -> None:
    left, right = rig_with(anchor_left_px=(225.5, 60.0)).split(raw_waves())
    # The last place with 8 pixels behind the one before it is column 251.5, 26 from the anchor.
    assert not np.isnan(left[:, : 40 + 26 + 1]).any()
    assert np.isnan(left[:, 40 + 26 + 1 :]).all()
    assert not np.isnan(right).any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_spreads_as_far_as_the_kernel(wrong: float) -> None:
    raw = raw_waves()
    raw[60, 190] = wrong
    left, right = rig_with(anchor_left_px=(190.5, 60.5)).split(raw)
    expected = np.zeros(left.shape, dtype=bool)
    expected[30 - BEHIND : 30 + BEFORE + 1, 40 - BEHIND : 40 + BEFORE + 1] = True
    assert np.array_equal(np.isnan(left), expected)
    assert expected.sum() == TAPS**2
    assert not np.isnan(right).any()
    whole, _ = rig_with(anchor_left_px=(190.5, 60.5)).split(raw_waves())
    np.testing.assert_array_equal(left[~expected], whole[~expected])


def test_clipped_pixels_stay_clipped_and_nothing_goes_beyond() -> None:
    levels = np.rint(raw_waves() * 40000).astype(np.uint16)
    levels[50:70, 180:200] = 65535
    levels[40:45, 180:200] = 0
    left, right = rig_with(anchor_left_px=(190.4, 60.3)).split(levels)
    # Row r and column c of the view are nearest to row r + 30 and column c + 150 of the frame.
    assert (left[21:39, 31:49] == 1.0).all()
    assert (left[11:14, 31:49] == 0.0).all()
    assert left.max() == 1.0
    assert left.min() == 0.0
    assert right.max() < 0.6
    from d3s.estimate.clipping import clipped

    assert clipped(left)[21:39, 31:49].all()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (np.zeros((120, 260, 3), np.uint8), r"has shape \(120, 260, 3\).* Turn colour into grey"),
        (np.zeros(5), r"has shape \(5,\): it must be \(rows, cols\)\.$"),
        (np.zeros((0, 4)), r"has shape \(0, 4\)"),
        (np.zeros(FRAME, np.int32), r"dtype int32: it must be uint8, uint16, or floats"),
        (np.zeros(FRAME, complex), r"dtype complex128"),
        ([[1.0], [1.0, 2.0]], "must be an image, an array of"),
        (None, r"raw has shape \(\)"),
        (np.zeros((260, 120)), r"has shape \(260, 120\).*calibrated for \(120, 260\).*same mode"),
    ],
)
def test_frames_that_cannot_be_split(raw: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"raw.*{words}|{words}"):
        rig_with(frame_rows_px=120, frame_cols_px=260).split(raw)


def test_a_rig_without_calibration_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"'paper prototype' has no calibration.*Calibrate it"):
        Rig.paper_prototype().split(raw_waves())


def test_a_view_outside_of_the_frame_is_named() -> None:
    with pytest.raises(InputError, match=r"the right view lies outside.*anchor_right_px=\(900\.0"):
        rig_with(anchor_right_px=(900.0, 60.0)).split(raw_waves())
