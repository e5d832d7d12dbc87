"""Rays, wavefronts and transfer functions of aberrated lenses, against numbers worked by hand."""

import numpy as np
import pytest

from d3s.optics.lens import Lens
from d3s.optics.psf import diffraction_otf
from d3s.optics.wavefront import (
    Aberrations,
    clip_distance,
    diffraction_transfer,
    half_pixels_to_pixels,
    overlap_share,
    pixels_per_slope,
    pupil_points,
    ray_shift_px,
    reach_px,
    wavefront_m,
)

LENS = Lens(
    optical_power_dpt=83.9,
    aperture_radius_m=1e-3,
    sensor_distance_m=0.0121,
    reference_distance_m=0.0121,
    pixel_pitch_m=2e-6,
    aperture_gaussian_width=0.5,
)
ALL = Aberrations(
    blur_px=(3.0, 0.7, -1.0), spherical_m=4e-8, coma_m=(3e-8, -5e-8), shift=(0.1, 0.0)
)


def test_rays_of_defocus_keep_their_place_in_the_pupil():
    rim = np.array([[1.0, 0.0], [0.0, 1.0]])
    shift = ray_shift_px(rim, Aberrations(blur_px=(3.0, 0.5, -1.0)), LENS)
    assert shift == pytest.approx(np.array([[-3.0, -0.5], [-0.5, 1.0]]))


def test_rays_are_the_gradient_of_the_wavefront():
    points, step = pupil_points(50), 1e-6
    along, down = (
        wavefront_m(points + move, ALL, LENS) - wavefront_m(points - move, ALL, LENS)
        for move in (np.array([[step], [0.0]]), np.array([[0.0], [step]]))
    )
    slope = np.stack([along, down]) / (2 * step)
    assert ray_shift_px(points, ALL, LENS) == pytest.approx(-pixels_per_slope(LENS) * slope)


def test_waves_at_the_rim():
    rim = np.array([1.0, 0.0])
    assert wavefront_m(rim, Aberrations(blur_px=(0, 0, 0), spherical_m=2e-7), LENS) == 2e-7
    coma = Aberrations(blur_px=(0, 0, 0), coma_m=(3e-7, 0.0))
    assert wavefront_m(rim, coma, LENS) == pytest.approx(3e-7)
    assert wavefront_m(-rim, coma, LENS) == pytest.approx(-3e-7)


def test_no_light_gets_further_than_its_reach():
    points = pupil_points(4000) + np.array([[0.1], [0.0]])
    farthest = np.hypot(*ray_shift_px(points, ALL, LENS)).max()
    assert 0.6 * reach_px(ALL, LENS) < farthest < reach_px(ALL, LENS)


@pytest.mark.parametrize(("apart", "radius"), [(0.4, 1.0), (0.206, 1.109), (1.2, 1.5)])
def test_overlap_of_two_openings(apart, radius):
    x, y = np.meshgrid(*[np.linspace(-1, 1, 2001)] * 2)
    first = x**2 + y**2 <= 1
    both = first & ((x - apart) ** 2 + y**2 <= radius**2)
    assert overlap_share(apart, radius) == pytest.approx(both.sum() / first.sum(), abs=1e-4)
    assert clip_distance(1 - float(overlap_share(apart, radius)), radius) == pytest.approx(apart)


@pytest.mark.parametrize("radius_px", [0.0, 1.5, 6.0])
def test_wave_optics_of_defocus_is_that_of_the_closed_form(radius_px):
    aberrations = Aberrations(blur_px=(radius_px, 0.0, radius_px))
    found = diffraction_transfer((256, 256), aberrations, LENS, 550e-9)
    frequency = np.hypot(np.fft.fftfreq(256)[:, None], np.fft.rfftfreq(256))
    expected = diffraction_otf(frequency, radius_px, LENS, 550e-9)
    assert found.real == pytest.approx(expected, abs=1e-3)
    assert np.abs(found.imag).max() < 1e-3


def test_wave_optics_of_coma_has_its_centroid():
    # The slope of the phase at low frequency: a shift by -coma, 6.05 px per micrometre.
    found = diffraction_transfer(
        (256, 256), Aberrations(blur_px=(4.0, 0, 4.0), coma_m=(3e-7, 0.0)), LENS, 550e-9
    )
    shift = -np.angle(found[0, 1]) * 256 / (2 * np.pi)
    assert shift == pytest.approx(-6.05e6 * 3e-7, rel=0.02)


def test_half_pixels_hold_the_frequencies_of_pixels():
    cycles = np.fft.fftfreq(16, d=0.5)
    assert np.array_equal(half_pixels_to_pixels(cycles), np.fft.fftfreq(8))
