"""A camera that has moved is noticed over many frames, with the frame from which on."""

from dataclasses import replace

import numpy as np
import pytest

import d3s
from d3s.estimate.diagnosis import Cause, DriftWatch
from d3s.estimate.diagnosis.light import Value, ViewDifferences

RIG = d3s.Rig.paper_prototype()


def comparison(rng, **values):
    """Comparison with the scatter of good frames."""
    sigmas = {"rows_px": 0.02, "rows_x_px": 0.03, "rows_y_px": 0.03, "gain": 0.003}
    parts = {
        name: Value(values.get(name, 0.0) + sigma * rng.standard_normal(), sigma)
        for name, sigma in sigmas.items()
    }
    nothing = Value(0.0, 0.01)
    return ViewDifferences(**dict.fromkeys(ViewDifferences._fields, nothing) | parts)


@pytest.fixture(scope="module")
def depth_map():
    pair = d3s.simulate(d3s.Plane(depth_m=0.8), RIG, noise=0.01, shape=(100, 200))
    return d3s.estimate(pair.left, pair.right, RIG)


def watched(depth_map, frames, seed=0):
    rng, watch = np.random.default_rng(seed), DriftWatch()
    for number, values in enumerate(frames):
        watch.add(f"frame {number}", replace(depth_map, comparison=comparison(rng, **values)))
    return watch.drift()


def test_good_frames_give_no_alarm(depth_map):
    assert all(watched(depth_map, [{}] * 20, seed) is None for seed in range(30))


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"rows_px": 0.3}, "rows"),
        ({"rows_x_px": 0.5}, "roll"),  # views are twice as wide as high
        ({"rows_y_px": -0.15}, "scale"),
        ({"gain": 0.03}, "gain"),
    ],
)
def test_drift_is_dated(depth_map, values, name):
    found = watched(depth_map, [{}] * 7 + [values] * 8)
    assert found.quantities == (name,)
    assert found.first in ("frame 6", "frame 7", "frame 8")
    assert found.frames == pytest.approx(8, abs=1)
    assert "d3s check" in found.words
    assert found.first in found.words


def test_drift_from_the_first_frame_on(depth_map):
    assert watched(depth_map, [{"rows_px": -0.4}] * 6).first == "frame 0"


def test_one_bad_frame_is_no_drift(depth_map):
    assert watched(depth_map, [{}] * 5 + [{"rows_px": 3.0}] + [{}] * 5) is None
    assert watched(depth_map, [{"rows_px": 1.0}] * 3) is None  # too few


def test_roll_of_one_frame_is_warned_of():
    texture = d3s.Texture(pattern="stone", seed=2)
    mounts = (d3s.Mount(), d3s.Mount(roll_rad=np.radians(0.12)))
    scene = d3s.Plane(depth_m=0.8, texture=texture)
    pair = d3s.simulate(scene, RIG, noise=0.005, shape=(240, 320), mounts=mounts)
    found = d3s.estimate(pair.left, pair.right, RIG)
    (words,) = (one for one in found.warnings if one.startswith(Cause.ROWS))
    assert "moves disparity" in words
    assert "d3s check" in words
