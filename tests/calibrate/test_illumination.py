"""Light of both views over the field, from the brightness of smooth boards."""

from functools import cache

import numpy as np
import pytest

import d3s
from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.illumination import find_illumination
from d3s.rig.lens_maps import polynomial_at

OPTICS = d3s.Rig.paper_prototype().optics
SHAPE, RADIUS_PX = (320, 700), 350.0
DEPTHS_M = (0.3, 0.35, 0.42, 0.5, 0.65, 0.9, 1.4)
BOARD = Board((0.02, -0.01), (0.1, 0.0, 0.1))
# 1, x, y, x², xy, y²: the right lens is darker, and its light falls off around another centre.
LEFT, RIGHT = (1.0, 0.0, 0.0, -0.08, 0.0, -0.08), (0.95, 0.01, -0.005, -0.1, 0.0, -0.1)


def places() -> tuple[np.ndarray, np.ndarray]:
    rows, cols = SHAPE
    return np.meshgrid(
        (np.arange(cols) - (cols - 1) / 2) / RADIUS_PX,
        (np.arange(rows) - (rows - 1) / 2) / RADIUS_PX,
    )


def views(left=LEFT, right=RIGHT, *, stray=0.0, texture=0.3):
    """Pairs of a board whose brightness varies, with light of known maps; float32."""
    x, y = places()
    cols, rows = np.meshgrid(np.arange(SHAPE[1]), np.arange(SHAPE[0]))
    pairs = []
    for number, depth_m in enumerate(DEPTHS_M):
        rng = np.random.default_rng(number)
        phase, wave = rng.uniform(0, 6, 6), rng.uniform(-0.06, 0.06, (6, 2))

        def paint(cols, rows, phase=phase, wave=wave):
            waves = zip(phase, wave, strict=True)
            return 0.5 + texture / 6 * sum(
                np.sin(one + kx * cols + ky * rows) for one, (kx, ky) in waves
            )

        # The right view has at x what the left one has at x + d; d is that of the left place.
        there = cols.astype(float)
        for _ in range(4):
            there = cols + OPTICS.disparity_px(BOARD.depth_m(there, rows, depth_m, SHAPE, OPTICS))
        pair = (
            polynomial_at(left, x, y) * paint(cols, rows) + stray,
            polynomial_at(right, x, y) * paint(there, rows),
        )
        pairs.append(tuple(view.astype(np.float32) for view in pair))
    return pairs


@cache
def found_of(left=LEFT, right=RIGHT, **options):
    pairs = views(left, right, **options)
    return find_illumination(pairs, DEPTHS_M, OPTICS, BOARD, RADIUS_PX)


def test_ratio_of_the_views_is_that_of_the_lenses():
    found = found_of()
    x, y = places()
    for disparity_px in (20, 70):
        here, there = x[:, disparity_px:], x[:, :-disparity_px]
        down = y[:, disparity_px:]
        ratio, truth = (
            polynomial_at(left, here, down) / polynomial_at(right, there, down)
            for left, right in ((found.left, found.right), (LEFT, RIGHT))
        )
        assert np.abs(ratio / truth - 1).max() < 0.01
        assert np.sqrt(np.mean((ratio / truth - 1) ** 2)) < 0.002
    assert found.before_rms > 0.05
    assert found.after_rms < 0.003
    assert found.stray_light == pytest.approx(0, abs=2e-3)


def test_stray_light_is_told_from_gain():
    # A board with much contrast in each block's neighbourhood shows where dark is not dark.
    found = found_of(stray=0.02, texture=1.2)
    assert found.stray_light == pytest.approx(0.02, abs=3e-3)
    assert polynomial_at(found.right, 0.0, 0.0) == pytest.approx(0.95, abs=0.01)
    assert found.after_rms < 0.01
