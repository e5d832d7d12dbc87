"""Frames in memory: work in parallel, caches, rectified pairs, thumbnails."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.calibrate.frames import FrameCache, SplitViews, on_each_frame

# Work on every frame ------------------------------------------------------------------------------


def test_frames_are_worked_on_at_the_same_time(monkeypatch):
    monkeypatch.setenv("D3S_THREADS", "2")
    both = threading.Barrier(2, timeout=20)
    on_each_frame(lambda _: both.wait(), 4)  # each waits for the other


# Caches -------------------------------------------------------------------------------------------


SHAPE = (20, 30)
BYTES = 2 * 20 * 30


class Disk:
    """Frames that count how often they are read."""

    def __init__(self, *frames: np.ndarray) -> None:
        self.frames, self.reads = frames, []

    def __call__(self, number: int) -> np.ndarray:
        self.reads.append(number)
        return self.frames[number]


def grey(top: int, seed: int = 0) -> np.ndarray:
    levels = np.random.default_rng(seed).integers(0, top + 1, SHAPE)
    return (levels / top).astype(np.float32)


def test_frames_are_cached_up_to_the_limit():
    disk = Disk(*(grey(65535, seed) for seed in range(3)))
    frames = FrameCache(disk, room_bytes=2 * BYTES)
    for _ in range(2):
        for number in range(3):
            assert np.array_equal(frames(number), disk.frames[number])
    assert disk.reads == [0, 1, 2, 2]
    assert [number in frames for number in range(3)] == [True, True, False]


@pytest.mark.parametrize("value", [-0.01, 1.5, np.nan])
def test_values_outside_0_to_1_are_not_cached(value):
    odd = grey(255)
    odd[0, 0] = value
    disk = Disk(odd, grey(255))
    frames = FrameCache(disk, room_bytes=2 * BYTES)
    for _ in range(2):
        assert np.array_equal(frames(0), odd, equal_nan=True)
    assert disk.reads == [0, 0]
    assert 0 not in frames


# Rectified pairs and thumbnails -------------------------------------------------------------------


CALIBRATION = calibration(
    anchor_left_px=(645.0, 215.0),
    anchor_right_px=(215.0, 214.0),
    crop_rows_px=101,
    crop_cols_px=151,
    rectify_scale=1.002,
    rectify_angle_rad=0.004,
    rectify_shift_y_px=1.0,
)


def test_views_are_those_of_the_given_frames(small_captures):
    rig = d3s.Rig.paper_prototype().replace(calibration=CALIBRATION)
    views = SplitViews(small_captures, [4, 1], CALIBRATION)
    assert len(views) == 2
    for number, frame in enumerate((4, 1)):
        expected = rig.split(small_captures.image(frame))
        assert all(np.array_equal(*both) for both in zip(views[number], expected, strict=True))


def test_frames_that_are_not_in_memory_are_read_once(small_captures):
    reads = []

    def read(number):
        reads.append(number)
        return np.clip(small_captures.image(number), 0, 1)

    captures = replace(small_captures, source=read, is_cached=lambda number: number == 0)
    views = SplitViews(captures, [0, 2], CALIBRATION)
    first = [views[number] for number in (0, 1)]
    again = [views[number] for number in (0, 1)]
    assert reads == [0, 2, 0]
    for one, other in zip(first, again, strict=True):
        for left, right in zip(one, other, strict=True):
            assert np.abs(left - right).max() < 1e-5
