"""One small good file of each kind, written by OpenCV, Pillow, tifffile or numpy, not by D3S."""

import io
from collections.abc import Callable

import cv2
import numpy as np
import tifffile
from PIL import Image

_RNG = np.random.default_rng(1)
# Soft noise, of which every codec has something to pack; the height and width fill no block.
GREY16 = cv2.GaussianBlur(_RNG.integers(0, 65536, (21, 35), dtype=np.uint16), (0, 0), 1.5)
GREY8 = (GREY16 >> 8).astype(np.uint8)
COLOUR8 = cv2.GaussianBlur(_RNG.integers(0, 256, (21, 35, 3), dtype=np.uint8), (0, 0), 1.5)
COLOUR16 = COLOUR8.astype(np.uint16) * 257 - COLOUR8[::-1]
FLOAT = (GREY16 / 65535).astype(np.float32)


def opencv(suffix: str, array: np.ndarray, *options: int) -> bytes:
    return cv2.imencode(suffix, array, options)[1].tobytes()


def pillow(kind: str, array: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, kind, **options)
    return buffer.getvalue()


def palette(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(COLOUR8).convert("P", palette=Image.Palette.ADAPTIVE).save(buffer, kind)
    return buffer.getvalue()


def tiff(array: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array, **options)
    return buffer.getvalue()


def numpy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


# The first of each format gets the most damage.
GOOD: dict[str, Callable[[], bytes]] = {
    "png": lambda: opencv(".png", GREY16),
    "png colour": lambda: pillow("PNG", COLOUR8),
    "png grey 8": lambda: pillow("PNG", GREY8),
    "png colour 16": lambda: opencv(".png", COLOUR16),
    "png palette": lambda: palette("PNG"),
    "bmp": lambda: pillow("BMP", COLOUR8),
    "bmp grey": lambda: pillow("BMP", GREY8),
    "bmp palette": lambda: palette("BMP"),
    "webp": lambda: pillow("WEBP", COLOUR8),
    "webp lossless": lambda: pillow("WEBP", COLOUR8, lossless=True),
    "pgm": lambda: opencv(".pgm", GREY16),
    "pgm 8": lambda: opencv(".pgm", GREY8),
    "ppm": lambda: opencv(".ppm", COLOUR8),
    "pfm": lambda: opencv(".pfm", FLOAT),
    "npy": lambda: numpy(GREY16),
    "npy float": lambda: numpy(FLOAT),
    "tiff": lambda: tiff(GREY16),
    "tiff float": lambda: tiff(FLOAT),
    "tiff strips": lambda: tiff(GREY16, rowsperstrip=4),
    "tiff tiles": lambda: tiff(GREY16, tile=(16, 16)),
    "tiff deflate": lambda: tiff(GREY16, compression="zlib", predictor=2),
    "tiff lzw": lambda: opencv(".tif", GREY16),
    "tiff packbits": lambda: pillow("TIFF", COLOUR8, compression="packbits"),
    "tiff big": lambda: tiff(GREY16, bigtiff=True, byteorder=">"),
    "jpeg": lambda: pillow("JPEG", COLOUR8),
    "jpeg grey": lambda: pillow("JPEG", GREY8, quality=95),
    "jpeg progressive": lambda: pillow("JPEG", COLOUR8, progressive=True),
    "jpeg restarts": lambda: pillow("JPEG", COLOUR8, restart_marker_blocks=2),
}
