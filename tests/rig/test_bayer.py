"""Luminance of raw frames of colour sensors, and frames that are noticed to be such."""

from typing import Any

import cv2
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from calibrations import calibration
from d3s.errors import DepthWarning, InputError, RigError
from d3s.rig import Rig
from d3s.rig.bayer import (
    ORDERS,
    channel_means,
    gains_of_means,
    looks_coloured,
    luminance,
    luminance_noise,
    on_sites,
    unexplained_colour,
)

SHAPE = (96, 130)
GAINS = (1.6, 1.0, 1.25)


def mosaic(red: Any, green: Any, blue: Any, order: str = "RGGB") -> np.ndarray:
    """Raw frame of three images."""
    planes = [
        np.broadcast_to(np.asarray(one, dtype=np.float32), SHAPE) for one in (red, green, blue)
    ]
    return np.choose(on_sites((0, 1, 2), order, SHAPE).astype(int), planes).astype(np.float32)


def wave(x: float, y: float) -> np.ndarray:
    rows, cols = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return np.asarray(np.cos(x * cols + y * rows), dtype=np.float32)


def inner(image: np.ndarray) -> np.ndarray:
    return image[8:-8, 8:-8]


def test_gains_make_grey_even():
    grey = 0.5 + 0.3 * wave(0.3, 0.2)
    raw = mosaic(grey / GAINS[0], grey / GAINS[1], grey / GAINS[2])
    np.testing.assert_allclose(gains_of_means(channel_means(raw, "RGGB")), GAINS, rtol=0.01)
    np.testing.assert_allclose(inner(luminance(raw, "RGGB", GAINS)), inner(grey), atol=2e-3)


# With c = (cos x + cos y) / 2, green is passed by 1/2 + 3/4 c - 1/4 c³, worked by hand.
@pytest.mark.parametrize(
    ("x", "y", "passed"), [(0.3, 0.0, 0.9997), (0.6, 0.5, 0.984), (1.2, 0.0, 0.932)]
)
def test_grey_detail_is_kept_and_not_moved(x, y, passed):
    grey = wave(x, y)
    found = inner(luminance(mosaic(grey, grey, grey), "RGGB", (1.0, 1.0, 1.0)))
    strength = (found * inner(grey)).mean() / (inner(grey) ** 2).mean()
    assert strength == pytest.approx(passed, abs=0.005)
    # A shift would leave the wave turned by 90 degrees.
    rows, cols = np.mgrid[: SHAPE[0], : SHAPE[1]]
    turned = inner(np.sin(x * cols + y * rows))
    assert abs((found * turned).mean()) < 0.01


@pytest.mark.parametrize(("x", "y"), [(0.3, 0.0), (0.0, 0.4), (0.4, 0.4)])
def test_coloured_detail_leaves_no_false_waves(x, y):
    one = wave(x, y)
    found = inner(luminance(mosaic(one, 0 * one, -one), "RGGB", (1.0, 1.0, 1.0)))
    # Red minus blue is no luminance: nothing of it remains, neither there nor at pi - x.
    assert np.abs(found).max() < 2e-3


@pytest.mark.parametrize("gains", [(1.0, 1.0, 1.0), (2.0, 1.0, 1.5)])
def test_noise_spectrum_is_the_one_told_to_the_estimator(gains):
    rng = np.random.default_rng(0)
    power = []
    for _ in range(12):
        grey = luminance(rng.standard_normal(SHAPE).astype(np.float32), "RGGB", gains)
        # A gradient of the smoothed image, divided by f: the weight of the docstring.
        spectrum = np.abs(np.fft.fft2(grey)) ** 2 / grey.size
        fy, fx = (2 * np.pi * np.fft.fftfreq(size) for size in SHAPE)
        squared = fx**2 + fy[:, np.newaxis] ** 2
        weight = np.exp(-2 * squared) * fx**2 / np.maximum(squared, 1e-9)
        power.append((spectrum * weight).sum() / weight.sum())
    assert np.mean(power) == pytest.approx(luminance_noise(gains).read, rel=0.12)


def test_clipped_pixels_stay_above_all_others():
    grey = np.clip(
        0.5 + 0.7 * gaussian_filter(np.random.default_rng(1).normal(size=SHAPE), 6) * 10, 0.05, 1
    )
    raw = np.minimum(mosaic(grey * 0.7, grey * 1.4, grey * 0.9), 1).astype(np.float32)
    found = luminance(raw, "RGGB", (2.0, 1.0, 1.55))
    is_green = on_sites((0, 1, 0), "RGGB", SHAPE) > 0
    clipped = cv2.erode(np.uint8((raw == 1) | ~is_green), np.ones((7, 7), np.uint8)) > 0
    assert clipped.any()
    assert (found[clipped] == found.max()).all()


def test_wrong_order_and_dark_frame_are_refused_in_words():
    with pytest.raises(InputError, match="'RGBG' must be RGGB, BGGR, GRBG, GBRG"):
        luminance(mosaic(1, 1, 1), "RGBG")
    with pytest.raises(InputError, match="Is the frame lit"):
        luminance(np.zeros(SHAPE, np.float32), "RGGB")


def test_split_of_a_colour_sensor_is_that_of_its_luminance():
    rng = np.random.default_rng(2)
    shape = (120, 260)
    raw = rng.integers(1000, 60000, shape).astype(np.uint16)
    rig = Rig.paper_prototype().replace(calibration=calibration())
    coloured = rig.replace(
        calibration=rig.calibration.replace(bayer="GRBG", channel_gains=(1.5, 1.0, 1.2))
    )
    expected = rig.split(luminance(raw, "GRBG", (1.5, 1.0, 1.2)) / np.float32(65535))
    for view, other in zip(coloured.split(raw), expected, strict=True):
        np.testing.assert_allclose(view, other, atol=1e-5)


def test_rig_file_holds_the_colours(tmp_path):
    rig = Rig.paper_prototype().replace(
        calibration=calibration().replace(bayer="BGGR", channel_gains=(1.5, 1.0, 1.25))
    )
    rig.save(tmp_path / "rig.toml")
    assert Rig.load(tmp_path / "rig.toml") == rig
    with pytest.raises(RigError, match=r"channel_gains.*needs bayer"):
        calibration().replace(channel_gains=(1.5, 1.0, 1.25))


# Noticing -----------------------------------------------------------------------------------------


def scene(seed: int, sigma: float) -> list[np.ndarray]:
    """Red, green and blue of a scene with much grey and some colour."""
    rng = np.random.default_rng(seed)
    grey, *own = (gaussian_filter(rng.normal(size=(200, 240)), sigma) * sigma for _ in range(4))
    return [np.asarray(0.5 + 0.2 * (0.8 * grey + 0.4 * one), dtype=np.float32) for one in own]


def raw_of(planes: list[np.ndarray], order: str, shares: tuple[float, ...]) -> np.ndarray:
    sites = on_sites((0, 1, 2), order, (200, 240)).astype(int)
    return np.choose(sites, [s * p for s, p in zip(shares, planes, strict=True)]).astype(np.float32)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shares", [(0.6, 1.0, 0.5), (0.9, 1.0, 0.8), (1.0, 1.0, 1.0)])
def test_frame_of_a_colour_sensor_is_noticed(order, shares):
    for seed in range(3):
        noise = 0.01 * np.random.default_rng(seed + 50).normal(size=(200, 240))
        assert looks_coloured(raw_of(scene(seed, 1.5), order, shares) + noise)


def test_mono_frame_is_none_whatever_its_texture():
    rng = np.random.default_rng(0)
    rows, cols = np.mgrid[:200, :240]
    textures = [
        rng.normal(size=(200, 240)),
        gaussian_filter(rng.normal(size=(200, 240)), 0.6),
        np.cos(3.1 * cols) + 0.5 * rng.normal(size=(200, 240)),  # stripes of nearly two pixels
        np.cos(3.1 * cols) * np.cos(3.1 * rows) + 0.5 * rng.normal(size=(200, 240)),
        np.float64((cols // 9 + rows // 9) % 2) * 2,
        np.where(cols % 2, 0.3, 0.0) + rng.normal(size=(200, 240)),  # two amplifiers
    ]
    for texture in textures:
        frame = np.clip(0.5 + 0.1 * texture, 0, None)
        assert not looks_coloured(frame)
        assert not looks_coloured((60000 * frame / frame.max()).astype(np.uint16))
    assert not looks_coloured(np.zeros((200, 240)))
    assert not looks_coloured(np.full((200, 240), 0.5))
    assert not looks_coloured(np.full((5, 7), 0.5))


def frame_of(shares: tuple[float, ...]) -> np.ndarray:
    """Raw frame (120, 260) of a small camera."""
    wide = np.hstack([raw_of(scene(seed, 1.5), "RGGB", shares)[:120, :130] for seed in (1, 2)])
    return np.asarray(wide, dtype=np.float32)


def test_split_warns_of_colours_that_nobody_said():
    rig = Rig.paper_prototype().replace(calibration=calibration())
    coloured = rig.replace(
        calibration=rig.calibration.replace(bayer="RGGB", channel_gains=(1 / 0.6, 1.0, 2.0))
    )
    raw = frame_of((0.6, 1.0, 0.5))
    with pytest.warns(DepthWarning, match="raw looks like the raw frame of a colour") as caught:
        rig.split(raw)
    assert [one.filename for one in caught] == [__file__]
    rig.split(raw, bayer="none")  # warnings are errors here
    said, known = rig.split(raw, bayer="RGGB"), coloured.split(raw)
    np.testing.assert_allclose(said, known, atol=0.03)  # whose gains are those of one frame
    np.testing.assert_array_equal(coloured.split(raw, bayer="RGGB"), known)
    rig.split(scene(1, 1.5)[0][:120, :].repeat(2, axis=1)[:, :260])
    for wrong in ("BGGR", "none"):
        with pytest.raises(InputError, match="the rig was calibrated with RGGB frames"):
            coloured.split(raw, bayer=wrong)


# Grey and coloured frames -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "low", "high"), [(0.0, 0.0, 0.04), (0.2, 0.05, 0.2), (1.0, 0.9, 1)]
)
def test_colour_is_the_texture_that_green_does_not_explain(own, low, high):
    rng = np.random.default_rng(8)
    grey, *others = (gaussian_filter(rng.normal(size=(200, 240)), 4) for _ in range(4))
    planes = [np.asarray((1 - own) * grey + own * one, np.float32) + 0.5 for one in others]
    raw = raw_of(planes, "RGGB", (1.0, 1.0, 1.0))
    assert low <= unexplained_colour(raw, "RGGB") <= high
    warm = raw_of(planes, "RGGB", (1.4, 1.0, 0.6))  # gains of another light
    seen = unexplained_colour(raw, "RGGB")
    assert unexplained_colour(warm, "RGGB") == pytest.approx(seen, abs=1e-3)
