"""What people hand to a reader by mistake, and the words they then read."""

import os

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image

from d3s.errors import InputError
from d3s.files import list_images, read_image, read_npz

SMALL = np.arange(12, dtype=np.uint16).reshape(3, 4)


def refusal(path, reader=read_image) -> str:
    with pytest.raises(InputError) as caught:
        reader(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.endswith((".", "?"))
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize("reader", [read_image, read_npz])
def test_things_that_are_no_files(tmp_path, reader):
    assert refusal(tmp_path / "none.png", reader).startswith("there is no such file")
    assert refusal(tmp_path, reader) == "is a folder. Name a file in it."
    os.mkfifo(tmp_path / "pipe.png")
    assert refusal(tmp_path / "pipe.png", reader).startswith("is no ordinary file")
    assert refusal("/dev/zero", reader).startswith("is no ordinary file")
    (tmp_path / "empty.png").touch()
    assert refusal(tmp_path / "empty.png", reader).startswith("is empty. The file is damaged")
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    assert refusal(tmp_path / "loop.png", reader).startswith("cannot be read: Too many levels")
    assert refusal(tmp_path / "empty.png" / "below.png", reader).startswith("cannot be read: Not a")
    with pytest.raises(InputError, match=r"'a\\x00b': cannot be read: embedded null"):
        reader("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_rights(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "a.png").chmod(0)
    assert refusal(tmp_path / "a.png").startswith("cannot be read: Permission denied")


def test_things_that_are_no_images(tmp_path):
    path = tmp_path / "a.png"
    for content in (b"Dear reader", b"x", b"GIF89a\0\0"):
        path.write_bytes(content)
        assert refusal(path).startswith("does not begin like an image. Images are PNG, TIFF,")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"P2 1 1 255 7", "is a PNM file of type P2, and P5 (grey) and P6"),
        (b"P5 two 1 255 7", "has no proper PGM header"),
        (b"P5 1 1 0 7", "has maxval=0 in its header"),
        (b"P5 1 1 70000 7", "has maxval=70000 in its header"),
        (b"P5 0 1 255 ", "declares a size of 0 x 1 pixels"),
        (b"P5 2 1 255 7", "has 1 bytes of samples, and its header says 2"),
        (b"P5 1 1 100 \xff", "has a sample of 255, above maxval=100"),
        (b"Pf 1 1 0 abcd", "has scale=0 in its PFM header"),
        (b"Pf 1 1 -1-1 abcd", "has scale=-1-1 in its PFM header"),
        (b"Pf 1 1 one abcd", "has no proper PFM header"),
    ],
)
def test_pnm_and_pfm(tmp_path, content, words):
    (tmp_path / "a.pgm").write_bytes(content)
    assert refusal(tmp_path / "a.pgm").startswith(words)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((3, 4), np.int16), "holds values of type int16, and uint8, uint16, float32 and"),
        (np.zeros((3, 4), bool), "holds values of type bool"),
        (np.zeros(5, np.float32), "holds an array of shape (5,), and an image has (rows, col"),
        (np.zeros((2, 3, 4, 5), np.uint8), "holds an array of shape (2, 3, 4, 5)"),
        (np.zeros((3, 4, 2), np.uint8), "holds an array of shape (3, 4, 2)"),
        (np.zeros((0, 4), np.uint8), "declares a size of 4 x 0 pixels"),
        (np.zeros((2, 2), [("a", "u1")]), "holds values of type '|V1', and numbers are read"),
    ],
)
def test_npy(tmp_path, array, words):
    np.save(tmp_path / "a.npy", array)
    assert refusal(tmp_path / "a.npy").startswith(words)


def test_stored_objects_are_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    trap = np.empty((1, 1), object)
    trap[0, 0] = Trap()
    np.save(tmp_path / "a.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "a.npz", trap=trap)
    assert refusal(tmp_path / "a.npy").startswith("holds values of type '|O', and numbers are read")
    assert "trap.npy: holds values of type '|O'" in refusal(tmp_path / "a.npz", read_npz)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("array", "options", "words"),
    [
        (SMALL.astype(np.int16), {}, "is a TIFF of int16 samples, which is not read. Save"),
        (SMALL.astype(np.float64), {}, "is a TIFF of float64 samples"),
        (SMALL.astype(np.uint32), {}, "is a TIFF of uint32 samples"),
        (np.stack([SMALL] * 5), {"photometric": "minisblack"}, "holds several images, and one is"),
        (
            np.stack([SMALL] * 3),
            {"photometric": "rgb", "planarconfig": "separate"},
            "is a TIFF whose channels lie apart",
        ),
        (SMALL, {"photometric": "miniswhite"}, "is a TIFF of white is zero, which is not read"),
        (np.stack([SMALL] * 4, 2), {"photometric": "separated"}, "is a TIFF of CMYK"),
        (SMALL.astype(np.uint8) > 4, {}, "is a TIFF of bool samples"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tiff_of_another_kind(tmp_path, array, options, words):
    tifffile.imwrite(tmp_path / "a.tif", array, **options)
    assert refusal(tmp_path / "a.tif").startswith(words)


def test_jpeg_of_another_kind(tmp_path):
    Image.new("CMYK", (16, 16)).save(tmp_path / "a.jpg")
    assert refusal(tmp_path / "a.jpg").startswith("is a JPEG of kind CMYK")


def test_png_with_a_wrong_checksum(tmp_path):
    content = bytearray(cv2.imencode(".png", SMALL)[1].tobytes())
    content[content.index(b"IDAT") + 6] ^= 1
    (tmp_path / "a.png").write_bytes(content)
    words = refusal(tmp_path / "a.png")
    assert words.startswith("cannot be decoded as PNG (broken PNG file (bad header checksum in")


def test_bmp_and_webp_of_another_kind(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"RIFF\x24\0\0\0WAVEfmt " + bytes(30))
    assert refusal(path).startswith("is a RIFF file, and no WebP")
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(path, "WEBP", save_all=True, append_images=frames[1:])
    assert refusal(path).startswith("holds several images, and one is read")
    content = bytearray(cv2.imencode(".bmp", np.zeros((8, 8), np.uint8))[1].tobytes())
    content[30] = 1  # RLE8
    path.write_bytes(content)
    assert refusal(path).startswith("is a BMP packed by RLE")


def test_folders_without_images(tmp_path):
    assert refusal(tmp_path, list_images).startswith("there is no image in it. Images end in .png,")
    assert refusal(tmp_path / "none", list_images).startswith("there is no such folder")
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file", list_images).startswith("is a file. Name the folder")
    with pytest.raises(InputError, match="embedded null"):
        list_images("a\0b")
