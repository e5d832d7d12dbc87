"""Calibration of a colour sensor: order, gains and noise; and the rule for colour files."""

from functools import cache

import numpy as np
import pytest
from PIL import Image

import d3s
from d3s.calibrate.captures import captures_of, read_captures
from d3s.calibrate.fields import find_fields
from d3s.calibrate.frames import ColourSensor
from d3s.calibrate.sensor_noise import find_noise
from d3s.errors import CapturesError, InputError
from small_camera import SMALL_DISTANCES_M, SMALL_LAYOUT, SMALL_MOUNTS, small_rig

SHARES = (0.6, 1.0, 0.75)
NOISE = 0.008


@cache
def frames() -> tuple[np.ndarray, ...]:
    """Raw frames of a board, by a colour sensor."""
    sensor = d3s.Sensor(noise=NOISE, bayer="GBRG", channel_shares=SHARES)
    return tuple(
        d3s.simulate_raw(
            d3s.Plane(depth_m=depth_m, texture="calibration"),
            small_rig(),
            noise=sensor,
            seed=(4, number),
            layout=SMALL_LAYOUT,
            mounts=SMALL_MOUNTS,
        ).image
        for number, depth_m in enumerate(SMALL_DISTANCES_M)
    )


def test_gains_are_found_from_the_frames():
    captures = captures_of(frames(), SMALL_DISTANCES_M, bayer="GBRG")
    sensor = captures.sensor
    assert sensor is not None
    assert sensor.order == "GBRG"
    np.testing.assert_allclose(sensor.gains, (1 / 0.6, 1.0, 1 / 0.75), rtol=0.01)
    # The luminance has no pattern of two pixels left, and the raw frame has.
    step = np.abs(np.diff(captures.image(3)[150:250, 150:250], axis=1)).mean()
    assert step < 0.5 * np.abs(np.diff(captures.raw(3)[150:250, 150:250], axis=1)).mean()


def test_mono_if_said_and_unknown_order_is_refused():
    assert captures_of(frames(), SMALL_DISTANCES_M, bayer="none").sensor is None
    with pytest.raises(CapturesError, match="'RGBG' must be RGGB"):
        captures_of(frames(), SMALL_DISTANCES_M, bayer="RGBG")
    with pytest.raises(CapturesError, match=r"look like those of a colour sensor.*--bayer RGGB"):
        captures_of(frames(), SMALL_DISTANCES_M)


def test_noise_is_that_of_the_luminance():
    captures = captures_of(frames(), SMALL_DISTANCES_M, bayer="GBRG")
    noise = find_noise(captures, find_fields(captures))
    sensor = ColourSensor("GBRG", (1 / 0.6, 1.0, 1 / 0.75))
    true = NOISE**2 * sensor.noise.read
    # An upper bound: so near, part of the texture is as fine as the noise of green pixels.
    assert true < noise.variance_at(0.1) < 1.8 * true
    assert sensor.noise.shot < sensor.noise.read


def write_board(folder, colour):
    """Captures as colour files of 8 bits."""
    folder.mkdir()
    lines = ["file,distance_m"]
    for number, raw in enumerate(frames()):
        grey = np.clip(raw * 200, 0, 255).astype(np.uint8)
        image = np.stack([grey] * 3, axis=2) if colour else grey
        Image.fromarray(image).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{SMALL_DISTANCES_M[number]}")
    (folder / "distances.csv").write_text("\n".join(lines) + "\n")


def test_colour_files_have_the_rule_of_depth(tmp_path):
    write_board(tmp_path / "c", colour=True)
    captures = read_captures(tmp_path / "c", bayer="none")
    pair = d3s.load_pair(tmp_path / "c/3.png", tmp_path / "c/3.png")
    np.testing.assert_allclose(captures.image(3), pair.left, atol=1e-4)
    (words,) = [one for one in captures.remarks if "in colour" in one]
    assert "6 other frames" in words
    assert "curve of sRGB was undone" in words
    linear = read_captures(tmp_path / "c", bayer="none", linear=True)
    np.testing.assert_allclose(linear.image(3), frames()[3].clip(0) * 200 / 255, atol=0.01)
    with pytest.raises(InputError, match="linear is for files"):
        d3s.calibrate(frames(), SMALL_DISTANCES_M, linear=True)


@pytest.mark.slow
def test_colour_sensor_is_calibrated_and_sees_depth():
    rig, report = d3s.calibrate(frames(), SMALL_DISTANCES_M, design=small_rig(), bayer="GBRG")
    assert "bad" not in [one.grade for one in report.verdict.remarks]
    assert rig.calibration is not None
    assert rig.calibration.bayer == "GBRG"
    wall = d3s.simulate_raw(
        d3s.Plane(depth_m=0.42, texture=d3s.Texture(pattern="gravel", colour=0.6)),
        small_rig(),
        noise=d3s.Sensor(noise=NOISE, bayer="GBRG", channel_shares=SHARES),
        seed=9,
        layout=SMALL_LAYOUT,
        mounts=SMALL_MOUNTS,
    )
    est = d3s.estimate(*rig.split(wall.image), rig)
    assert est.density > 0.6
    assert np.nanmedian(np.abs(est.depth_m - 0.42)) < 0.002
