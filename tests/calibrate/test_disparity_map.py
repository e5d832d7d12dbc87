"""Disparity that lenses add: maps of made-up cells are found again, and sigma is what is left."""

from types import SimpleNamespace

import numpy as np
import pytest

import d3s
from d3s.calibrate.coma import Coma
from d3s.calibrate.disparity_map import (
    CellDisparity,
    board_errors_px,
    fit_disparity_map,
    measure_cells,
    remaining_sigma,
    texture_errors_px,
)
from d3s.calibrate.distortion_fit import Board
from d3s.estimate.joint.correction import SizeCorrection
from d3s.estimate.lens_field import lens_field
from d3s.rig import LensMaps
from d3s.rig.variance import DisparityVariance
from lens_pairs import lens_rig

RADIUS_PX = 902.0
DEPTHS_M = np.geomspace(0.25, 1.9, 16)
CURVED = {"focus_left_dpt": (0.0, 0.0, 1.4, 3.0), "focus_right_dpt": (0.0, 0.0, 1.4, 3.0)}
# 1, x, y, x², xy, y² of each power of u.
MAPS = ((0.05, 0.02, -0.01, 0.1, 0.0, 0.03), (0.01, 0.0, 0.02, -0.03, 0.01, 0.0), (0.004,))


def cells_of(residual_px=0.0, sigma_px=0.02, depths_m=DEPTHS_M) -> CellDisparity:
    """Cells of flat boards over a whole view."""
    x, y = np.meshgrid(np.linspace(-1, 1, 24), np.linspace(-0.5, 0.5, 12))
    vergence = np.broadcast_to(1 / depths_m[:, np.newaxis, np.newaxis], (len(depths_m), *x.shape))
    residual = np.zeros(vergence.shape) + residual_px
    sigma = np.full(vergence.shape, sigma_px)
    return CellDisparity(depths_m, x, y, vergence, residual, sigma, np.ones(vergence.shape))


def rig_of(**values) -> d3s.Rig:
    return lens_rig(LensMaps(field_radius_px=RADIUS_PX, **values))


def remaining(rig, cells, scale=1) -> np.ndarray:
    return rig.calibration.lenses.remaining_disparity_px(
        cells.x,
        cells.y,
        cells.vergence_dpt,
        rig.optics,
        SizeCorrection.of(rig.calibration).maps_px(scale),
    )


def test_powers_of_the_vergence_are_found():
    rig, cells = rig_of(), cells_of()
    truth = remaining(rig_of(disparity_px=MAPS), cells)
    found = fit_disparity_map(cells._replace(residual_px=truth), rig)
    assert found.before_rms_px == pytest.approx(np.sqrt(np.mean(truth**2)))
    assert found.before_rms_px > 0.1
    assert found.after_rms_px < 0.003
    left = remaining(found.applied_to(rig), cells) - truth
    assert np.abs(left).max() < 0.02
    # The degree in x and y falls with the power of u.
    assert [len(one) for one in found.maps_px] == [15, 15, 15, 6]


def test_sharp_detail_has_its_own_disparity():
    rig, cells = rig_of(**CURVED), cells_of()
    truth = remaining(rig_of(**CURVED, sharp_disparity_px=(0.08, 0.05, 0.0)), cells)
    found = fit_disparity_map(cells._replace(residual_px=truth), rig)
    assert found.after_rms_px < 0.15 * found.before_rms_px
    assert found.sharp_px[:2] == pytest.approx((0.08, 0.05), abs=0.03)


@pytest.mark.parametrize(("scale", "name"), [(2, "half_size_px"), (4, "quarter_size_px")])
def test_each_size_of_the_fit_has_its_own_disparity(scale, name):
    rig, cells = rig_of(**CURVED), cells_of()
    x, y = (np.broadcast_to(one, cells.vergence_dpt.shape) for one in (cells.x, cells.y))
    is_here = lens_field(rig, (1, 1)).fitting_scales(x, y, cells.vergence_dpt) == scale
    assert 0.05 < is_here.mean() < 0.95
    truth = np.where(is_here, 0.05 - 0.03 * x + 0.01 / cells.vergence_dpt, 0.0)
    found = fit_disparity_map(cells._replace(residual_px=truth), rig)
    assert found.after_rms_px < 0.2 * found.before_rms_px
    correction = SizeCorrection.of(found.applied_to(rig).calibration)
    assert getattr(found, name) == correction.maps_px(scale)
    left = remaining(found.applied_to(rig), cells, scale)[is_here] - truth[is_here]
    assert np.sqrt(np.mean(left**2)) < 0.01


def test_sigma_is_what_noise_does_not_explain():
    rng = np.random.default_rng(1)
    cells = cells_of(sigma_px=0.03)
    # The mean of three windows of the joint method.
    noise = rng.normal(0, 0.03 / np.sqrt(3), cells.residual_px.shape)
    assert remaining_sigma(cells._replace(residual_px=noise)).axis_px < 0.007
    square, vergence = cells.x**2 + cells.y**2, cells.vergence_dpt
    spread = np.sqrt(0.04**2 + (0.06 * square) ** 2 + (0.02 * vergence) ** 2)
    found = remaining_sigma(
        cells._replace(residual_px=noise + spread * rng.normal(0, 1, noise.shape))
    )
    # Other textures have a quarter more.
    assert found.axis_px == pytest.approx(1.25 * 0.04, rel=0.2)
    assert found.edge_px == pytest.approx(1.25 * 0.06, rel=0.2)
    assert found.per_dpt_px == pytest.approx(0.02, rel=0.2)


def test_cells_of_a_simulated_board():
    rig = rig_of()
    pair = d3s.simulate(
        d3s.Plane(depth_m=0.6, texture="calibration"), rig, noise=0.01, seed=2, shape=(120, 480)
    )
    views = [(pair.left, pair.right)]
    found = measure_cells(views, [0.6], rig, Board(), 240.0)
    assert found.residual_px.shape == (1, 12, 24)
    np.testing.assert_allclose(found.vergence_dpt, 1 / 0.6)
    np.testing.assert_allclose(found.x[0, [0, -1]], [-230 / 240, 230 / 240], rtol=1e-6)
    # The first columns have no partner in the right view.
    known = np.isfinite(found.residual_px[0])
    assert not known[:, 0].any()
    assert known[:, 4:].mean() > 0.9
    assert abs(np.nanmedian(found.residual_px)) < 0.02
    assert 0.003 < np.nanmedian(found.sigma_px) < 0.1
    assert np.nanmedian(found.light_ratio) == pytest.approx(1, abs=0.01)
    # The same views half a pixel apart: half a pixel of disparity in every cell.
    shifted = rig.replace(optics=rig.optics.replace(disparity_offset_px=-0.5))
    moved = measure_cells(views, [0.6], shifted, Board(), 240.0)
    assert np.nanmedian(moved.residual_px) == pytest.approx(0.5, abs=0.02)


def test_maps_that_explain_only_noise_are_left_out():
    rig, cells = rig_of(**CURVED), cells_of()
    noise = np.random.default_rng(3).normal(0, 0.02, cells.residual_px.shape)
    found = fit_disparity_map(cells._replace(residual_px=noise), rig)
    assert found.sharp_px == (0.0,)
    assert found.half_size_px == found.quarter_size_px == ()


# Errors that frames of one board cannot show ------------------------------------------------------


PAPER = d3s.Rig.paper_prototype().optics
FIELD_PX = 900.0
LENSES = LensMaps(field_radius_px=FIELD_PX)
RANGE_DPT = (0.5, 4.0)


def sigma_px(errors, x, y, u):
    return np.sqrt(DisparityVariance.of_errors(errors, FIELD_PX).at(x, y, u))


@pytest.mark.parametrize("depth_m", [0.3, 1.5])
def test_errors_of_the_board_are_those_of_its_shape(depth_m):
    tilts, bends = (2e-3, 1e-3), (0.02, 0.03, 0.01)
    found = board_errors_px(SimpleNamespace(tilt_sigma_rad=tilts), bends, PAPER, FIELD_PX)
    shape = (1401, 1601)
    cols, rows = 1500.0, 200.0
    x, y = (cols - 800) / FIELD_PX, (rows - 700) / FIELD_PX
    boards = [
        *(Board(slopes=tuple(np.eye(2)[axis] * tilts[axis])) for axis in (0, 1)),
        *(Board(bend_per_m=tuple(np.eye(3)[kind] * bends[kind])) for kind in range(3)),
    ]
    for board, error in zip(boards, found, strict=True):
        at = board.depth_m(cols, rows, depth_m, shape, PAPER)
        moved = abs(float(PAPER.disparity_px(at) - PAPER.disparity_px(depth_m)))
        assert sigma_px([error], x, y, 1 / depth_m) == pytest.approx(moved, rel=0.02)


def test_unknown_coma_shifts_other_textures_at_the_sides():
    coma = Coma(sigma_px=0.6, board_slope=0.3)
    errors = texture_errors_px(coma, LENSES, PAPER, RANGE_DPT)
    sides, middle = (sigma_px(errors, x, 0.0, 0.6) for x in (-0.8, 0.05))
    assert sides > 3 * middle
    assert 0.005 < sides < 0.3
    # In proportion to what coma may be.
    twice = texture_errors_px(coma._replace(sigma_px=1.2), LENSES, PAPER, RANGE_DPT)
    assert sigma_px(twice, -0.8, 0.0, 0.6) == pytest.approx(2 * sides)
