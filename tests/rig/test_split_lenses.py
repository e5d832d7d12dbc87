"""Raw frames of lenses with distortion and vignetting, split into pairs."""

import os
from typing import Any

import numpy as np
import pytest

from calibrations import calibration
from d3s.estimate.clipping import clipped
from d3s.rig import LensMaps, Rig

FRAME = (120, 260)
# Every parameter of the geometry, each with a fractional value.
SKEW = {
    "anchor_left_px": (188.3, 61.7),
    "anchor_right_px": (66.6, 57.2),
    "rectify_scale": 1.01,
    "rectify_angle_rad": 0.03,
    "rectify_shift_y_px": 2.4,
    "baseline_angle_rad": -0.02,
}
# 2 % at the side of the view, and 3 % in its corners.
DISTORTION = {
    "distortion_left": (-0.016, -0.004, 0.001, -0.002),
    "distortion_right": (0.01, 0.01, -0.002, 0.001),
}
VIGNETTING = {
    "illumination_left": (1.0, 0.02, -0.01, -0.2, 0.0, -0.2),
    "illumination_right": (0.9, 0.0, 0.01, -0.1, 0.05, -0.1),
}
LENSES = LensMaps(field_radius_px=40.0, **DISTORTION, **VIGNETTING)


def rig_with(lenses: LensMaps | None, **changes: Any) -> Rig:
    return Rig.paper_prototype().replace(calibration=calibration(lenses=lenses, **changes))


def turn(angle_rad: float) -> np.ndarray:
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([[cos, -sin], [sin, cos]])


def offsets() -> np.ndarray:
    """Places of the pixels of a view of 61 x 81 px from its middle, (2, pixels)."""
    y, x = np.mgrid[-30:31, -40:41]
    return np.stack([x, y]).reshape(2, -1).astype(float)


def distorted(from_axis: np.ndarray, values: tuple[float, ...]) -> np.ndarray:
    """Distortion as docs/rig.md has it, of places in pixels, with a unit of 40 px."""
    third, fifth, across, down = values
    x, y = from_axis / 40
    square = x * x + y * y
    factor = 1 + third * square + fifth * square * square
    return 40 * np.stack(
        [
            x * factor + across * (3 * x * x + y * y) + 2 * down * x * y,
            y * factor + down * (3 * y * y + x * x) + 2 * across * x * y,
        ]
    )


def places() -> list[np.ndarray]:
    """Places of both views with SKEW and DISTORTION in the raw frame, (2, pixels) each."""
    turned = turn(-0.02) @ offsets()
    right = turn(-0.03) @ (turned - [[0.0], [2.4]]) / 1.01
    return [
        np.array([[188.3], [61.7]]) + distorted(turned, DISTORTION["distortion_left"]),
        np.array([[66.6], [57.2]]) + distorted(right, DISTORTION["distortion_right"]),
    ]


def light(camera: int) -> np.ndarray:
    """Light over a view of 61 x 81 px."""
    c = VIGNETTING[("illumination_left", "illumination_right")[camera]]
    x, y = offsets() / 40
    total = c[0] + c[1] * x + c[2] * y + c[3] * x * x + c[4] * x * y + c[5] * y * y
    return np.asarray(total.reshape(61, 81))


@pytest.mark.parametrize("axis", [0, 1])
def test_places_are_right_to_a_500th_of_a_pixel(axis: int) -> None:
    """A ramp, which the kernel reads exactly, tells where each pixel was sampled."""
    ramp = np.mgrid[: FRAME[0], : FRAME[1]][1 - axis].astype(np.float32)
    views = rig_with(LensMaps(field_radius_px=40.0, **DISTORTION), **SKEW).split(ramp)
    for view, expected in zip(views, places(), strict=True):
        assert np.abs(view.ravel() - expected[axis]).max() < 0.002


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_light_is_made_even(dtype: Any) -> None:
    """A white wall behind both lenses has the value 0.6 in both views."""
    raw = np.zeros(FRAME)
    y, x = np.mgrid[: FRAME[0], : FRAME[1]]
    for camera, (anchor_x, anchor_y) in enumerate(((190.0, 60.0), (65.0, 58.0))):
        half = np.s_[:, 130:] if camera == 0 else np.s_[:, :130]
        place = (x - anchor_x) / 40, (y - anchor_y) / 40
        raw[half] = 0.6 * LENSES.illumination(camera, *place)[half]
    scale = 65535 if dtype == np.uint16 else 1
    given = (raw * scale).round() if dtype == np.uint16 else raw
    for view in rig_with(LensMaps(field_radius_px=40.0, **VIGNETTING)).split(given.astype(dtype)):
        np.testing.assert_allclose(view, 0.6, atol=2e-5)
        assert view.dtype == np.float32


def test_clipped_pixels_have_one_value_beyond_all_others() -> None:
    y, x = np.mgrid[: FRAME[0], : FRAME[1]]
    levels = np.rint(30000 + 9000 * np.sin(0.31 * x + 0.17 * y)).astype(np.uint16)
    levels[50:70, 180:200] = 65535  # in the middle of the left view
    levels[32:44, 152:165] = 65535  # in its darkest corner
    levels[80:86, 180:200] = 0
    left, right = rig_with(LENSES).split(levels)
    darkest = light(0).min()
    is_bright = left == left.max()
    assert left.max() == pytest.approx(1 / darkest, rel=1e-3)
    # Row r and column c of the view are near row r + 30 and column c + 150 of the frame.
    assert is_bright[22:38, 32:48].all()
    assert is_bright[5:12, 5:13].all()
    assert not is_bright[42:].any()
    assert left.min() == 0
    assert clipped(left)[52:54, 33:48].all()
    assert np.array_equal(clipped(left) & is_bright, is_bright)
    assert not clipped(right).any()


def test_nothing_is_invented_beyond_the_frame() -> None:
    # Pincushion: the side of the view is read 2 % farther out.
    lenses = LensMaps(field_radius_px=40.0, distortion_left=(0.05, 0.0, 0.0, 0.0))
    raw = np.full(FRAME, 0.5, dtype=np.float32)
    left, right = rig_with(lenses, anchor_left_px=(211.5, 60.0)).split(raw)
    # The last place with 8 pixels behind the one before it is just before column 252. The kernel
    # reaches 8 rows farther out, where the column is farther right.
    own, farther = (
        211.5 + distorted(offsets() + shift, (0.05, 0.0, 0.0, 0.0))[0].reshape(61, 81)
        for shift in (0.0, 9.0 * np.sign(offsets()) * [[0.0], [1.0]])
    )
    assert np.isnan(left[own >= 252]).all()
    assert not np.isnan(left[np.maximum(own, farther) < 252]).any()
    assert np.isnan(left).any()
    assert not np.isnan(right).any()


def test_the_same_bytes_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = np.random.default_rng(0).random((240, 500), dtype=np.float32)
    larger = {"anchor_left_px": (370.2, 121.0), "anchor_right_px": (120.4, 119.0)}
    lenses = LENSES.replace(field_radius_px=100.0)
    rig = rig_with(lenses, **larger, crop_rows_px=181, crop_cols_px=201)
    results = []
    for count in ("1", "2", "7"):
        monkeypatch.setitem(os.environ, "D3S_THREADS", count)
        results.append([view.tobytes() for view in rig.split(raw)])
    assert results[0] == results[1] == results[2]
