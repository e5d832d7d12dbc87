"""Noise from electrons, worked by hand."""

import pytest

from d3s.errors import D3SError
from d3s.lab.design.camera import Camera
from d3s.lab.design.wall import Lighting

CAMERA = Camera.paper_prototype()


def test_given_noise_holds_for_every_camera():
    light = Lighting(noise=0.02)
    assert light.of_camera(CAMERA) == pytest.approx(0.02)
    assert light.sensor(CAMERA).noise == 0.02


def test_electrons_follow_from_illuminance():
    # 1000 lx, f/2, pixels of 3 um, 10 ms: 1000 * 0.95 / 16 lx on the sensor, 4.09e15 photons per
    # second and lux, 9e-12 m2, 0.01 s, of which 0.6 become electrons.
    light = Lighting(illuminance_lx=1000.0)
    expected = 1000 * 0.95 / 16 * 4.09e15 * 9e-12 * 0.01 * 0.6
    assert float(light.electrons(2.0, 3e-6)) == pytest.approx(min(expected, 1e4), rel=1e-2)
    dim = Lighting(illuminance_lx=10.0)
    white = float(dim.electrons(2.0, 3e-6))
    assert white == pytest.approx(expected / 100, rel=1e-2)
    assert float(dim.noise_sigma(2.0, 3e-6)) == pytest.approx(
        (0.5 / white + (3 / white) ** 2) ** 0.5
    )


def test_twin_has_the_noise_of_the_prediction():
    light = Lighting(illuminance_lx=300.0, bits=10)
    sensor = light.sensor(CAMERA)
    assert float(sensor.noise_sigma(0.5)) == pytest.approx(light.of_camera(CAMERA), rel=1e-6)


def test_darkness_is_refused():
    with pytest.raises(D3SError, match="no more than noise"):
        Lighting(illuminance_lx=0.01).sensor(CAMERA)
    with pytest.raises(D3SError, match="bits=9 must be 8, 10 or 12"):
        Lighting(bits=9)
