"""Coma: shift of detail in blurred pictures, from the spectrum of the texture."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.anchors import find_anchors
from d3s.calibrate.coma import (
    detail_shift,
    expected_square_frequency,
    spectrum,
    with_detail_shift,
    without_coma,
)
from d3s.calibrate.distortion import find_distortion
from d3s.optics.wavefront import pupil_points
from d3s.rig import LensMaps

SIZE, SMOOTHING_PX = 256, 3.0


def spot_transfer(blur_px: float, coma_px: tuple[float, float]) -> np.ndarray:
    """Transfer function (frequencies of `rfft2`) of rays through many points of the pupil."""
    points = pupil_points(3000)
    coma = np.array(coma_px)[:, np.newaxis]
    places = blur_px * points + 2 * (coma * points).sum(axis=0) * points
    places = places + coma * (points**2).sum(axis=0)
    y, x = 2 * np.pi * np.fft.fftfreq(SIZE), 2 * np.pi * np.fft.rfftfreq(SIZE)
    rows = np.exp(-1j * np.outer(y, places[1]))
    return rows @ np.exp(-1j * np.outer(places[0], x)) / places.shape[1]


def matched_shift(first: np.ndarray, second: np.ndarray, slope: float) -> float:
    """Shift along x by least squares that makes the second picture like the first one."""
    y, x = 2 * np.pi * np.fft.fftfreq(SIZE)[:, np.newaxis], 2 * np.pi * np.fft.rfftfreq(SIZE)
    size = np.hypot(x, y)
    size[0, 0] = 1
    power = size ** (-2 * slope) * np.exp(-((size * SMOOTHING_PX) ** 2))
    power[0, 0] = 0
    power[:, 1:-1] *= 2
    cross = power * first * second.conj()
    return float(-(x * cross.imag).sum() / (x**2 * cross.real).sum())


@pytest.mark.parametrize("slope", [0.5, 1.0])
@pytest.mark.parametrize("radii_px", [(2.0, 5.0), (8.0, 6.0)])
def test_shift_of_detail_is_that_of_rendered_spots(slope, radii_px):
    coma_px = 0.3, 0.0
    first, second = (spot_transfer(radius, coma_px) for radius in radii_px)
    measured = matched_shift(first, second, slope)
    blurs = tuple(np.array([[radius], [0.0], [radius]]) for radius in radii_px)
    coma = np.array(coma_px)[:, np.newaxis]
    found = detail_shift(blurs, (coma, coma), spectrum(slope, SMOOTHING_PX))
    shift = found.first_px[0] - found.second_px[0]
    assert abs(measured) > 0.01
    assert shift[0] == pytest.approx(measured, rel=0.1)
    assert shift[1] == pytest.approx(0.0, abs=1e-3)


def test_sharp_windows_shift_as_the_light_does():
    sharp, coma = np.full((3, 1), 1e-3), np.array([[0.4], [-0.2]])
    found = detail_shift((sharp, sharp), (coma, coma), spectrum(1.0, SMOOTHING_PX))
    np.testing.assert_allclose(found.first_px[0], coma[:, 0], rtol=1e-3)


def test_mean_frequency_falls_with_blur_and_with_the_slope_of_the_spectrum():
    def mean(radius_px, slope):
        blur = np.array([[radius_px], [0.0], [radius_px]])
        return expected_square_frequency((blur, blur), spectrum(slope, SMOOTHING_PX))[0]

    assert mean(8.0, 1.0) < mean(2.0, 1.0) < mean(2.0, 0.0)
    # Contrast that falls with the frequency, smoothed by a Gaussian: 1 / s².
    assert mean(1e-3, 1.0) == pytest.approx(1 / SMOOTHING_PX**2, rel=0.05)


def shifted_by(camera, coma_px):
    """Matches whose detail is shifted by coma, with that shift for coma of one pixel."""
    rig = d3s.Rig.paper_prototype()
    focus = (0.0, 0.0, 1.4, 3.0)
    lenses = LensMaps(
        field_radius_px=camera.field_radius_px, focus_left_dpt=focus, focus_right_dpt=focus
    )
    plain = camera.matches()
    anchors = find_anchors(plain)
    centres = np.array(anchors.left_px), np.array(anchors.right_px)
    marked, _ = with_detail_shift(plain, lenses, rig.optics, centres, np.array(camera.distances_m))

    def moved(pair, _cameras):
        return pair._replace(
            first_px=pair.first_px + coma_px * pair.skew_first_px,
            second_px=pair.second_px + coma_px * pair.skew_second_px,
        )

    return marked.changed(moved)


def test_places_without_coma_are_those_of_an_even_spot(camera):
    moved, plain = shifted_by(camera, -1.2), camera.matches()
    back = without_coma(moved, -1.2)
    for now, before in zip(back.left, plain.left, strict=True):
        np.testing.assert_allclose(now.second_px, before.second_px, atol=1e-9)
    away = moved.left[0].second_px - plain.left[0].second_px
    assert np.abs(away).max() > 0.05


def test_fit_of_the_places_finds_coma_with_distortion(camera):
    found, _ = find_distortion(
        shifted_by(camera, -1.2),
        find_anchors(camera.matches()),
        camera.distances_m,
        focal_length_px=d3s.Rig.paper_prototype().optics.focal_length_px,
        field_radius_px=camera.field_radius_px,
    )
    assert found.coma_px == pytest.approx(-1.2, abs=0.1)
