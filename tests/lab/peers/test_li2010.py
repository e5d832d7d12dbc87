"""Dual-focus stereo: blur equalised at each depth, costs aggregated for smoothness."""

import numpy as np
import pytest

import d3s
from d3s.lab.peers.li2010 import aggregate_costs

RIG = d3s.Rig.paper_prototype()


def aggregate_by_definition(costs, small, large):
    """Semi-global matching as defined: loops over paths, pixels and disparities."""
    rows, cols, depths = costs.shape
    total = np.zeros(costs.shape, dtype=int)
    for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        path = np.zeros(costs.shape, dtype=int)
        for r in range(rows)[:: down or 1]:
            for c in range(cols)[:: right or 1]:
                before = (r - down, c - right)
                inside = 0 <= before[0] < rows and 0 <= before[1] < cols
                for d in range(depths):
                    path[r, c, d] = costs[r, c, d]
                    if inside:
                        last = path[before]
                        ways = [last[d], last.min() + large]
                        ways += [last[e] + small for e in (d - 1, d + 1) if 0 <= e < depths]
                        path[r, c, d] += min(ways) - last.min()
        total += path
    return total


@pytest.mark.parametrize(("small", "large"), [(3, 40)])
def test_aggregated_costs_follow_the_definition(small, large):
    costs = np.random.default_rng(0).integers(0, 100, (5, 6, 7)).astype(np.uint16)
    assert np.array_equal(
        aggregate_costs(costs, small, large), aggregate_by_definition(costs, small, large)
    )


@pytest.mark.parametrize("equalise", ["both", "sharper"])
def test_views_of_very_different_focus(equalise):
    """Six times the prototype's difference in power, where block matching loses half the pixels."""
    optics = RIG.optics
    rig = RIG.replace(
        optics=optics.replace(optical_power_right_dpt=optics.optical_power_left_dpt - 0.6)
    )
    scene = d3s.Plane(depth_m=0.7, texture="stone")
    pair = d3s.simulate(scene, rig, noise=0.005, shape=(90, 190))
    result = d3s.estimate(
        pair.left, pair.right, rig, method="li2010", options={"equalise": equalise}
    )
    seen = result.depth_m[25:-25, 60:-25]
    assert np.isfinite(seen).mean() > 0.95
    assert np.nanmedian(np.abs(seen - 0.7)) < 0.003
