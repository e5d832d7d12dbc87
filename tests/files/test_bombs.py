"""Small files that declare a huge size: test 2 of what the project must withstand."""

import io
import struct
import tracemalloc
import zipfile
import zlib

import cv2
import numpy as np
import pytest
import tifffile

from d3s.errors import InputError
from d3s.files import read_image, read_npz

SIDE = 60_000  # 3.6 gigapixels


def png(side: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0)
    checked = b"\0\0\0\x0d" + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + checked + bytes(200)


def tiff(side: int) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, np.zeros((16, 16), np.uint16), metadata=None)
    content = bytearray(buffer.getvalue())
    for tag in (256, 257):
        at = content.index(struct.pack("<HH", tag, 4))
        struct.pack_into("<I", content, at + 8, side)
    return bytes(content)


def npy(side: int) -> bytes:
    buffer = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (side, side)}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + bytes(100)


def pgm(side: int) -> bytes:
    return f"P5 {side} {side} 65535\n".encode() + bytes(100)


def pfm(side: int) -> bytes:
    return f"Pf\n{side} {side}\n-1\n".encode() + bytes(100)


def jpeg(side: int) -> bytes:
    content = bytearray(cv2.imencode(".jpg", np.zeros((16, 16), np.uint8))[1].tobytes())
    struct.pack_into(">HH", content, content.index(b"\xff\xc0") + 5, side, side)
    return bytes(content)


def peak_rise_mb(path, reader, **options: int) -> float:
    """Memory that a refused file took for a moment; numpy reports what it allocates too."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"declares|says|fewer|do not fill"):
            reader(path, **options)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bomb", [png, tiff, npy, pgm, pfm, jpeg])
def test_huge_declared_size_is_refused_from_the_header(tmp_path, bomb):
    path = tmp_path / "bomb"
    path.write_bytes(bomb(SIDE))
    with pytest.raises(InputError, match="declares 60000 x 60000 pixels, more than max_pixels="):
        read_image(path)
    assert peak_rise_mb(path, read_image) < 1


@pytest.mark.parametrize("bomb", [npy, pgm, pfm, jpeg])
def test_declared_size_below_the_cap_is_not_believed_either(tmp_path, bomb):
    path = tmp_path / "bomb"
    path.write_bytes(bomb(7_000))
    assert peak_rise_mb(path, read_image) < 50


def test_cap_is_exact_and_can_be_moved(tmp_path):
    path = tmp_path / "a.pgm"
    path.write_bytes(b"P5 4 3 255\n" + bytes(12))
    assert read_image(path, max_pixels=12).shape == (3, 4)
    with pytest.raises(
        InputError, match=r"4 x 3 pixels, more than max_pixels=11.*raise max_pixels"
    ):
        read_image(path, max_pixels=11)


def test_large_file_is_refused_unread(tmp_path):
    path = tmp_path / "a.pgm"
    with path.open("wb") as file:  # a file with a hole takes no space
        file.write(b"P5 4 3 255\n")
        file.truncate(10_000_000_000)
    tracemalloc.start()
    with pytest.raises(InputError, match="has 10000000000 bytes, more than"):
        read_image(path)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


def test_png_that_inflates_to_more_than_it_declares(tmp_path):
    content = bytearray(cv2.imencode(".png", np.zeros((4, 4), np.uint8))[1].tobytes())
    at = content.index(b"IDAT")
    packed = b"IDAT" + zlib.compress(bytes(50_000_000))
    chunk = struct.pack(">I", len(packed) - 4) + packed + struct.pack(">I", zlib.crc32(packed))
    path = tmp_path / "a.png"
    path.write_bytes(content[: at - 4] + chunk + b"\0\0\0\0IEND\xaeB`\x82")
    tracemalloc.start()
    with pytest.raises(InputError, match="holds more PNG pixels than its header says"):
        read_image(path)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_archive_that_declares_more_than_it_may(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(20_000_000))
    assert peak_rise_mb(path, read_npz, max_bytes=10_000_000) < 1
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", npy(SIDE))
    with pytest.raises(InputError, match=r"a\.npy: has 100 bytes of samples.*says 14400000000"):
        read_npz(path)
