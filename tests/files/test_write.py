"""What is written can be read, by D3S exactly and by other programs."""

import subprocess
import sys
import time
from contextlib import suppress

import cv2
import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from d3s.errors import D3SError, InputError
from d3s.files import read_image, write_image

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(0.5, 0.5, (13, 17)).astype(np.float32)
FLOAT_SUFFIXES = [".tif", ".tiff", ".pfm", ".npy"]
SUFFIXES = [".png", *FLOAT_SUFFIXES]


def test_other_programs_read_the_same(tmp_path):
    for suffix in (".tif", ".pfm", ".npy"):
        write_image(tmp_path / f"a{suffix}", IMAGE)
    assert np.array_equal(tifffile.imread(tmp_path / "a.tif"), IMAGE)
    assert np.array_equal(cv2.imread(str(tmp_path / "a.tif"), cv2.IMREAD_UNCHANGED), IMAGE)
    assert np.array_equal(cv2.imread(str(tmp_path / "a.pfm"), cv2.IMREAD_UNCHANGED), IMAGE)
    assert np.array_equal(np.load(tmp_path / "a.npy"), IMAGE)


def test_same_image_gives_the_same_bytes(tmp_path):
    code = (
        "import numpy as np, sys, d3s.files;"
        "image = np.random.default_rng(0).normal(0.5, 0.5, (13, 17)).astype(np.float32);"
        "[d3s.files.write_image(sys.argv[1] + end, image) for end in sys.argv[2:]]"
    )
    for suffix in SUFFIXES:
        write_image(tmp_path / f"a{suffix}", IMAGE)
    time.sleep(1.1)  # in case a date is stamped
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "b"), *SUFFIXES], check=True)
    for suffix in SUFFIXES:
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("name", "image", "words"),
    [
        (
            "a.jpg",
            IMAGE,
            r"a\.jpg: images are written as \.png, \.tiff, \.tif, \.pfm, \.npy\. Give",
        ),
        ("a", IMAGE, "images are written as"),
        ("a.png", np.full((2, 2), np.nan), r"4 of 4 values are NaN.*write \.tif, \.pfm or \.npy"),
        ("a.tif", np.zeros((2, 2, 3)), r"an image has \(rows, columns\), and .*shape \(2, 2, 3\)"),
        ("a.tif", np.zeros((0, 3)), r"shape \(0, 3\)"),
        ("a.tif", np.zeros((2, 2), np.uint16), r"floats with full scale 1, .*uint16\. Divide"),
        ("a.tif", np.zeros((2, 2), complex), "this array has complex128"),
        ("a.tif", np.full((1, 1), 1e300), "too large for 32-bit floats"),
        ("a.tif", [[1.0], [2.0, 3.0]], "this is no array"),
    ],
)
def test_what_cannot_be_written(tmp_path, name, image, words):
    with pytest.raises(InputError, match=words):
        write_image(tmp_path / name, image)
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    array=arrays.arrays(
        dtype=arrays.scalar_dtypes(), shape=arrays.array_shapes(min_dims=0, max_dims=4, min_side=0)
    ),
    suffix=st.sampled_from(SUFFIXES),
    step=st.sampled_from([1, 2, -1]),
)
def test_any_array_is_written_or_refused_and_never_changed(tmp_path, array, suffix, step):
    given_array = array[::step] if array.ndim else array
    given_array.setflags(write=False)
    before = array.tobytes()
    path = tmp_path / f"a{suffix}"
    writable = given_array.ndim == 2 and given_array.size and given_array.dtype.kind == "f"
    with suppress(D3SError):
        write_image(path, given_array, overwrite=True)
        assert writable
        back = read_image(path, allow_nan=True)
        assert back.shape == given_array.shape
        if suffix != ".png":
            np.testing.assert_array_equal(back, given_array.astype(np.float32))
    assert array.tobytes() == before
