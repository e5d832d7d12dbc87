"""Coma: shift of detail by it, and the coma of both lenses from coarse and fine detail."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.coma import BoardBlur, detail_shift, find_coma, spectrum
from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.matches import Matches, PairMatches
from d3s.calibrate.registration import COARSER, smoothing_px
from d3s.optics.wavefront import pupil_points
from d3s.rig import LensMaps

OPTICS = d3s.Rig.paper_prototype().optics
RADIUS_PX = 900.0
LENSES = LensMaps(field_radius_px=RADIUS_PX)
CENTRES_PX = (np.array([2900.0, 1070.0]), np.array([930.0, 1080.0]))
SMOOTHING_PX = smoothing_px(2 * RADIUS_PX)
DEPTHS_M = np.array([0.4, 0.5, 1.4, 1.8])
SLOPE = 1.0


def waves_of(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies y and x of `rfft2`."""
    return 2 * np.pi * np.fft.fftfreq(size)[:, np.newaxis], 2 * np.pi * np.fft.rfftfreq(size)


def spot(blur_px: float, coma_px: np.ndarray, size: int = 96, rays: int = 400) -> np.ndarray:
    """Transfer function (frequencies of `rfft2`) of rays through many points of the pupil."""
    points, (y, x) = pupil_points(rays), waves_of(size)
    coma = coma_px[:, np.newaxis]
    places = blur_px * points + 2 * (coma * points).sum(axis=0) * points
    places = places + coma * (points**2).sum(axis=0)
    rows = np.exp(-1j * np.outer(y, places[1]))
    return rows @ np.exp(-1j * np.outer(places[0], x)) / places.shape[1]


def shift_px(
    first: np.ndarray, second: np.ndarray, smoothing_px: float, slope: float = SLOPE
) -> np.ndarray:
    """Shift (2,) of detail in the second picture, by least squares over its spectrum."""
    y, x = waves_of(len(first))
    size = np.hypot(x, y)
    size[0, 0] = 1
    power = size ** (-2 * slope) * np.exp(-((size * smoothing_px) ** 2))
    power[0, 0] = 0
    power[:, 1:-1] *= 2
    cross = power * first * second.conj()
    waves = np.stack(np.broadcast_arrays(x, y)).reshape(2, -1)
    normal = (waves * cross.real.ravel()) @ waves.T
    return np.linalg.solve(normal, waves @ cross.imag.ravel())


def pair_of(
    frames: tuple[int, int],
    coma_px: np.ndarray,
    noise_px: float = 0.0,
    cameras: tuple[int, int] = (0, 1),
) -> PairMatches:
    """Windows of two pictures of one size, with spots of coma (2 lenses, 3)."""
    side = np.linspace(-0.8, 0.8, 5)
    places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    blurs = [
        LENSES.blur_radii_px(camera, 0.0, 0.0, 1 / DEPTHS_M[frame], OPTICS)[0]
        for camera, frame in zip(cameras, frames, strict=True)
    ]
    shifts = []
    for place in places:
        spots = [
            spot(blur, coma_px[camera, :2] + coma_px[camera, 2] * place)
            for blur, camera in zip(blurs, cameras, strict=True)
        ]
        fine, coarse = (shift_px(*spots, factor * SMOOTHING_PX) for factor in (1.0, COARSER))
        shifts.append(coarse - fine)
    rng = np.random.default_rng(frames)
    first_px, second_px = (CENTRES_PX[camera] + RADIUS_PX * places for camera in cameras)
    none = np.empty((0, 2))
    return PairMatches(
        first=frames[0],
        second=frames[1],
        first_px=first_px,
        second_px=second_px,
        sigma_px=np.full(len(places), 0.01),
        features_first_px=none,
        features_second_px=none,
        turn_rad=0.0,
        detail_per_px2=np.full(len(places), 0.05),
        coarse_shift_px=np.array(shifts) + rng.normal(0, noise_px, (len(places), 2)),
    )


def views_of(coma_px: np.ndarray, noise_px: float = 0.0) -> list[PairMatches]:
    """Both views of each frame."""
    return [pair_of((frame, frame), coma_px, noise_px) for frame in range(len(DEPTHS_M))]


def found_from(across: list[PairMatches], motion: tuple[list[PairMatches], ...] = ([], [])):
    left, right = (tuple(pairs) for pairs in motion)
    matches = Matches(left, right, tuple(across), ("",) * len(DEPTHS_M), {})
    blur = BoardBlur(LENSES, OPTICS, CENTRES_PX, DEPTHS_M, Board())
    return find_coma(matches, blur, spectrum(SLOPE, SMOOTHING_PX))


def test_coma_of_rendered_spots_is_found():
    truth = np.array([[-0.1, 0.05, -1.2], [0.05, 0.0, -1.0]])
    found = found_from(views_of(truth, noise_px=1e-3))
    assert found.growth_px == pytest.approx(-1.1, rel=0.15)
    # What stereo feels is the difference between the lenses.
    apart = np.subtract(found.left_px, found.right_px)
    np.testing.assert_allclose(apart, truth[0] - truth[1], atol=0.07)
    # The model of the spots is trusted to a quarter.
    assert 0.2 < abs(found.sigma_px / found.growth_px) < 0.4


def test_frames_tell_the_coma_of_each_lens():
    truth = np.array([[-0.1, 0.05, -1.2], [0.05, 0.0, -1.0]])
    steps = [(0, 1), (1, 2), (2, 3)]
    motion = tuple(
        [pair_of(step, truth, 1e-3, (camera, camera)) for step in steps] for camera in (0, 1)
    )
    found = found_from([], motion)
    np.testing.assert_allclose([found.left_px, found.right_px], truth, atol=0.25)


# Shift of detail ----------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.5, 1.0])
@pytest.mark.parametrize("radii_px", [(2.0, 5.0), (8.0, 6.0)])
def test_shift_of_detail_is_that_of_rendered_spots(slope, radii_px):
    coma_px = 0.3, 0.0
    first, second = (spot(radius, np.array(coma_px), 256, 3000) for radius in radii_px)
    measured = -shift_px(first, second, 3.0, slope)[0]
    blurs = tuple(np.array([[radius], [0.0], [radius]]) for radius in radii_px)
    coma = np.array(coma_px)[:, np.newaxis]
    found = detail_shift(blurs, (coma, coma), spectrum(slope, 3.0))
    shift = found.first_px[0] - found.second_px[0]
    assert abs(measured) > 0.01
    assert shift[0] == pytest.approx(measured, rel=0.1)
    assert shift[1] == pytest.approx(0.0, abs=1e-3)
