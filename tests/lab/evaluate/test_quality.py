"""Figures of depth cameras on planes that can be worked out by hand."""

import math

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.lab.evaluate.quality import central_region, plane_quality, temporal_noise
from d3s.rig import Rig

NAN = np.nan
FOCAL_PX = Rig.paper_prototype().optics.focal_length_px  # 6050
DISPARITY_PX_M = FOCAL_PX * 3.84e-3


def checkered(shape=(20, 30), depth_m=1.0, step_m=0.01):
    """A plane with every other pixel nearer, and the others farther: its spread is known."""
    rows, cols = np.indices(shape)
    return depth_m + np.where((rows + cols) % 2, step_m, -step_m)


def test_fill_rate(depth_map):
    depth_m = np.ones((4, 5))
    depth_m[0, :4] = NAN
    assert plane_quality(depth_map(depth_m)).fill_rate == pytest.approx(16 / 20)
    right = np.zeros((4, 5), dtype=bool)
    right[:, 3:] = True
    assert plane_quality(depth_map(depth_m), region=right).fill_rate == pytest.approx(7 / 8)


def test_spatial_noise_of_a_plane_that_faces_the_camera(depth_map):
    found = plane_quality(depth_map(checkered()), distance_m=1.0)
    assert found.plane_fit_rms_m == pytest.approx(0.01, rel=1e-3)
    assert found.plane_fit_rms == pytest.approx(0.01, rel=1e-3)
    # 1/0.99 - 1 and 1 - 1/1.01, of 23.232 px.
    expected = DISPARITY_PX_M * math.sqrt((0.010101**2 + 0.00990099**2) / 2)
    assert found.subpixel_rms_px == pytest.approx(expected, rel=1e-3)
    assert found.subpixel_rms_px == pytest.approx(0.2324, rel=1e-3)
    # Relative to the distance that is told, not to what was measured.
    assert plane_quality(depth_map(checkered()), distance_m=2.0).plane_fit_rms == pytest.approx(
        0.005, rel=1e-3
    )


def test_accuracy_is_signed_and_a_share_of_the_distance(depth_map):
    far = plane_quality(depth_map(np.full((9, 9), 1.02)), distance_m=1.0)
    near = plane_quality(depth_map(np.full((9, 9), 1.98)), distance_m=2.0)
    assert far.z_accuracy == pytest.approx(0.02, rel=1e-4)
    assert near.z_accuracy == pytest.approx(-0.01, rel=1e-4)
    assert far.plane_fit_rms_m == pytest.approx(0, abs=1e-6)
    assert math.isnan(plane_quality(depth_map(np.ones((9, 9)))).z_accuracy)


def test_a_tilted_wall_is_not_blamed(depth_map):
    """Z = 1 + 0.2 X in space, which a pixel at column x sees at 1 / (1 - 0.2 x / f)."""
    x = np.arange(401) - 200
    depth_m = np.broadcast_to(1 / (1 - 0.2 * x / FOCAL_PX), (101, 401))
    found = plane_quality(depth_map(depth_m), distance_m=1.0)
    assert found.plane_fit_rms_m < 1e-6
    assert found.z_accuracy == pytest.approx(0, abs=1e-6)


def test_one_point_in_two_hundred_at_either_end_is_left_out(depth_map):
    depth_m = np.ones((20, 20))
    depth_m[3, 3], depth_m[9, 9] = 1.5, 0.6  # two of four hundred, one at either end
    depth_m[5, 5], depth_m[15, 7] = 1.5, 0.6
    found = plane_quality(depth_map(depth_m), distance_m=1.0)
    assert found.plane_fit_rms_m < 0.02  # 0.045 with them
    assert found.z_accuracy == pytest.approx(0, abs=0.005)


def test_temporal_noise_by_hand(depth_map):
    # Standard deviations of three frames: 0.01, 0.02 and 0.04; the fourth is once without depth.
    frames = [
        depth_map([[1.00, 2.00, 4.00, 1.0]]),
        depth_map([[1.01, 2.02, 4.04, NAN]]),
        depth_map([[0.99, 1.98, 3.96, 9.0]]),
    ]
    found = temporal_noise(frames)
    assert found.steady == 3
    assert found.temporal_noise_m == pytest.approx(0.02, rel=1e-3)
    assert found.temporal_noise == pytest.approx(0.01, rel=1e-3)
    first = temporal_noise(frames, np.array([[True, False, False, True]]))
    assert (first.steady, first.temporal_noise_m) == (1, pytest.approx(0.01, rel=1e-3))
    nowhere = temporal_noise(frames, np.array([[False, False, False, True]]))
    assert nowhere.steady == 0
    assert math.isnan(nowhere.temporal_noise)


def test_frames_that_cannot_be_compared(depth_map):
    one, other = depth_map(np.ones((3, 3))), depth_map(np.ones((3, 4)))
    for frames in ((one,), (one, other)):
        with pytest.raises(InputError, match="at least two, of one size"):
            temporal_noise(frames)


def test_central_region():
    region = central_region((10, 20), 0.5)
    assert region.sum() == 6 * 10  # 5 rows cannot be in the middle of 10
    assert region[2:8, 5:15].all()
    assert central_region((10, 20), 1.0).all()
    for share in (0, 1.5, NAN):
        with pytest.raises(InputError, match=r"share=.* must be above 0, up to 1"):
            central_region((10, 20), share)
