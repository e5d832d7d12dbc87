"""Rows by which the right view lies lower, measured in the pair itself."""

import numpy as np
import pytest
from scipy import ndimage

import d3s
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.joint.rows import measure_rows
from d3s.estimate.lens_field import LensField
from d3s.rig import LensMaps
from lens_pairs import lens_rig

RIG = d3s.Rig.paper_prototype()
LENSES = LensMaps(field_radius_px=300.0)
SHAPE = (360, 560)


@pytest.fixture(scope="module")
def views():
    scene = d3s.Plane(depth_m=1.6, texture="leaves")
    pair = d3s.simulate(scene, RIG, noise=0.005, seed=4, shape=SHAPE)
    return pair.left, pair.right


def _lowered(view: np.ndarray, rows_px) -> np.ndarray:
    row, col = np.indices(view.shape).astype(float)
    return ndimage.map_coordinates(view, [row - rows_px, col], order=3, mode="nearest")


def _measured(left, right, disparity_px, lenses=LENSES):
    field = lenses and LensField(lenses, RIG.optics, left.shape)
    plan = make_plan(RIG.optics, d3s.JointOptions(), left.shape, field)
    smooth = (ndimage.gaussian_filter(view, 1.5) for view in (left, right))
    halves = [0.5 * (view[::2] + view[1::2]) for view in smooth]
    halves = [0.5 * (view[:, ::2] + view[:, 1::2]) for view in halves]
    return measure_rows({2: (halves[0], halves[1])}, disparity_px.astype(np.float32), plan)


def _start(depth_m: float) -> np.ndarray:
    return np.full((SHAPE[0] // 2, SHAPE[1] // 2), float(RIG.optics.disparity_px(depth_m)))


@pytest.mark.parametrize("rows_px", [-0.4, 0.15, 0.6])
def test_a_shift_of_rows_is_found(views, rows_px):
    found = _measured(views[0], _lowered(views[1], rows_px), _start(1.6) + 0.2)
    assert found.shape == _start(1.6).shape
    assert found.dtype == np.float32
    assert found.mean() == pytest.approx(rows_px, abs=0.03)
    np.testing.assert_allclose(found, rows_px, atol=0.1)  # less certain in the corners


def test_rows_that_change_with_the_depth_are_found(views):
    """The right half stands nearer, by the search; its rows are those of its depth."""
    left, right = views
    step = 12
    near = np.arange(SHAPE[1]) > SHAPE[1] // 2
    moved = np.where(near, np.roll(left, step, axis=1), left)  # nearer: farther to the right
    start = _start(1.6) + step * near[::2]
    rows_px = np.where(near, 0.25, -0.1)
    found = _measured(moved, _lowered(right, np.roll(rows_px, -step)), start)
    part = np.s_[20:-20, 40:130], np.s_[20:-20, 160:-20]
    assert np.abs(found[part[0]].mean() + 0.1) < 0.05
    assert np.abs(found[part[1]].mean() - 0.25) < 0.05


def test_views_without_rows_to_correct_are_left_as_they_are(views):
    assert _measured(*views, _start(1.6)) is None


def test_rows_are_not_measured_without_known_lenses_nor_on_few_blocks(views):
    left, right = views[0], _lowered(views[1], 0.4)
    assert _measured(left, right, _start(1.6), lenses=None) is None
    small = np.s_[:120, :200]
    assert _measured(left[small], right[small], _start(1.6)[:60, :100]) is None


@pytest.mark.parametrize("texture", ["leaves", "stone"])
def test_depth_of_views_that_are_shifted_by_rows(texture):
    depth_m = 1.6
    scene = d3s.Plane(depth_m=depth_m, texture=texture)
    pair = d3s.simulate(scene, RIG, noise=0.01, seed=4, shape=SHAPE)
    right = _lowered(pair.right, 0.4).astype(np.float32)
    errors, within = [], []
    for rig in (RIG, lens_rig(LENSES)):
        found = d3s.estimate(pair.left, right, rig, options={"align_views": False})
        error = np.abs(found.depth_m - depth_m)
        valid = np.isfinite(error)
        errors.append(error[valid].mean())
        within.append((error < 3 * found.sigma_m)[valid].mean())
    assert errors[1] < 0.6 * errors[0]
    assert within[1] > 0.97
