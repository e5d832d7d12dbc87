"""Frames and the sources that yield them."""

import cv2
import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.errors import InputError
from d3s.frames import FileSource, Frame, FrameFiles, Refused, find_frames

RNG = np.random.default_rng(6)
VIEWS = RNG.random((2, 6, 10), dtype=np.float32)


def write(path, rows=6, cols=10):
    levels = RNG.integers(0, 65536, (rows, cols), dtype=np.uint16)
    cv2.imwrite(str(path), levels)
    return (levels / 65535).astype(np.float32)


def test_a_frame_has_a_pair_or_a_raw_frame():
    pair = Frame(number=3, name="a", views=(VIEWS[0], VIEWS[1]))
    assert (pair.number, pair.name, pair.time_s, pair.remarks) == (3, "a", None, ())
    counts = np.zeros((6, 10), np.uint16)
    for wrong in (
        {},
        {"views": (VIEWS[0], VIEWS[1]), "raw": VIEWS[0]},
        {"raw": VIEWS[0], "counts": counts, "full_scale": 4095},
    ):
        with pytest.raises(InputError, match="one of the three"):
            Frame(number=0, **wrong)


def test_a_pair_needs_no_rig_to_split_it_and_a_raw_frame_does():
    frame = Frame(number=0, views=(VIEWS[0], VIEWS[1]))
    rig = d3s.Rig.paper_prototype()
    assert frame.pair(rig) == (frame.views[0], frame.views[1])
    raw = RNG.random((120, 260), dtype=np.float32)
    with pytest.raises(InputError, match="calibration"):
        Frame(number=0, raw=raw).pair(rig)
    rig = rig.replace(calibration=calibration(frame_rows_px=120, frame_cols_px=260))
    left, right = Frame(number=0, raw=raw).pair(rig)
    np.testing.assert_array_equal(left, rig.split(raw)[0])
    np.testing.assert_array_equal(right, rig.split(raw)[1])


def test_a_frame_that_cannot_be_read_does_not_end_the_others(tmp_path):
    for name in ("a", "b", "c"):
        for side in ("left", "right"):
            write(tmp_path / f"{name}_{side}.png")
    (tmp_path / "b_left.png").write_text("no image")
    (tmp_path / "c_right.png").unlink()
    frames = [
        FrameFiles(name, tmp_path / f"{name}_left.png", tmp_path / f"{name}_right.png")
        for name in ("a", "b", "c", "a")
    ]
    first, second, third, fourth = FileSource(frames)
    assert isinstance(first, Frame)
    assert isinstance(second, Refused)
    assert second.name == str(tmp_path / "b_left.png")
    assert "b_left.png: does not begin like an image" in second.reason
    assert "c_right.png: there is no such file" in third.reason
    assert (fourth.name, fourth.number) == ("a", 3)


def test_one_file_stays_raw_without_a_rig_and_is_split_with_one(tmp_path):
    raw = write(tmp_path / "raw.png", 120, 260)
    files = find_frames([tmp_path / "raw.png"]).frames
    (frame,) = FileSource(files)
    np.testing.assert_array_equal(frame.raw, raw)
    rig = d3s.Rig.paper_prototype().replace(
        calibration=calibration(frame_rows_px=120, frame_cols_px=260)
    )
    (frame,) = FileSource(files, rig=rig)
    assert frame.raw is None
    assert frame.views[0].shape == (61, 81)
    (halves,) = FileSource(files, side_by_side=True)
    np.testing.assert_array_equal(halves.views[1], raw[:, 130:])


def test_counts_need_a_full_scale_and_are_grey_integers():
    counts = np.zeros((6, 10), np.uint16)
    for full_scale in (0, -1, 70000):
        with pytest.raises(InputError, match=r"full_scale=.* must be 1 to 65535"):
            Frame(number=0, counts=counts, full_scale=full_scale)
    for wrong in (counts.astype(np.int32), np.zeros((6, 10, 3), np.uint8)):
        with pytest.raises(InputError, match="must be uint8 or uint16"):
            Frame(number=0, counts=wrong, full_scale=255)


def test_counts_are_split_with_their_full_scale():
    rig = d3s.Rig.paper_prototype().replace(
        calibration=calibration(frame_rows_px=120, frame_cols_px=260)
    )
    counts = RNG.integers(0, 4096, (120, 260), dtype=np.uint16)
    frame = Frame(number=0, counts=counts, full_scale=4095)
    expected = rig.split(counts.astype(np.float32) / np.float32(4095))
    for view, other in zip(frame.pair(rig), expected, strict=True):
        assert view.dtype == np.float32
        np.testing.assert_allclose(view, other, rtol=0, atol=1e-6)
    np.testing.assert_allclose(frame.light(), counts / 4095, atol=1e-7)
    assert frame.levels().max() <= 65535
    np.testing.assert_allclose(frame.levels() / 65535, counts / 4095, atol=1e-5)
    assert frame.shape == (120, 260)
