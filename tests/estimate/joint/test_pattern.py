"""Structure that is locked to the frame is found, counts as no texture, and nothing else is."""

import cv2
import numpy as np
import pytest

import d3s
from d3s.estimate.diagnosis import Cause
from d3s.estimate.joint.pattern import find_pattern

SHAPE = (160, 300)
PAIR = d3s.simulate(
    d3s.Plane(depth_m=1.0, texture="stone"),
    d3s.Rig.paper_prototype(),
    noise=0.01,
    shape=SHAPE,
)


def _jpeg(view, quality):
    _, packed = cv2.imencode(".jpg", np.uint8(255 * view), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.float32(cv2.imdecode(packed, cv2.IMREAD_GRAYSCALE) / 255)


@pytest.mark.filterwarnings("ignore::d3s.DepthWarning")
@pytest.mark.parametrize("quality", [15, 50, 85])
def test_a_shaded_wall_through_jpeg_has_no_depth(quality):
    y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in SHAPE), indexing="ij")
    wall = _jpeg(0.45 + 0.15 * x + 0.1 * y, quality)
    found = d3s.estimate(wall, wall.copy(), d3s.Rig.paper_prototype())
    assert found.density < 0.01


@pytest.mark.filterwarnings("ignore::d3s.DepthWarning")
def test_texture_through_jpeg_keeps_its_depth_with_a_warning():
    found = d3s.estimate(_jpeg(PAIR.left, 60), _jpeg(PAIR.right, 60), d3s.Rig.paper_prototype())
    assert any(words.startswith(Cause.BLOCKS) for words in found.warnings)
    assert found.density > 0.7
    error = np.abs(found.depth_m - 1)[found.valid]
    assert np.mean(error < 3 * found.sigma_m[found.valid]) > 0.95


def test_stuck_columns_are_found_where_they_are():
    views = tuple(np.array(view, dtype=np.float32) for view in (PAIR.left, PAIR.right))
    assert find_pattern(views, 4) is None
    views[1][:, [40, 201]] = 0.9
    pattern = find_pattern(views, 4)
    assert np.flatnonzero(pattern.stuck[1]).tolist() == [40, 201]
    assert not pattern.stuck[0].any()


def test_stripes_in_both_views_stand_still_but_not_where_scenes_may():
    stripes = 0.03 * np.random.default_rng(0).standard_normal(SHAPE[1]).astype(np.float32)
    views = PAIR.left + stripes, PAIR.right + stripes
    assert find_pattern(views, 4).has_stripes
    assert find_pattern(views, 0) is None
