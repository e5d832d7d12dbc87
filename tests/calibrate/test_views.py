"""Pairs and small pictures of frames."""

from dataclasses import replace

import numpy as np

import d3s
from calibrations import calibration
from d3s.calibrate.views import SmallPictures, SplitViews

CALIBRATION = calibration(
    anchor_left_px=(645.0, 215.0),
    anchor_right_px=(215.0, 214.0),
    crop_rows_px=101,
    crop_cols_px=151,
    rectify_scale=1.002,
    rectify_angle_rad=0.004,
    rectify_shift_y_px=1.0,
)


def test_views_are_those_of_the_frames_asked_for(small_captures):
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

    captures = replace(small_captures, source=read, is_kept=lambda number: number == 0)
    views = SplitViews(captures, [0, 2], CALIBRATION)
    first = [views[number] for number in (0, 1)]
    again = [views[number] for number in (0, 1)]
    assert reads == [0, 2, 0]
    for one, other in zip(first, again, strict=True):
        for left, right in zip(one, other, strict=True):
            assert np.abs(left - right).max() < 1e-5


def test_pairs_are_kept_while_there_is_room(small_captures):
    reads = []

    def read(number):
        reads.append(number)
        return np.clip(small_captures.image(number), 0, 1)

    captures = replace(small_captures, source=read, is_kept=lambda _: False)
    pair_bytes = 2 * 2 * 101 * 151
    views = SplitViews(captures, [0, 1, 2], CALIBRATION, room_bytes=2 * pair_bytes)
    for number in (0, 1, 2, 0, 1, 2, 2):
        views[number]
    assert reads == [0, 1, 2, 2, 2]


def test_small_pictures_of_what_was_used(small_captures):
    pictures = SmallPictures(small_captures)
    captures = pictures.captures()
    assert np.array_equal(captures.image(2), small_captures.image(2))
    assert list(pictures.thumbnails) == [2]
    assert pictures.thumbnails[2].shape == (100, 200)
    assert pictures.overview is None
    captures.image(3)
    assert pictures.overview.shape == (430, 860)
