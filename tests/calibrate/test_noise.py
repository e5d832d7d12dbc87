"""Noise of the sensor on a textured board, compared with the simulated noise."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.captures import captures_of
from d3s.calibrate.fields import Box, Fields, find_fields
from d3s.calibrate.frames import Captures
from d3s.calibrate.sensor_noise import find_noise
from d3s.errors import CalibrationError

DISTANCES_M = (0.22, 0.26, 0.35, 0.85, 2.5)


@pytest.fixture(scope="module")
def quiet_frames() -> list[np.ndarray]:
    """Boards without noise: two far out of focus, one sharp."""
    optics = d3s.Rig.paper_prototype().optics
    rig = d3s.Rig(optics=optics.replace(pixel_pitch_m=9e-6, aperture_radius_m=3e-3))
    layout = d3s.RawLayout(
        rows_px=480,
        cols_px=860,
        field_radius_px=235.0,
        field_edge_px=10.0,
        partition_px=8.0,
        partition_edge_px=10.0,
    )
    return [
        d3s.simulate_raw(
            d3s.Plane(depth_m=depth_m, texture="calibration"), rig, layout=layout
        ).image
        for depth_m in DISTANCES_M
    ]


def exposed(frames: list[np.ndarray], sensor: d3s.Sensor) -> Captures:
    images = [
        sensor.expose(frame, camera=0, rng=np.random.default_rng(number))
        for number, frame in enumerate(frames)
    ]
    return captures_of(images, DISTANCES_M)


@pytest.mark.parametrize(
    "sensor",
    [
        d3s.Sensor(noise=0.01),
        d3s.Sensor(full_well_e=10_000, read_noise_e=20, bits=10),
        d3s.Sensor(full_well_e=1_000, read_noise_e=2, bits=12),
    ],
)
def test_noise_of_a_known_sensor(quiet_frames: list[np.ndarray], sensor: d3s.Sensor) -> None:
    captures = exposed(quiet_frames, sensor)
    noise = find_noise(captures, find_fields(captures))
    for intensity in (0.15, 0.3, 0.45, 0.6):
        truth = sensor.noise_sigma(intensity) ** 2
        assert noise.variance_at(intensity) == pytest.approx(truth, rel=0.05)
    assert noise.read >= 0
    assert noise.gain >= 0
    assert noise.spread < 0.05
    assert 0 in noise.frames
    assert noise.left_out == {3: "its texture is too sharp to be told from noise"}
    assert noise.is_fitted.sum() >= 5
    assert abs(noise.read - sensor.noise_sigma(0.0)) < 4 * noise.read_std


@pytest.mark.parametrize("column_noise", [0.0, 0.005])
def test_noise_of_columns(quiet_frames: list[np.ndarray], column_noise: float) -> None:
    sensor = d3s.Sensor(noise=0.01, column_noise=column_noise)
    captures = exposed(quiet_frames, sensor)
    noise = find_noise(captures, find_fields(captures))
    assert noise.column == pytest.approx(column_noise, rel=0.1, abs=5e-4)
    # Noise of pixels is found without it.
    assert noise.variance_at(0.4) == pytest.approx(0.01**2, rel=0.05)


def flat_captures(*levels: float) -> tuple[Captures, Fields]:
    """Frames of stripes of constant brightness, side by side, clipped at 1."""
    rng = np.random.default_rng(2)
    clean = np.repeat(levels, 400 // len(levels))[np.newaxis, :] + np.zeros((160, 1))
    images = [
        np.clip(clean + rng.normal(0, 0.02, clean.shape), 0, 1).astype(np.float32) for _ in range(5)
    ]
    captures = Captures(
        names=tuple("abcde"),
        distances_m=(0.3, 0.4, 0.5, 0.6, 0.7),
        shape=clean.shape,
        source=images.__getitem__,
    )
    boxes = Box(0, 0, 160, 200), Box(0, 200, 160, 200)
    return captures, find_fields(captures, boxes=boxes)


def test_clipped_blocks_do_not_count() -> None:
    noise = find_noise(*flat_captures(0.2, 0.4, 0.7, 0.98))
    assert noise.intensity == pytest.approx([0.2, 0.4, 0.7], abs=0.01)
    assert noise.variance == pytest.approx(np.full(3, 0.02**2), rel=0.05)


def test_board_of_one_grey_is_refused() -> None:
    with pytest.raises(CalibrationError, match="black, grey and white"):
        find_noise(*flat_captures(0.5, 0.5))
