"""Anchors: errors are as small as expected, and sigma agrees with them."""

import numpy as np
import pytest

from d3s.calibrate.anchors import find_anchors, least_shift
from d3s.errors import CalibrationError


def errors_px(camera, anchors) -> np.ndarray:
    return np.subtract([anchors.left_px, anchors.right_px], camera.anchors_px)


def test_anchors_of_a_tilted_board(camera):
    found = camera.steps()[1]
    # 160 windows of 0.02 px, 15 pairs that shrink by a seventh.
    assert np.abs(errors_px(camera, found)).max() < 0.02
    assert found.method == "expansion"
    assert found.left_out == {}


def test_least_shift_by_hand(camera):
    """Features on a lattice that shrinks around a known point by a tenth."""
    x, y = np.meshgrid(np.arange(0.0, 1281.0, 20.0), np.arange(0.0, 1281.0, 20.0))
    places = np.stack([x.ravel(), y.ravel()], axis=1)
    anchor = np.array([700.0, 560.0])
    pair = (
        camera.matches()
        .left[0]
        ._replace(features_first_px=places, features_second_px=anchor + 0.9 * (places - anchor))
    )
    place, _ = least_shift([pair] * 8)
    np.testing.assert_allclose(place, anchor, atol=1.5)


def test_frame_beside_the_rail_is_rejected(camera):
    found = find_anchors(camera.but(aside_m={6: 2e-3}).matches())
    assert list(found.left_out) == [6]
    assert "aside" in found.left_out[6]
    assert np.abs(errors_px(camera, found)).max() < 0.03


def test_board_that_does_not_move_away(camera):
    matches = camera.but(distances_m=tuple(0.5 + 1e-4 * k for k in range(8))).matches()
    with pytest.raises(CalibrationError, match="does not change its size in the left view"):
        find_anchors(matches)


def test_board_that_does_not_move_along_a_line(camera):
    aside = dict(enumerate(np.random.default_rng(1).normal(0, 0.03, 16)))
    with pytest.raises(
        CalibrationError, match=r"left view has no one point towards .* pairs of frames"
    ):
        find_anchors(camera.but(aside_m=aside).matches())


@pytest.mark.slow
def test_anchor_sigma_agrees_with_the_scatter(camera):
    found = [find_anchors(camera.but(seed=seed).matches()) for seed in range(8)]
    scores = [errors_px(camera, one) / [one.left.sigma_px, one.right.sigma_px] for one in found]
    # 32 numbers: their RMS is within 35 % of one, except once in some hundred draws.
    assert 0.65 < np.sqrt(np.mean(np.square(scores))) < 1.35
