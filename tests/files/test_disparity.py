"""Disparity as Middlebury and KITTI have it."""

import cv2
import numpy as np
import pytest

from d3s.errors import InputError
from d3s.files import write_disparity

NAN = np.nan


def test_pfm_is_read_by_opencv(tmp_path):
    disparity = np.array([[1.5, NAN, -3.25], [0.0, 70.125, 2.0]], dtype=np.float32)
    write_disparity(tmp_path / "d.pfm", disparity)
    found = cv2.imread(str(tmp_path / "d.pfm"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(found, np.where(np.isnan(disparity), np.inf, disparity))


def test_png_has_256_steps_a_pixel(tmp_path):
    disparity = np.array([[1.5, NAN, 0.0], [1e-4, 255.9, 2.002]], dtype=np.float32)
    write_disparity(tmp_path / "d.png", disparity)
    found = cv2.imread(str(tmp_path / "d.png"), cv2.IMREAD_UNCHANGED)
    # 0 means that there is none: a disparity of 0 is one step.
    assert found.tolist() == [[384, 0, 1], [1, 65510, 513]]


def test_what_does_not_fit_is_refused(tmp_path):
    for wrong in (-1.0, 256.0):
        disparity = np.array([[wrong, 4.0]], dtype=np.float32)
        with pytest.raises(InputError, match=r"do not fit into 16 bit.* Write \.pfm"):
            write_disparity(tmp_path / "d.png", disparity)
    with pytest.raises(InputError, match=r"written as \.pfm or \.png"):
        write_disparity(tmp_path / "d.tiff", np.ones((2, 2), np.float32))
    assert not list(tmp_path.iterdir())
