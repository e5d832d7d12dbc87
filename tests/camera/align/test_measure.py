"""Readings of misassembled, good and blind cameras."""

import numpy as np
import pytest

import d3s
from align_frames import LAYOUT, RIG, SHAPE, TRUTH, WALL_M, benchmark, misassembled, plain, wall
from d3s.camera.align import measure
from d3s.camera.align.quantities import next_step, steps_of
from d3s.errors import InputError

CASES = [("calibration", -1), ("stone", -1), ("stone", 1)]


@pytest.fixture(scope="module")
def good():
    return measure(wall(), RIG, distance_m=WALL_M)


def off_by(found, name):
    reading = found[name]
    return reading.value - (reading.target if name == "focus_m" else 0.0)


@pytest.mark.parametrize(("texture", "sign"), CASES)
def test_every_misassembly_is_shown_with_its_sign_and_size(texture, sign):
    found = measure(misassembled(texture, sign), RIG, distance_m=WALL_M)
    # The small camera has room for few waves of a strongly blurred wall.
    names = [name for name in TRUTH if name != "focus_m" or sign < 0]
    for name in names:
        assert off_by(found, name) == pytest.approx(sign * TRUTH[name], rel=0.1), name
        assert found[name].state == "turn", name
        assert found[name].arrow


def test_directions_undo_the_error():
    plus = measure(misassembled("stone", 1), RIG, distance_m=WALL_M)
    minus = measure(misassembled("stone", -1), RIG, distance_m=WALL_M)
    assert "to the right" in plus["partition_px"].advice
    assert "to the left" in minus["partition_px"].advice
    assert "lower the right lens" in plus["rows_px"].advice
    assert "raise the right lens" in minus["rows_px"].advice
    assert "counter-clockwise" in plus["roll_rad"].advice
    assert "lens clockwise" in minus["roll_rad"].advice
    assert "right lens nearer to the sensor" in minus["focus_m"].advice
    assert "clean the left lens" in plus["gain"].advice


def test_camera_as_designed_is_good(good):
    bad = [one.name for one in good.readings.values() if one.state == "turn"]
    assert bad == []
    known = ("partition_px", "rows_px", "roll_rad", "scale", "gain", "fields")
    assert {good[name].state for name in known} == {"good"}
    assert good.light.shadow.light < 0.3
    assert next_step(steps_of(good.readings)).name == "focus"


def test_wall_without_texture_is_said():
    found = measure(plain(), RIG, distance_m=0.5)
    assert "no texture" in found.problem
    for name in ("rows_px", "roll_rad", "scale", "focus_m", "sharpness_left"):
        assert found[name].state == "unknown"
        assert "texture" in found[name].advice
    assert found["partition_px"].state == "good"
    assert found["gain"].state == "good"
    assert abs(found["gain"].value) < 0.02


def test_covered_lens_is_said():
    frame = wall().copy()
    frame[:, 480:] = 0.0
    found = measure(frame, RIG)
    assert found["partition_px"].state == "unknown"
    assert "lens covered" in found["partition_px"].advice
    assert found["white_left"].state == "turn"
    assert "light" in found["white_left"].advice
    assert found["white_right"].state == "good"


def test_focus_difference_of_the_design_is_good():
    found = measure(wall(0.6, "calibration"), RIG, distance_m=0.6)["focus_m"]
    assert found.value == pytest.approx(14.64e-6, abs=2 * found.sigma)
    assert found.sigma < 4e-6
    assert found.state != "turn"
    assert "dpt at 0.6" in found.note


def test_turned_baseline_is_told_from_rows_in_a_scene_with_depths():
    turn = np.radians(2.5)
    mounts = (d3s.Mount(roll_rad=turn), d3s.Mount(roll_rad=turn))
    half = (SHAPE[0], SHAPE[1] // 2)
    mask = np.zeros(half, np.float32)
    mask[150:390, 140:340] = 1
    scene = d3s.Layered(
        layers=[
            d3s.Layer(depth_m=0.12, texture="stone", mask=mask),
            d3s.Layer(depth_m=0.6, texture="leaves"),
        ]
    )
    frame = d3s.simulate_raw(scene, pinhole(), layout=LAYOUT, mounts=mounts).image
    found = measure(benchmark.noisy(frame, 2), pinhole())
    assert found["turn_rad"].value == pytest.approx(turn, rel=0.2)
    assert found["turn_rad"].state == "turn"
    assert "counter-clockwise" in found["turn_rad"].advice
    assert found["roll_rad"].state == "good"


def pinhole():
    return d3s.Rig(optics=RIG.optics.replace(aperture_radius_m=0.0))


def test_colour_sensor_is_measured_by_its_luminance():
    scene = d3s.Plane(depth_m=WALL_M, texture=d3s.Texture(pattern="stone", colour=0.5))
    mounts = (d3s.Mount(), d3s.Mount(shift_y_px=10.0))
    frame = d3s.simulate_raw(scene, RIG, layout=LAYOUT, mounts=mounts, bayer="RGGB", noise=0.01)
    found = measure(frame.image, RIG, bayer="RGGB")
    assert found["rows_px"].value == pytest.approx(10, abs=0.3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"raw": np.zeros((40, 40))}, "at least 64 rows"),
        ({"raw": np.zeros((9, 9, 3))}, "must be"),
        ({"rig": "rig.toml"}, "must be a Rig"),
        ({"distance_m": -1.0}, "in metres"),
        ({"bayer": "RGBG"}, "RGGB"),
    ],
)
def test_wrong_input_is_named(values, words):
    given = {"raw": wall(), "rig": RIG, **values}
    with pytest.raises(InputError, match=words):
        measure(given.pop("raw"), given.pop("rig"), **given)
