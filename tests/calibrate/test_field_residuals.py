"""Residuals over the field: means of frames and ninths, with cells that are unknown."""

import warnings

import numpy as np
import pytest

from d3s.calibrate.validation import FieldResiduals, mean_of_known


def residuals(values, **changes) -> FieldResiduals:
    """Residuals (frames, rows, cols) on a grid over the whole field."""
    values = np.asarray(values, dtype=np.float64)
    frames, rows, cols = values.shape
    y, x = np.meshgrid(np.linspace(-0.5, 0.5, rows), np.linspace(-1, 1, cols), indexing="ij")
    found = FieldResiduals(
        depths_m=np.linspace(0.3, 1.9, frames),
        x=x,
        y=y,
        residual_px=values,
        sigma_px=np.full(values.shape, 0.01),
        rows_px=np.full(values.shape, -0.1),
        light_ratio=np.full((rows, cols), 1.02),
    )
    return found._replace(**changes)


def test_ninths_are_thirds_of_rows_and_columns():
    cells = np.arange(1.0, 10.0).reshape(3, 3)
    found = residuals([np.kron(cells, np.ones((2, 4))), np.zeros((6, 12))])
    assert np.array_equal(found.ninths_px[0], cells)
    assert found.largest_ninth_px.tolist() == [9.0, 0.0]
    assert np.allclose(found.ninths_rms_px, cells / np.sqrt(2))  # the second frame has no error


def test_means_of_frames():
    found = residuals([np.full((3, 3), -0.03), np.tile([0.04, 0.0, -0.04], (3, 1))])
    assert np.allclose(found.frame_mean_px, [-0.03, 0.0])
    assert np.allclose(found.frame_spread_px, [0.0, 0.04 * np.sqrt(2 / 3)])
    assert np.allclose(found.frame_rms_px, [0.03, 0.04 * np.sqrt(2 / 3)])
    assert found.rms_px == pytest.approx(np.sqrt((0.03**2 + 0.04**2 * 2 / 3) / 2))
    assert found.rows_rms_px == pytest.approx(0.1)
    assert found.light_rms == pytest.approx(0.02)


def test_unknown_cells_do_not_count():
    values = np.full((2, 6, 6), 0.1)
    values[0, :, :3] = np.nan  # the right view does not show the left side of a near board
    values[1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = residuals(values)
        assert found.rms_px == pytest.approx(0.1)
        assert np.allclose(found.frame_mean_px, [0.1, np.nan], equal_nan=True)
        assert np.isnan(found.ninths_px[0, :, 0]).all()
        assert np.allclose(found.ninths_px[0, :, 1:], 0.1)
        assert np.allclose(found.largest_ninth_px, [0.1, np.nan], equal_nan=True)


def test_a_single_cell_is_no_mean_of_a_ninth():
    values = np.zeros((1, 9, 9))
    values[0, :3, :3] = np.nan
    values[0, 0, 0] = 5.0
    found = residuals(values)
    assert np.isnan(found.ninths_px[0, 0, 0])
    assert found.largest_ninth_px[0] == 0


def test_grid_smaller_than_three_has_ninths_without_a_mean():
    found = residuals(np.ones((1, 2, 2)))
    assert np.isnan(found.ninths_px[0, 2]).all()
    assert found.largest_ninth_px[0] == 1


def test_mean_of_nothing_is_nan():
    assert np.isnan(mean_of_known(np.array([])))
    assert np.isnan(mean_of_known(np.array([np.nan])))
