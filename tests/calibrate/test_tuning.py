"""Tuning of the depth equation: least absolute error, cubics, and rejected frames."""

from functools import cache

import numpy as np
import pytest

import d3s
from d3s.calibrate.ratios import Windows
from d3s.calibrate.tuning import CONSENSUS, find_tuning, least_absolute_lines, lens_corrections
from d3s.estimate.joint.correction import SizeCorrection
from d3s.rig import LensMaps
from lens_pairs import lens_rig

RIG = d3s.Rig.paper_prototype()
DEPTHS_M = (0.35, 0.45, 0.55, 0.7, 0.85, 1.0, 1.2, 1.4)


@cache
def boards(texture: str = "calibration", *, aperture_m: float = 1e-3, noise: float = 0.01):
    rig = RIG.replace(optics=RIG.optics.replace(aperture_radius_m=aperture_m))
    pairs = [
        d3s.simulate(
            d3s.Plane(depth_m=z, texture=texture), rig, noise=noise, seed=i, shape=(210, 400)
        )
        for i, z in enumerate(DEPTHS_M)
    ]
    return tuple((pair.left, pair.right) for pair in pairs)


def test_lines_of_least_absolute_error_by_hand():
    # All but one point on 2 ratio + 1: least squares follow it, least absolute errors do not.
    ratio = np.arange(7.0)
    depth = 2.0 * ratio + 1.0
    depth[6] += 50.0
    a, b = least_absolute_lines(np.stack([ratio, 4.0 * ratio]), depth, np.ones(7))
    assert a == pytest.approx([2.0, 0.5], abs=1e-4)
    assert b == pytest.approx([1.0, 1.0], abs=1e-4)
    # Unless its weight exceeds that of all others together.
    a, b = least_absolute_lines(ratio[np.newaxis], depth, np.array([1.0, 1, 1, 1, 1, 1, 50]))
    assert a[0] * 6 + b[0] == pytest.approx(63.0, abs=1e-3)


def test_sharp_views_need_no_tuning():
    # Without defocus, noise, or texture that is fine against the residual disparity, the depth
    # equation is differential stereo: a = -f dX and b = 0.
    found = find_tuning(boards("noise_smooth", aperture_m=0.0, noise=0.0), DEPTHS_M, RIG)
    expected = -RIG.optics.focal_length_px * found.virtual_baselines_m
    np.testing.assert_allclose(found.a_m_px[:4], expected[:4], rtol=0.03)
    np.testing.assert_allclose(found.b_m[:4], 0.0, atol=0.02)
    assert not found.left_out


def test_tuned_equation_and_its_cubics():
    found = find_tuning(boards(), DEPTHS_M, RIG)
    assert not found.left_out
    assert found.warnings == ()
    assert min(found.a_cubic.r2, found.b_cubic.r2) > 0.98
    assert (found.windows >= 10).all()
    # At best 3 cm, which the consensus reduces to a tenth, the share of the virtual baseline.
    assert found.mae_m.min() < 0.04
    middle = len(found.virtual_baselines_m) // 2
    a, b = found.line_at(float(found.virtual_baselines_m[middle]))
    assert a == pytest.approx(found.a_m_px[middle], rel=0.02)
    assert b == pytest.approx(found.b_m[middle], abs=0.01)
    assert (found.a_sd_m_px > 0).all()


def test_wrong_distance_is_named_and_left_out():
    wrong = list(DEPTHS_M)
    wrong[3] = 0.77  # the board stood at 0.70 m
    found = find_tuning(boards(), wrong, RIG)
    assert list(found.left_out) == [3]
    assert "off from what the frames beside it suggest" in found.left_out[3]
    assert np.isnan(found.frame_error_m[3]).all()
    right = find_tuning(boards(), DEPTHS_M, RIG)
    np.testing.assert_allclose(found.a_m_px[5:10], right.a_m_px[5:10], rtol=0.05)


def test_board_without_texture_is_named_and_left_out():
    grey = np.random.default_rng(0).normal(0.5, 0.01, (2, 210, 400)).astype(np.float32)
    views = [*boards()[:5], tuple(grey), *boards()[6:]]
    found = find_tuning(views, DEPTHS_M, RIG)
    assert "texture" in found.left_out[5]
    assert len(found.left_out) == 1


def test_disparity_that_lenses_add_at_windows():
    windows = Windows(np.array([100, 100]), np.array([200, 300]))
    depth_m, shape = np.array([0.5, 0.5]), (201, 401)
    correction = SizeCorrection(half_size_px=((7.0,),), quarter_size_px=((0.3,),))
    added = [
        lens_corrections(windows, depth_m, shape, rig, CONSENSUS)[3]
        for rig in (
            RIG,
            lens_rig(None),
            # 0.1 x + 0.02 u, and 0.3 where blur leaves coarse detail only.
            *(
                correction.applied_to(
                    lens_rig(
                        LensMaps(
                            field_radius_px=200.0,
                            extra_blur_left_px2=(blur_px2,),
                            extra_blur_right_px2=(blur_px2,),
                            disparity_px=((0.0, 0.1, 0.0), (0.02,)),
                        )
                    )
                )
                for blur_px2 in (30.0, 0.1)
            ),
        )
    ]
    np.testing.assert_array_equal(added[0], 0)
    np.testing.assert_array_equal(added[1], 0)
    np.testing.assert_allclose(added[2], [0.34, 0.39])
    np.testing.assert_allclose(added[3], [7.04, 7.09])
