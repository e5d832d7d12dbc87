"""Averages over frames, and the best sharpness."""

import cv2
import numpy as np
import pytest

from align_frames import RIG, WALL_M, misassembled, wall
from d3s.camera.align.session import FRAMES, Watch


def test_values_are_means_of_the_latest_frames():
    watch = Watch(RIG, distance_m=WALL_M)
    singles, means = [], []
    for seed in range(3):
        frame = wall(seed=seed)
        singles.append(Watch(RIG, distance_m=WALL_M).add(frame)["rows_px"].value)
        means.append(watch.add(frame)["rows_px"].value)
    assert means[-1] == pytest.approx(np.mean(singles), abs=1e-9)
    assert FRAMES >= 3


def test_turned_screw_starts_the_mean_anew():
    watch = Watch(RIG)
    watch.add(wall())
    alone = Watch(RIG).add(misassembled("stone", -1))["rows_px"].value
    assert watch.add(misassembled("stone", -1))["rows_px"].value == alone


def test_sharpness_is_known_once_the_best_was_passed():
    watch = Watch(RIG)
    frame = wall(0.8)
    assert "sharpest point" in watch.add(frame)["sharpness_left"].advice
    blurred = cv2.GaussianBlur(frame, (0, 0), 1.5)
    low = watch.add(blurred)["sharpness_left"]
    assert low.state == "turn"
    assert low.value < 0.7
    assert watch.add(frame)["sharpness_left"].state == "good"
