"""Test with half of the frames: what it counts, and what is counted elsewhere."""

from types import SimpleNamespace

import numpy as np
import pytest

from d3s.calibrate import steps


def test_errors_of_all_distances_of_a_half_are_not_left_over_the_field():
    depths_m = np.linspace(0.25, 1.9, 12)
    # The half calibration finds depths a little longer, the more so far away.
    wrong = 1 + 1e-3 + 5e-4 * depths_m
    numbers = list(range(0, 12, 2))
    training = SimpleNamespace(depths_m=(depths_m * wrong)[::2].tolist(), frames=list(range(6)))
    aligned = SimpleNamespace(geometry=SimpleNamespace(depths_m=depths_m))
    tested = depths_m[1::2]
    found = steps._on_scale_of(training, numbers, aligned, tested.tolist())
    assert found == pytest.approx(tested * wrong[1::2], rel=2e-5)
    assert np.abs(tested - found).max() > 2e-3


def test_frames_that_the_half_left_out_are_not_compared():
    depths_m = np.linspace(0.3, 1.5, 10)
    training = SimpleNamespace(
        depths_m=(1.002 * depths_m)[[0, 4, 6, 8]].tolist(), frames=[0, 2, 3, 4]
    )
    aligned = SimpleNamespace(geometry=SimpleNamespace(depths_m=depths_m))
    found = steps._on_scale_of(training, [0, 2, 4, 6, 8], aligned, depths_m[1::2].tolist())
    assert found == pytest.approx(1.002 * depths_m[1::2], rel=1e-6)


def test_frames_to_test_with_are_spread_evenly():
    assert steps._evenly(12, 16) == list(range(12))
    some = steps._evenly(25, 16)
    assert len(set(some)) == 16
    assert (some[0], some[-1]) == (0, 24)
    assert set(np.diff(some)) == {1, 2}
