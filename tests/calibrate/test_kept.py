"""Frames in memory: exact, as many as there is room for, and never others than were read."""

import numpy as np
import pytest

from d3s.calibrate.kept import KeptFrames, as_image, as_levels

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


@pytest.mark.parametrize("top", [255, 65535])
def test_grey_levels_come_back_to_the_last_bit(top):
    frame = grey(top)
    assert np.array_equal(as_image(as_levels(frame)), frame)


@pytest.mark.parametrize("top", [1023, 4095])
def test_other_levels_come_back_to_a_small_part_of_a_level(top):
    frame = grey(top)
    assert np.abs(as_image(as_levels(frame)) - frame).max() < 0.04 / top


def test_frames_are_read_once_while_there_is_room():
    disk = Disk(*(grey(65535, seed) for seed in range(3)))
    frames = KeptFrames(disk, room_bytes=2 * BYTES)
    for _ in range(2):
        for number in range(3):
            assert np.array_equal(frames(number), disk.frames[number])
    assert disk.reads == [0, 1, 2, 2]
    assert [frames.holds(number) for number in range(3)] == [True, True, False]


@pytest.mark.parametrize("value", [-0.01, 1.5, np.nan])
def test_what_16_bits_cannot_hold_is_read_again(value):
    odd = grey(255)
    odd[0, 0] = value
    disk = Disk(odd, grey(255))
    frames = KeptFrames(disk, room_bytes=2 * BYTES)
    for _ in range(2):
        assert np.array_equal(frames(0), odd, equal_nan=True)
    assert disk.reads == [0, 0]
    assert not frames.holds(0)


def test_the_same_frames_are_kept_whichever_is_asked_for_first():
    disk = Disk(*(grey(255, seed) for seed in range(3)))
    frames = KeptFrames(disk, room_bytes=2 * BYTES)
    for number in (2, 1, 0):
        frames(number)
    assert [frames.holds(number) for number in range(3)] == [True, True, False]
