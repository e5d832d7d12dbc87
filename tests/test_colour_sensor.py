"""benchmarks/colour_sensor.py: limits of a colour sensor, and the light that its filters take."""

import sys

import numpy as np
import pytest

from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import colour_sensor
from colour_sensor import limits


def test_limits_follow_the_light():
    assert limits(None, 0.5) == (1.0, 1.0)
    assert limits((1.0, 1.0, 1.0), 0.0) == pytest.approx((1.0, 1.0), abs=1e-3)
    # Of grey, all pixels tell the same: as the root of the light, however it is weighted.
    mean = (0.27 + 2 * 0.42 + 0.30) / 4
    assert limits((0.27, 0.42, 0.30), 0.0) == pytest.approx((mean**-0.5,) * 2, abs=1e-3)
    # Of colours that have nothing in common, a mono sensor sees a third of the power, and one image
    # shows green at best.
    one, three = limits((0.27, 0.42, 0.30), 1.0)
    assert one == pytest.approx((1 / 3 / (0.5 * 0.42)) ** 0.5, abs=1e-3)
    assert three == pytest.approx((1 / 3 / mean) ** 0.5, abs=1e-3)


def test_filters_take_light_and_nothing_else():
    light = colour_sensor.Light(np.full((40, 60), 0.5), np.full((40, 60), 0.5))
    mono = colour_sensor.frame_of(light, None, 1)
    colour = colour_sensor.frame_of(light, (0.2, 0.4, 0.3), 1)
    assert mono.mean() == pytest.approx(0.5, abs=0.001)
    assert colour[::2, ::2].mean() == pytest.approx(0.1, abs=0.001)
    assert colour[::2, 1::2].mean() == pytest.approx(0.2, abs=0.001)
    assert colour[1::2, 1::2].mean() == pytest.approx(0.15, abs=0.001)
