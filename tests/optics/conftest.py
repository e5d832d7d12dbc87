"""Lenses of the prototype of the paper."""

import pytest

from d3s.optics.lens import Lens


def prototype_lens(power: float) -> Lens:
    return Lens(
        optical_power_dpt=power,
        aperture_radius_m=1e-3,
        sensor_distance_m=0.0121,
        reference_distance_m=0.0121,
        pixel_pitch_m=2e-6,
        aperture_gaussian_width=0.5,
    )


@pytest.fixture
def left() -> Lens:
    return prototype_lens(83.88)


@pytest.fixture
def right() -> Lens:
    return prototype_lens(83.78)
