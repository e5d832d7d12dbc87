"""Small files that declare a huge size: test 2 of what the project must withstand."""

import io
import resource
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile

import d3s
from d3s.cli.description import info
from d3s.errors import InputError
from d3s.files import read_image, read_npz
from d3s.files.depth_files import read_depth
from pngs import png_file

SIDE = 60_000  # 3.6 gigapixels


def png(side: int) -> bytes:
    return png_file(side, side, 16, 0, bytes(200))


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


def bmp(side: int) -> bytes:
    content = bytearray(cv2.imencode(".bmp", np.zeros((16, 16), np.uint8))[1].tobytes())
    struct.pack_into("<ii", content, 18, side, side)
    return bytes(content)


def webp(side: int) -> bytes:
    """An extended header, since others have no room for so many pixels."""
    frame = cv2.imencode(".webp", np.zeros((16, 16, 3), np.uint8))[1].tobytes()[12:]
    size = (side - 1).to_bytes(3, "little")
    chunks = b"VP8X" + struct.pack("<II", 10, 0) + size + size + frame
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks


def resident_mb() -> float:
    """Memory of this process now: libraries in C allocate what tracemalloc does not see."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def peak_rise_mb(path, reader, **options: int) -> float:
    """Memory that a refused file took for a moment; numpy reports what it allocates too."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"declares|says|fewer|cannot be (decoded|unpacked)"):
            reader(path, **options)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bomb", [png, tiff, npy, pgm, pfm, jpeg, bmp, webp])
def test_huge_declared_size_is_refused_from_the_header(tmp_path, bomb):
    path = tmp_path / "bomb"
    path.write_bytes(bomb(SIDE))
    with pytest.raises(InputError, match="declares 60000 x 60000 pixels, more than max_pixels="):
        read_image(path)
    assert peak_rise_mb(path, read_image) < 1


@pytest.mark.parametrize("bomb", [png, tiff, npy, pgm, pfm, jpeg, bmp, webp])
def test_declared_size_below_the_cap_is_not_believed_either(tmp_path, bomb):
    path = tmp_path / "bomb"
    path.write_bytes(bomb(7_000))
    with suppress(InputError):
        read_image(path)  # once before, since it imports what it needs
    before = resident_mb()
    assert peak_rise_mb(path, read_image) < 50
    assert resident_mb() - before < 50


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
    assert read_image(path).shape == (4, 4)
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


def npz_of_zeros(path, shape: tuple[int, int], zeros: int) -> None:
    """Array of zeros in a thousandth of the space, or of more zeros than all headers declare."""
    header = io.BytesIO()
    fields = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    start, samples = header.getvalue(), bytes(zeros)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("depth_m.npy", start + samples)
    declared = len(start) + 4 * shape[0] * shape[1]
    sizes = (struct.pack("<I", size) for size in (len(start) + zeros, declared))
    path.write_bytes(path.read_bytes().replace(*sizes))


@pytest.mark.parametrize("reader", [read_depth, d3s.DepthMap.load, read_npz, info])
def test_archive_of_more_pixels_than_the_cap_is_not_unpacked(tmp_path, reader):
    path = tmp_path / "a.npz"
    npz_of_zeros(path, (8001, 8000), 4 * 8001 * 8000)
    before = resident_mb()
    assert peak_rise_mb(path, reader) < 5
    assert resident_mb() - before < 50
    with pytest.raises(InputError, match="declares 8000 x 8001 pixels, more than max_pixels="):
        reader(path)


def test_archive_that_holds_more_than_it_declares_is_not_unpacked_further(tmp_path):
    path = tmp_path / "a.npz"
    npz_of_zeros(path, (10, 25), 200_000_000)
    assert peak_rise_mb(path, read_npz) < 5
