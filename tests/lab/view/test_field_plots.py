"""Figures over the field: which frames, which colours, and cells that are unknown."""

import numpy as np
import pytest

from d3s.calibrate.validation import FieldResiduals
from d3s.lab.view import calibration_plots
from d3s.rig.lens_maps import LensMaps


def residuals(frames: int = 7, rows: int = 6, cols: int = 12) -> FieldResiduals:
    """Residuals that grow with the frame, unknown at the left of the nearest one."""
    y, x = np.meshgrid(np.linspace(-0.4, 0.4, rows), np.linspace(-0.9, 0.9, cols), indexing="ij")
    number = np.arange(frames).reshape(-1, 1, 1)
    values = np.broadcast_to(0.1 * number, (frames, rows, cols)).copy()
    values[0, :, : cols // 3] = np.nan
    depths_m = np.linspace(0.3, 1.9, frames) if frames > 1 else np.array([0.3])
    sigma = np.full(values.shape, 0.01)
    return FieldResiduals(depths_m, x, y, values, sigma, values / 2, 1 + 0.02 * x)


def images(figure):
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


@pytest.mark.parametrize("shape", [(1, 6, 12), (2, 1, 1), (3, 2, 5)])
def test_few_frames_and_cells(shape):
    found = residuals(*shape)
    for plot in (
        calibration_plots.plot_residual_maps,
        calibration_plots.plot_rows_maps,
        calibration_plots.plot_light_left,
    ):
        plot(found).canvas.draw()


def test_maps_of_lenses():
    maps = LensMaps(
        field_radius_px=900.0,
        distortion_right=(-0.002, 0.0, 0.0, 0.0),
        illumination_left=(1.0, 0.0, 0.0, -0.1, 0.0, 0.0),
        focus_left_dpt=(0.0, 0.0, 1.0, 2.0),
    )
    half_size = (0.5, 1.0)
    left, right = images(calibration_plots.plot_light(maps, half_size))
    assert left[16, [0, 32, 64]].tolist() == pytest.approx([90, 100, 90])
    assert np.all(right == 100)
    left, right = images(calibration_plots.plot_distortion(maps, half_size))
    assert left.max() == 0
    assert right[16, 0] == pytest.approx(1.8)  # 0.2 % of 900 px
    rows, cols, *_ = images(calibration_plots.plot_focus(maps, half_size))
    assert (rows[16, 64], cols[16, 64]) == pytest.approx((2, 1))  # tangential, sagittal
    assert (rows[0, 32], cols[0, 32]) == pytest.approx((0.25, 0.5))
