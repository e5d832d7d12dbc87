"""Named arrays in one file."""

import zipfile

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.files import read_npz, write_npz

ARRAYS = {
    "depth": np.array([[1.5, np.nan], [np.inf, -0.0]]),
    "image": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "flags": np.arange(4, dtype=np.uint16),
    "valid": np.array([True, False]),
    "spectrum": np.array([1 + 2j], np.complex64),
    "big_endian": np.arange(3, dtype=">i4"),
    "name": np.array("paper prototype"),
    "nothing": np.zeros((0, 3)),
    "number": np.array(3),
}


def test_arrays_come_back_exactly(tmp_path):
    write_npz(tmp_path / "a.npz", **ARRAYS)
    back = read_npz(tmp_path / "a.npz")
    assert list(back) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
        assert back[name].flags.writeable
    with np.load(tmp_path / "a.npz") as loaded:
        assert sorted(loaded.files) == sorted(ARRAYS)
        np.testing.assert_array_equal(loaded["depth"], ARRAYS["depth"])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": object()}, r"a\.npz: values has type object, and numbers or texts are written"),
        ([[1], [1, 2]], "values is no array"),
        (np.zeros(1, [("a", "u1")]), "numbers or texts are written"),
        (np.array(["2020-01-01"], "M8[D]"), "values has type datetime64"),
    ],
)
def test_what_cannot_be_written(tmp_path, value, words):
    with pytest.raises(InputError, match=words):
        write_npz(tmp_path / "a.npz", values=value)
    assert list(tmp_path.iterdir()) == []


def test_archives_of_something_else(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"hello")
    with pytest.raises(InputError, match=r"a\.npz: does not begin like an NPZ file"):
        read_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escape.txt", b"hello")
    with pytest.raises(InputError, match="holds more than arrays of distinct names"):
        read_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"hello")
    with pytest.raises(InputError, match=r"a\.npz: a\.npy: cannot be decoded as NPY"):
        read_npz(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", b"hello")
    with pytest.raises(InputError, match="packed in an uncommon way"):
        read_npz(path)
    assert list(tmp_path.iterdir()) == [path]
