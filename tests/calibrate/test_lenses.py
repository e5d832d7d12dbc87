"""Sigma of a calibrated rig, what is left over the field, and progress of all steps."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.alignment import Setup, align_matches, lens_maps_of
from d3s.calibrate.disparity_map import LEAST_SIGMA_PX, CellDisparity
from d3s.calibrate.lenses import field_residuals, with_sigma
from d3s.calibrate.percent import PERCENT, PERCENT_OF_TEST, Percent
from d3s.rig import LensMaps
from lens_pairs import lens_rig

RIG = lens_rig(LensMaps(field_radius_px=900.0))


def cells_of(frames: int, residual_px: float) -> CellDisparity:
    """Cells of boards in a view of 1800 x 900 px."""
    x, y = np.meshgrid((np.arange(24) - 11.5) / 12, (np.arange(12) - 5.5) / 12)
    shape = (frames, *x.shape)
    return CellDisparity(
        depths_m=np.linspace(0.3, 1.5, frames),
        x=x,
        y=y,
        vergence_dpt=np.ones(shape),
        residual_px=np.full(shape, residual_px),
        sigma_px=np.full(shape, 0.01),
        light_ratio=np.full(shape, 1.01),
    )


def test_sigma_is_that_of_the_test():
    tested = lens_maps_of(with_sigma(RIG, cells_of(8, 0.1), 0.01)).disparity_sigma_px
    # Other textures have a quarter more than the 0.1 px of these boards.
    assert tested == pytest.approx(0.125, rel=0.01)


def test_sigma_without_a_test_is_twice_what_the_map_left():
    assert lens_maps_of(with_sigma(RIG, None, 0.02)).disparity_sigma_px == pytest.approx(0.04)
    assert lens_maps_of(with_sigma(RIG, None, 0.0)).disparity_sigma_px == LEAST_SIGMA_PX


def test_rows_are_those_of_the_frames_between(camera):
    matches = camera.matches()
    # The right view is 0.4 px lower in all frames but those that calibrate.
    across = [
        pair._replace(second_px=np.add(pair.second_px, (0.0, 0.4 * (pair.first % 2))))
        for pair in matches.across
    ]
    setup = Setup(d3s.Rig.paper_prototype(), None, "mine", RIG.calibration.provenance)
    aligned = align_matches(matches, camera.distances_m, camera.field_radius_px, setup)
    aligned = aligned._replace(matches=matches._replace(across=tuple(across)))
    found = field_residuals(cells_of(8, 0.03), aligned)
    assert found.rows_px.shape == (8, 12, 24)
    assert np.nanmean(found.rows_px) == pytest.approx(-0.4, abs=0.02)
    assert np.nanstd(found.rows_px) < 0.05
    assert 0.2 < np.isfinite(found.rows_px).mean() < 1
    assert (found.residual_px == 0.03).all()
    np.testing.assert_allclose(found.light_ratio, 1.01)


def test_progress_of_all_steps_is_a_hundred_percent():
    assert sum(PERCENT.values()) + sum(PERCENT_OF_TEST.values()) == pytest.approx(100)
    told: list[tuple[int, int]] = []
    percent = Percent(lambda done, total: told.append((done, total)), PERCENT)
    percent.finish("reading")
    percent.of("matches")(1, 2)
    percent.of("matches")(2, 2)
    test = Percent(
        lambda done, total: told.append((done, total)), PERCENT_OF_TEST, start=sum(PERCENT.values())
    )
    test.finish("consensus")
    assert told == [(8, 100), (22, 100), (35, 100), (100, 100)]
    assert Percent(None, PERCENT).of("matches") is None
    Percent(None, PERCENT).finish("matches")
