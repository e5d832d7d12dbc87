"""Views that are turned or mix are mended, and sigma holds what is left."""

import cv2
import numpy as np
import pytest

import d3s
from d3s.estimate.aligned_views import moved
from d3s.estimate.diagnosis import Cause

SHAPE = (200, 360)
RIG = d3s.Rig.paper_prototype()
PAIR = d3s.simulate(
    d3s.Plane(depth_m=1.0, texture="stone"),
    RIG,
    noise=0.01,
    shape=SHAPE,
)
SIZE = SHAPE[::-1]


def _turned(roll, scale, rows):
    matrix = cv2.getRotationMatrix2D((SIZE[0] / 2 - 0.5, SIZE[1] / 2 - 0.5), roll, scale)
    matrix[1, 2] += rows
    return cv2.warpAffine(PAIR.right, matrix, SIZE, flags=cv2.INTER_CUBIC)


def _within_3(found):
    error = np.abs(found.depth_m - 1)[found.valid]
    return np.mean(error < 3 * found.sigma_m[found.valid])


def test_moved_takes_out_what_opencv_has_put_in():
    back = moved(_turned(0.5, 1.004, 1.0), 1.004, np.radians(-0.5), 0.004)
    inner = (slice(20, -20),) * 2
    assert np.abs(back - PAIR.right)[inner].mean() < 0.01  # noise of 0.01, resampled twice


@pytest.mark.filterwarnings("ignore::d3s.DepthWarning")
@pytest.mark.parametrize("turn", [(0.5, 1.0, 0.0), (0.0, 1.006, 0.0), (-0.3, 0.997, 1.0)])
def test_turned_views_have_depths_within_sigma(turn):
    right = _turned(*turn)
    found = d3s.estimate(PAIR.left, right, RIG)
    assert any(words.startswith(Cause.ROWS) for words in found.warnings)
    assert found.density > 0.6
    assert _within_3(found) > 0.95
    as_they_are = d3s.estimate(PAIR.left, right, RIG, options={"align_views": False})
    assert not _within_3(as_they_are) > 0.8


@pytest.mark.filterwarnings("ignore::d3s.DepthWarning")
def test_crosstalk_is_taken_out():
    left, right = 0.9 * PAIR.left + 0.1 * PAIR.right, 0.9 * PAIR.right + 0.1 * PAIR.left
    found = d3s.estimate(left, right, RIG)
    assert any(words.startswith(Cause.CROSSTALK) for words in found.warnings)
    assert _within_3(found) > 0.97
