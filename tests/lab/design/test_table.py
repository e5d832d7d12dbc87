"""Table of errors against the fit that it stands for."""

import numpy as np
import pytest

from d3s.estimate.joint.plan import make_plan
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.design.error_model import (
    Axes,
    ErrorTable,
    build_table,
    defocus_slope_px,
    natural_table,
)
from d3s.lab.design.wall import Wall
from d3s.lab.design.window_fit import window_errors
from d3s.optics.psf import optical_cutoff

CAMERA = Camera.paper_prototype()
OPTICS = CAMERA.optics
PLAN = make_plan(OPTICS, JointOptions(), (384, 384))


def _radii(depth):
    return OPTICS.blur_radius_px(depth, 0), OPTICS.blur_radius_px(depth, 1)


@pytest.mark.parametrize("depth", [0.3, 0.5, 0.83, 1.4])
def test_table_is_the_fit_within_two_per_cent(depth):
    fit = window_errors(Wall().picture(OPTICS, depth, 384), depth, PLAN).means
    cutoff = optical_cutoff(OPTICS.lens(0), 550e-9)
    told = natural_table().at(_radii(depth), cutoff, defocus_slope_px(OPTICS))
    assert float(told.total_px(0.01)) == pytest.approx(float(fit.total_px(0.01)), rel=0.02)
    assert int(told.scale) == fit.scale


def test_table_survives_its_file():
    axes = {1: Axes((0.0, 1.0), (0.0, 0.5), (0.5, 1.0))}
    calls = []
    table = build_table(Wall(), axes, side_px=160, progress=lambda *at: calls.append(at))
    assert calls[-1] == (8, 8)
    again = ErrorTable.of_json(table.as_json())
    np.testing.assert_allclose(again.values[1], table.values[1], rtol=1e-4, atol=1e-9)
    assert again.axes == axes
