"""Depth from defocus alone, of a camera without baseline."""

import numpy as np
import pytest

import d3s
from d3s.errors import InputError

OPTICS = d3s.Rig.paper_prototype().optics
RIG = d3s.Rig(
    optics=OPTICS.replace(
        baseline_m=0.0, optical_power_left_dpt=84.08, optical_power_right_dpt=83.58
    )
)


@pytest.mark.parametrize(("depth_m", "most_m"), [(0.5, 0.01), (0.8, 0.003), (1.2, 0.01)])
def test_plane_and_its_sigma(depth_m, most_m):
    scene = d3s.Plane(depth_m=depth_m, texture="stone")
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=(140, 220), seed=2)
    found = d3s.estimate(pair.left, pair.right, RIG, method="defocus")
    error = np.abs(found.depth_m - depth_m)[found.valid]
    assert found.density > 0.2
    assert error.mean() < most_m
    assert np.mean(error <= 3 * found.sigma_m[found.valid]) > 0.95
    assert np.median(found.sigma_m[found.valid]) < 10 * error.mean()


def test_each_method_names_the_camera_that_it_needs():
    view = np.zeros((90, 120))
    with pytest.raises(InputError, match=r"method='joint'.*baseline_m=0.*method='defocus'"):
        d3s.estimate(view, view, RIG)
    with pytest.raises(InputError, match=r"method='defocus'.*baseline_m=0.00384.*method='joint'"):
        d3s.estimate(view, view, d3s.Rig.paper_prototype(), method="defocus")
