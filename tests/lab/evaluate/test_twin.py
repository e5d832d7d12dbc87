"""The twin against the path tracer; skipped where Mitsuba is not installed."""

import numpy as np
import pytest

from d3s.lab.evaluate.twin import SCENES, _regions, _square, compare_twin
from d3s.rig import Rig


def test_regions_follow_the_square_in_each_view():
    square = _square((60, 120))
    regions = _regions(square, (1.4, 0.6), Rig.paper_prototype().optics)
    for name, (left, right) in regions.items():
        assert left.shape == right.shape == square.shape, name
    left, right = regions["near edges"]
    shift = 39  # px of disparity at 0.6 m
    np.testing.assert_array_equal(left[:, 50:100], right[:, 50 - shift : 100 - shift])
    assert not (left & regions["interior"][0]).any()
    assert list(_regions(square, (1.0,), Rig.paper_prototype().optics)) == ["all"]


@pytest.mark.slow
def test_the_twin_agrees_with_the_path_tracer():
    pytest.importorskip("mitsuba")
    seen = []
    rows = compare_twin(shape=(64, 128), samples=64, progress=lambda *step: seen.append(step))
    assert seen == [(number + 1, SCENES) for number in range(SCENES)]
    assert [row.region for row in rows] == ["all"] * 4 + ["near edges", "interior"]
    for row in rows:
        assert row.pixels > 500
        # Detail at the limit of the pixels, in focus, differs most: texels are interpolated.
        assert row.rms < 0.012
        assert abs(row.bias) < 0.005
        assert row.noise < 0.03
