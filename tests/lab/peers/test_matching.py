"""Grid of disparities, running minimum of costs, subpixel parabola and block matching."""

import numpy as np
import pytest

import d3s
from d3s.estimate import Options
from d3s.lab.evaluate.cameras import tuned_rig
from d3s.lab.peers.common import MethodCall
from d3s.lab.peers.matching import (
    DisparityGrid,
    Parabola,
)
from d3s.rig import LensMaps

OPTICS = d3s.Rig.paper_prototype().optics  # a disparity of 23.232 px at 1 m


def test_disparity_grid_by_hand():
    grid = DisparityGrid.covering(OPTICS, (1.0, 2.0), 0.5, 200)
    # From 11.616 to 23.232 px plus a margin of 1 px, in whole multiples of the step.
    assert grid.disparity_px[[0, -1]].tolist() == [11.0, 24.0]
    assert np.diff(grid.disparity_px).tolist() == [0.5] * 26


def test_disparity_grid_stays_in_the_frame_and_before_infinity():
    assert DisparityGrid.covering(OPTICS, (0.25, 2.5), 1.0, 20).disparity_px[-1] == 19.0
    assert DisparityGrid.covering(OPTICS, (0.25, 2.5), 1.0, 10) is None
    far = DisparityGrid.covering(OPTICS, (10.0, 1000.0), 0.01, 200)
    assert np.isfinite(OPTICS.depth_m(far.disparity_px)).all()


@pytest.mark.parametrize("position", [-0.4, 0.0, 0.3])
def test_parabola_is_exact(position):
    costs = [0.7 + 5.0 * (step - position) ** 2 for step in (-1, 0, 1)]
    parabola = Parabola.through(*costs)
    assert parabola.offset == pytest.approx(position)
    assert parabola.least == pytest.approx(0.7)
    assert parabola.curvature == pytest.approx(5.0)
    # sqrt(0.7 / (100 * 5)) steps of half a pixel.
    assert parabola.sigma_px(0.5, 100) == pytest.approx(0.5 * 0.037417, rel=1e-4)


def test_predicted_deviation_is_the_sampled_one():
    """Least-squares shift of many windows with white noise and a texture of known gradient."""
    rng = np.random.default_rng(1)
    slope, noise, samples, repeats = 0.3, 0.05, 400, 2000
    gradient = rng.normal(0, slope, samples)
    errors, predicted = [], []
    for _ in range(repeats):
        difference = rng.normal(0, noise, samples)
        costs = [np.mean((difference - gradient * shift) ** 2) for shift in (-1, 0, 1)]
        parabola = Parabola.through(*costs)
        errors.append(float(parabola.offset))
        predicted.append(float(parabola.sigma_px(1.0, samples)))
    # The standard deviation of 2000 draws is known to 1.6 %.
    assert np.std(errors) == pytest.approx(np.mean(predicted), rel=0.06)


def test_disparity_that_lenses_add_is_subtracted():
    lenses = LensMaps(field_radius_px=100.0, disparity_px=((0.5,), (0.1,)))
    plain = tuned_rig()
    rig = plain.replace(calibration=plain.calibration.replace(lenses=lenses))
    views = (np.zeros((3, 5), dtype=np.float32),) * 2
    disparity_px = np.full((3, 5), 23.832)  # 23.232 px at 1 m, and 0.5 + 0.1 / m
    results = [
        MethodCall("bm", views, one, Options()).finish_disparity(
            np.zeros((3, 5), dtype=np.uint16), disparity_px, 0.1, np.ones((3, 5))
        )
        for one in (rig, plain)
    ]
    # The vergence is that of the measured disparity: 1.026 / m instead of 1.
    assert results[0].depth_m == pytest.approx(np.full((3, 5), 1.0), abs=2e-4)
    assert results[1].depth_m == pytest.approx(np.full((3, 5), 23.232 / 23.832), abs=1e-6)


@pytest.mark.parametrize("method", ["li2010", "takeda2013"])
def test_whole_labels_are_whole_pixels(method):
    """At 1.2 m the disparity is 19.36 px: the label is off by 0.36 px, 2.2 cm."""
    rig = d3s.Rig.paper_prototype()
    scene = d3s.Plane(depth_m=1.2, texture="stone")
    pair = d3s.simulate(scene, rig, noise=0.01, shape=(90, 160))
    whole, refined = (
        d3s.estimate(pair.left, pair.right, rig, method=method, options={"labels": labels})
        for labels in ("whole", "subpixel")
    )
    assert whole.density > 0.5
    disparity_px = whole.disparity_px[whole.valid]
    np.testing.assert_allclose(disparity_px, np.rint(disparity_px), atol=1e-4)
    errors_m = [np.nanmedian(np.abs(one.depth_m - 1.2)) for one in (whole, refined)]
    assert errors_m[1] < 0.003 < 0.02 < errors_m[0] < 0.024
    # The rounding is in sigma: a pixel over the root of 12.
    assert np.nanmin(whole.sigma_px) > 0.288 > np.nanmedian(refined.sigma_px)
