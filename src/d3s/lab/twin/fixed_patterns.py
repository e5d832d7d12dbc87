"""Patterns that stay the same from frame to frame: gain and offset of each pixel, hot pixels."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from d3s.types import Image

# Separates the fixed patterns from streams that a caller seeds with the same small numbers: NumPy
# pads entropy with zeros, so SeedSequence((0, 0)) is the stream of default_rng(0).
_PATTERN_KEY = int.from_bytes(b"FPN")
_HOT_KEY = int.from_bytes(b"HOT")


@lru_cache(maxsize=4)  # two views of two sensors
def fixed_patterns(shape: tuple[int, ...], pattern_seed: int, camera: int) -> Image:
    """Standard normal numbers (2, rows, cols): gain and offset pattern of each pixel.

    Parameters
    ----------
    shape
        Rows and columns of the view.
    pattern_seed
        Seed of the sensor.
    camera
        0 for the left view, 1 for the right view.
    """
    seed = np.random.SeedSequence((pattern_seed, camera), spawn_key=(_PATTERN_KEY,))
    patterns = np.random.default_rng(seed).standard_normal((2, *shape), dtype=np.float32)
    patterns.setflags(write=False)
    return patterns


@lru_cache(maxsize=4)
def hot_pixels(
    shape: tuple[int, ...], pattern_seed: int, camera: int, share: float
) -> NDArray[np.int64]:
    """Numbers of the hot pixels, counted along rows. A larger share has those of a smaller one.

    Parameters
    ----------
    shape
        Rows and columns of the view.
    pattern_seed
        Seed of the sensor.
    camera
        0 for the left view, 1 for the right view.
    share
        Share of pixels that are hot.
    """
    seed = np.random.SeedSequence((pattern_seed, camera), spawn_key=(_HOT_KEY,))
    hot = np.flatnonzero(np.random.default_rng(seed).random(shape, dtype=np.float32) < share)
    hot.setflags(write=False)
    return hot
