"""Rows of a large PNG, which OpenCV does not get: as filtered here, and as others write them."""

import zlib

import cv2
import numpy as np
import pytest

from d3s.files import png, png_rows, read_image

RNG = np.random.default_rng(0)


def paeth(left: int, up: int, corner: int) -> int:
    """As the specification has it."""
    return min((left, up, corner), key=lambda one: abs(left + up - corner - one))


def filtered(plain: np.ndarray, kinds: list[int], pixel_bytes: int) -> bytes:
    """Rows as a program that writes PNG would filter them, byte by byte."""
    rows = []
    for row, kind in enumerate(kinds):
        line = [kind]
        for i, value in enumerate(plain[row].tolist()):
            left = int(plain[row, i - pixel_bytes]) if i >= pixel_bytes else 0
            up = int(plain[row - 1, i]) if row else 0
            corner = int(plain[row - 1, i - pixel_bytes]) if row and i >= pixel_bytes else 0
            guess = (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]
            line.append((value - guess) % 256)
        rows.append(bytes(line))
    return b"".join(rows)


@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize(("channels", "sample_bytes"), [(1, 1), (1, 2), (3, 1), (3, 2)])
def test_every_filter_is_undone_in_every_row(first, channels, sample_bytes):
    kinds = [first, *range(5), *reversed(range(5))]
    size = 7 * channels * sample_bytes
    plain = RNG.integers(0, 256, (len(kinds), size), dtype=np.uint8)
    plain[-3:, ::2] = 128  # where neighbours are equal, the order of the guesses decides
    told = filtered(plain, kinds, channels * sample_bytes)
    found = png_rows.samples(told, len(kinds), channels, sample_bytes)
    wide = plain if sample_bytes == 1 else plain.view(">u2")
    assert found.shape == (len(kinds), 7, channels)
    assert found.dtype == (np.uint8 if sample_bytes == 1 else np.uint16)
    assert np.array_equal(found, wide.reshape(found.shape))


@pytest.mark.parametrize("shape", [(700, 801), (500, 401, 3)], ids=["grey", "colour"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_large_files_are_read_as_opencv_reads_them(tmp_path, monkeypatch, shape, dtype):
    soft = cv2.GaussianBlur(RNG.random(shape), (0, 0), 2)
    array = (soft / soft.max() * np.iinfo(dtype).max).astype(dtype)
    path = tmp_path / "a.png"
    cv2.imwrite(str(path), array)
    monkeypatch.setattr(png_rows, "worth_it", lambda _: True)
    here = read_image(path)
    monkeypatch.setattr(png_rows, "worth_it", lambda _: False)
    assert np.array_equal(here, read_image(path))


def test_large_files_go_this_way_and_small_ones_do_not(monkeypatch):
    def never(*_):
        raise AssertionError

    for side, is_here in ((1000, False), (2100, True)):
        raw = png.encode(np.zeros((side, side), np.uint16))
        with monkeypatch.context() as patched:
            patched.setattr(*((png, "_decode") if is_here else (png_rows, "samples")), never)
            assert png.read(raw, 10_000_000).values.shape[:2] == (side, side)


def test_an_unknown_filter_is_refused(tmp_path):
    raw = png.encode(np.zeros((800, 800), np.uint16))
    rows = bytearray(zlib.decompress(b"".join(b for k, b in png.chunks_of(raw) if k == b"IDAT")))
    rows[1601 * 400] = 5
    chunks = [png.chunks_of(raw)[0], (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b"")]
    path = tmp_path / "a.png"
    path.write_bytes(png.SIGNATURE + b"".join(png._chunk(*one) for one in chunks))
    with pytest.raises(png.InputError, match="unknown filter"):
        read_image(path)
