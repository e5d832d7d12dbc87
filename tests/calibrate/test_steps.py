"""Sigma of a calibrated rig, what is left over the field, and the test with half of the frames."""

from types import SimpleNamespace

import numpy as np
import pytest

import d3s
from d3s.calibrate import steps
from d3s.calibrate.alignment import Setup, align_matches, lens_maps_of
from d3s.calibrate.coma import Coma
from d3s.calibrate.disparity_map import CellDisparity
from d3s.calibrate.steps import field_residuals, with_sigma
from d3s.rig import LensMaps
from d3s.rig.calibration import LEAST_SIGMA_PX
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


def lenses_of(map_rms_px: float, errors_px: float = 0.0) -> SimpleNamespace:
    """Results of the lens steps, with an error of the disparity by the distances."""
    geometry = SimpleNamespace(
        disparity_errors_px=np.array([[0.0, errors_px, 0.0]]), tilt_sigma_rad=(0.0, 0.0)
    )
    alignment = SimpleNamespace(
        geometry=geometry,
        depths_m=[0.3, 0.9, 1.8],
        bend_sigma_per_m=(0.0, 0.0, 0.0),
    )
    return SimpleNamespace(
        rig=RIG,
        alignment=alignment,
        coma=Coma(),
        disparity_map=SimpleNamespace(after_rms_px=map_rms_px),
    )


def sigmas_of(cells: CellDisparity | None, map_rms_px: float) -> list[float]:
    """Sigma on the axis and at the field radius."""
    lenses = lens_maps_of(with_sigma(lenses_of(map_rms_px), cells))
    return [lenses.disparity_sigma_px, lenses.edge_sigma_px]


def test_depths_are_as_uncertain_as_the_distances():
    lenses = lens_maps_of(with_sigma(lenses_of(0.01, 0.04), None))
    variance = lenses.disparity_variance(RIG.optics)
    assert variance.at(0.0, 0.0, 2.0) == pytest.approx(0.02**2 + 0.08**2)


def test_sigma_without_a_test_is_twice_what_the_map_left():
    assert sigmas_of(None, 0.02) == pytest.approx([0.04, 0.0])
    assert sigmas_of(None, 0.0) == [LEAST_SIGMA_PX, 0.0]


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


# Test with half of the frames ---------------------------------------------------------------------


def test_frames_that_the_half_left_out_are_not_compared():
    depths_m = np.linspace(0.3, 1.5, 10)
    training = SimpleNamespace(
        depths_m=(1.002 * depths_m)[[0, 4, 6, 8]].tolist(), frames=[0, 2, 3, 4]
    )
    aligned = SimpleNamespace(geometry=SimpleNamespace(depths_m=depths_m))
    found = steps._on_scale_of(training, [0, 2, 4, 6, 8], aligned, depths_m[1::2].tolist())
    assert found == pytest.approx(1.002 * depths_m[1::2], rel=1e-6)
