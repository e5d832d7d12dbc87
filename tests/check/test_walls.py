"""A wall at a known distance re-zeroes the disparity; two find the scale too."""

import pytest

import d3s
from check_frames import raw_of
from d3s.check.mend import mended
from d3s.errors import InputError


@pytest.fixture(scope="module")
def walls():
    texture = d3s.Texture(pattern="stone", seed=4)
    return {z: raw_of(d3s.Plane(depth_m=z, texture=texture), 7) for z in (0.5, 1.0)}


def test_disparity_is_zeroed_again(rig, walls):
    old = mended(rig, {"disparity_px": -0.2})
    report = d3s.check(old, [walls[1.0]], distances_m=[1.0], distance_sigma_m=5e-4)
    assert report["disparity_px"].value == pytest.approx(0.2, abs=0.03)
    assert report.verdict == "drifted"
    anchor = report.mended_rig.calibration.anchor_right_px
    assert anchor == pytest.approx(rig.calibration.anchor_right_px, abs=0.03)


def test_two_distances_tell_the_scale(rig, walls):
    wrong = rig.replace(optics=rig.optics.replace(baseline_m=rig.optics.baseline_m * 1.03))
    report = d3s.check(
        wrong, [walls[0.5], walls[1.0]], distances_m=[0.5, 1.0], distance_sigma_m=2e-4
    )
    assert report["focal_baseline"].value == pytest.approx(-0.03, abs=0.005)
    assert report.mended_rig.optics.baseline_m == pytest.approx(rig.optics.baseline_m, rel=0.005)


def test_disparity_of_a_rig_without_calibration_goes_to_its_offset(rig, walls):
    bare = d3s.Rig.paper_prototype()
    views = [rig.split(walls[1.0])]
    off = bare.replace(optics=bare.optics.replace(disparity_offset_px=-0.3))
    report = d3s.check(off, views, distances_m=[1.0], distance_sigma_m=5e-4)
    assert report.mended_rig.optics.disparity_offset_px == pytest.approx(0.0, abs=0.04)


@pytest.mark.parametrize(
    ("distances", "words"), [([1000.0], "millimetres"), ([1.0, 2.0, 3.0], "one for all")]
)
def test_wrong_distances_are_refused(rig, walls, distances, words):
    with pytest.raises(InputError, match=words):
        d3s.check(rig, list(walls.values()), distances_m=distances)
