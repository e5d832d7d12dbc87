"""Coma: shift of detail in blurred pictures, from the spectrum of the texture."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.anchors import find_anchors
from d3s.calibrate.coma import (
    BoardBlur,
    board_spectrum,
    detail_shift,
    expected_square_frequency,
    scaled,
    spectrum,
    without_coma,
)
from d3s.calibrate.distortion import Board
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


def test_detail_that_is_finer_in_the_second_picture_is_shifted_otherwise():
    blur, coma = np.array([[4.0], [0.0], [4.0]]), np.array([[0.4], [0.0]])
    waves = spectrum(1.0, SMOOTHING_PX)
    alike, finer = (
        detail_shift((blur, blur), (coma, coma), waves, size).second_px[0, 0] for size in (1.0, 0.8)
    )
    # To first order, waves are shifted less, in proportion to the square of the frequency.
    assert 0.4 - finer == pytest.approx((0.4 - alike) / 0.8**2, rel=0.15)


def blur_of(camera) -> BoardBlur:
    """Blur of a board before lenses with curvature of field."""
    focus = (0.0, 0.0, 1.4, 3.0)
    lenses = LensMaps(
        field_radius_px=camera.field_radius_px, focus_left_dpt=focus, focus_right_dpt=focus
    )
    anchors = find_anchors(camera.matches())
    centres = np.array(anchors.left_px), np.array(anchors.right_px)
    optics = d3s.Rig.paper_prototype().optics
    return BoardBlur(lenses, optics, centres, np.array(camera.distances_m), Board())


def test_places_without_coma_are_those_of_an_even_spot(camera):
    blur, plain = blur_of(camera), camera.matches()
    waves = spectrum(1.0, SMOOTHING_PX)
    left, right = (0.1, 0.0, -1.2), (0.0, -0.05, -1.0)
    moved = without_coma(plain, (scaled(left, -1.0), scaled(right, -1.0)), blur, waves)
    away = moved.left[0].second_px - plain.left[0].second_px
    assert np.abs(away).max() > 0.05
    # Coma is a function of the place: that of the moved place differs by a thousandth.
    back = without_coma(moved, (left, right), blur, waves)
    for now, before in zip(back.left, plain.left, strict=True):
        np.testing.assert_allclose(now.second_px, before.second_px, atol=5e-3)


def test_frames_of_unknown_depth_are_left_as_they_are(camera):
    blur = blur_of(camera)
    unknown = blur._replace(depths_m=np.full_like(blur.depths_m, np.nan))
    plain, coma = camera.matches(), (0.0, 0.0, -1.2)
    same = without_coma(plain, (coma, coma), unknown, spectrum(1.0, SMOOTHING_PX))
    np.testing.assert_array_equal(same.left[0].second_px, plain.left[0].second_px)
    # A board of which no pair of frames is known is taken for a photograph.
    assert board_spectrum(plain, unknown).slope == 1.0
