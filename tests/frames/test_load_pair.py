"""A pair from two files, from one with both views, and from a raw frame."""

import cv2
import numpy as np
import pytest
from PIL import Image

import d3s
from calibrations import calibration
from d3s.errors import InputError
from d3s.files import read_image
from d3s.frames import load_pair

RNG = np.random.default_rng(5)
LEFT, RIGHT = RNG.integers(0, 65536, (2, 6, 10), dtype=np.uint16)


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "left.png", tmp_path / "right.png"
    for path, image in zip(paths, (LEFT, RIGHT), strict=True):
        cv2.imwrite(str(path), image)
    return paths


def test_two_files_are_the_views(files):
    pair = load_pair(*files)
    np.testing.assert_array_equal(pair.left, (LEFT / 65535).astype(np.float32))
    np.testing.assert_array_equal(pair.right, (RIGHT / 65535).astype(np.float32))
    assert pair.left.dtype == pair.right.dtype == np.float32
    assert pair.remarks == ()
    left, right = pair
    assert left is pair.left
    assert right is pair.right


def test_side_by_side_are_halves(tmp_path):
    path = tmp_path / "both.png"
    cv2.imwrite(str(path), np.hstack([LEFT, RIGHT]))
    pair = load_pair(path, side_by_side=True)
    np.testing.assert_array_equal(pair.left, (LEFT / 65535).astype(np.float32))
    np.testing.assert_array_equal(pair.right, (RIGHT / 65535).astype(np.float32))
    assert pair.left.flags.c_contiguous
    assert pair.right.flags.c_contiguous


def test_raw_frame_is_split_by_its_rig(tmp_path):
    rig = d3s.Rig.paper_prototype().replace(
        calibration=calibration(frame_rows_px=120, frame_cols_px=260)
    )
    raw = RNG.integers(0, 65536, (120, 260), dtype=np.uint16)
    path = tmp_path / "raw.png"
    cv2.imwrite(str(path), raw)
    pair = load_pair(path, rig=rig)
    left, right = rig.split(raw)
    assert pair.left.shape == (61, 81)
    np.testing.assert_allclose(pair.left, left, atol=1e-6)
    np.testing.assert_allclose(pair.right, right, atol=1e-6)
    halves = load_pair(path, rig=rig, side_by_side=True)
    assert halves.left.shape == (120, 130)


def test_one_file_that_is_neither_says_what_to_do(files):
    with pytest.raises(InputError, match=r"left\.png is one file.*right view.*side.*raw.*--rig"):
        load_pair(files[0])
    rig = d3s.Rig.paper_prototype()
    with pytest.raises(InputError, match=r"left\.png .* no calibration.*Calibrate.*side by side"):
        load_pair(files[0], rig=rig)
    rig = rig.replace(calibration=calibration(frame_rows_px=120, frame_cols_px=260))
    with pytest.raises(InputError, match=r"left\.png .*shape \(6, 10\).*calibrated for \(120, 260"):
        load_pair(files[0], rig=rig)


def test_unequal_views_are_refused_by_name(tmp_path, files):
    other = tmp_path / "other.png"
    cv2.imwrite(str(other), LEFT[:5])
    with pytest.raises(InputError, match=r"left\.png has 6 x 10 px.*other\.png has 5 x 10 px"):
        load_pair(files[0], other)


def test_colour_is_linear_grey_and_said_once(tmp_path):
    colour = RNG.integers(0, 256, (6, 10, 3), dtype=np.uint8)
    paths = tmp_path / "left.png", tmp_path / "right.png"
    for path in paths:
        Image.fromarray(colour).save(path)
    pair = load_pair(*paths)
    (remark,) = pair.remarks
    assert "left.png is in colour" in remark
    assert "curve of sRGB was undone" in remark
    np.testing.assert_array_equal(pair.left, read_image(paths[0], linear=False))
    pair = load_pair(*paths, linear=True)
    np.testing.assert_array_equal(pair.left, read_image(paths[0]))
    assert "sRGB" not in pair.remarks[0]


def test_exif_orientation_is_followed_and_remarked(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    grey = np.tile(np.arange(0, 240, 10, dtype=np.uint8), (16, 1))
    paths = tmp_path / "left.png", tmp_path / "right.png"
    Image.fromarray(grey).save(paths[0], exif=turned)
    Image.fromarray(grey.T).save(paths[1])
    pair = load_pair(*paths)
    np.testing.assert_array_equal(pair.left, (np.rot90(grey, -1) / 255).astype(np.float32))
    assert pair.left.flags.c_contiguous
    (remark,) = pair.remarks
    assert "left.png was turned by 90 degrees clockwise, as its EXIF orientation says" in remark
    Image.fromarray(grey.T).save(paths[1], exif=turned)
    with pytest.raises(InputError, match=r"left\.png has 24 x 16 px.*right\.png has 16 x 24 px"):
        load_pair(*paths)


def test_loss_is_remarked_once_and_its_blocks_are_no_colour_sensor(tmp_path):
    rows, cols = np.mgrid[:260, :440]
    wall = np.uint8(60 + 0.2 * cols + 0.1 * rows)
    paths = tmp_path / "left.jpg", tmp_path / "right.jpg"
    for path in paths:
        cv2.imwrite(str(path), wall, [cv2.IMWRITE_JPEG_QUALITY, 10])
    pair = load_pair(*paths)
    (remark,) = pair.remarks
    assert "left.jpg is compressed with loss" in remark
    assert pair.warnings == ()


def test_side_by_side_wants_an_even_width_and_one_file(tmp_path, files):
    path = tmp_path / "both.png"
    cv2.imwrite(str(path), LEFT[:, :9])
    with pytest.raises(InputError, match=r"both\.png has 6 x 9 px .*even number of columns"):
        load_pair(path, side_by_side=True)
    with pytest.raises(InputError, match=r"there are two files: .*left\.png and .*right\.png"):
        load_pair(*files, side_by_side=True)
