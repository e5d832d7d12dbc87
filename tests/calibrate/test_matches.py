"""Matches: places right to hundredths of a pixel, and rejected frames with their reasons."""

import cv2
import numpy as np
import pytest

from d3s.calibrate.fields import find_fields
from d3s.calibrate.matches import find_matches
from d3s.calibrate.registration import align_windows, spline_of
from d3s.errors import CalibrationError

FOCAL_PX, BASELINE_M = 12.1e-3 / 9e-6, 3.84e-3
TILTS = np.tan([0.01, -0.006])


def seen_px(frame, places_px, from_to, depths_m):
    """Places in one view of the points of the board at given places in another.

    `from_to` are the two cameras, `depths_m` the two distances of the board.
    """
    anchors = (np.array(frame.anchor_left_px), np.array(frame.anchor_right_px))
    first, second = from_to
    rays = (places_px - anchors[first]) @ np.linalg.inv(frame.mounts[first].matrix).T / FOCAL_PX
    lens = np.array([BASELINE_M * first, 0.0])
    # Z = depth + slopes · (lens + Z rays)
    depth = (depths_m[0] + TILTS @ lens) / (1 - rays @ TILTS)
    points = lens + depth[:, np.newaxis] * rays
    moved = depth + depths_m[1] - depths_m[0]
    rays = (points - (BASELINE_M * second, 0.0)) / moved[:, np.newaxis] * FOCAL_PX
    return anchors[second] + rays @ frame.mounts[second].matrix.T


@pytest.fixture(scope="module")
def smooth_picture():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, (240, 260)).astype(np.float32)
    return cv2.GaussianBlur(noise, (0, 0), 2.5)


@pytest.mark.parametrize("shift", [(0.0, 0.0), (0.3, -0.4), (0.5, 0.5), (1.7, 0.9)])
def test_alignment_of_a_shifted_picture(smooth_picture, shift):
    """Picture shifted exactly, in the Fourier domain, with another gain and offset."""
    rows, cols = (np.fft.fftfreq(size) for size in smooth_picture.shape)
    phase = np.exp(-2j * np.pi * (rows[:, None] * shift[1] + cols[None, :] * shift[0]))
    second = np.fft.ifft2(np.fft.fft2(smooth_picture) * phase).real.astype(np.float32)
    second = (0.7 * second + 0.2).astype(np.float32)
    x, y = np.meshgrid(np.arange(40, 220, 30), np.arange(40, 200, 30))
    centres = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float64)
    found = align_windows(smooth_picture, spline_of(second), np.eye(3), centres, 15)
    np.testing.assert_allclose(found.places_px - centres, np.tile(shift, (len(x.ravel()), 1)),
                               atol=2e-3)  # fmt: skip
    assert (found.sigma_px < 2e-3).all()


def test_windows_without_texture_or_beyond_the_picture_are_not_found(smooth_picture):
    flat = smooth_picture.copy()
    flat[:120] = 0.0
    centres = np.array([[130.0, 50.0], [5.0, 180.0], [130.0, 180.0]])
    found = align_windows(flat, spline_of(flat), np.eye(3), centres, 15)
    np.testing.assert_array_equal(np.isfinite(found.places_px[:, 0]), [False, False, True])
    np.testing.assert_array_equal(np.isfinite(found.sigma_px), [False, False, True])


def test_places_are_those_of_the_twin(small_frames, small_captures, small_matches):
    depths = small_captures.distances_m
    assert small_matches.left_out == {}
    for view, pairs in enumerate((small_matches.left, small_matches.right)):
        for pair in pairs:
            expected = seen_px(
                small_frames[0],
                pair.first_px,
                (view, view),
                (depths[pair.first], depths[pair.second]),
            )
            away = pair.second_px - expected
            assert len(away) > 50
            assert np.abs(away.mean(axis=0)).max() < 0.02
            assert away.std() < 0.1
            assert away.std() < 2 * np.sqrt(np.mean(pair.sigma_px**2))
    for pair in small_matches.across:
        depth = depths[pair.first]
        away = pair.second_px - seen_px(small_frames[0], pair.first_px, (0, 1), (depth, depth))
        assert np.abs(away.mean(axis=0)).max() < 0.02
        assert away.std() < 0.1


def test_blank_frames(small_captures, as_captures):
    """Progress is called after each frame; blank frames are fast."""
    seen = []
    images = [np.full_like(image, 0.3) for image in images_of(small_captures)]
    with pytest.raises(
        CalibrationError, match=r"only 0 of 7 frames .* board_0\.png: .* no texture"
    ):
        find_matches(
            as_captures(images, small_captures.distances_m),
            find_fields(small_captures),
            lambda *at: seen.append(at),
        )
    assert seen == [(number, 7) for number in range(1, 8)]


def images_of(captures):
    return [captures.image(number).copy() for number in range(len(captures))]
