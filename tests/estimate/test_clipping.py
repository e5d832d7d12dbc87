"""Clipped pixels: plateaus of white and black."""

import numpy as np
import pytest

from d3s.estimate.clipping import clipped


def _scene() -> np.ndarray:
    """A bright disk on a dark slope, with noise."""
    y, x = np.mgrid[0:60.0, 0:80.0]
    light = 0.2 + 0.005 * x + 0.9 * np.exp(-((x - 40) ** 2 + (y - 30) ** 2) / 400)
    return (light + np.random.default_rng(0).normal(scale=0.01, size=light.shape)).astype("f4")


def test_plateau_of_white():
    scene = _scene()
    white = scene >= 1
    found = clipped(np.clip(scene, 0, 1))
    assert white[30, 40]
    assert not (found & ~white).any()
    assert (found & white).sum() > 0.95 * white.sum()


def test_views_that_are_not_clipped():
    assert not clipped(_scene()).any()
    assert not clipped((255 * _scene() / 2).astype(np.uint8).astype(np.float32)).any()


def _clipped_in_numpy(image: np.ndarray) -> np.ndarray:
    def around(mask):
        padded = np.pad(mask.astype(np.int64), 1, mode="edge")
        blocks = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
        return blocks.sum(axis=(2, 3))

    found = np.zeros(image.shape, dtype=bool)
    for limit in (np.nanmin(image), np.nanmax(image)):
        at_limit = image == limit
        if at_limit.sum() >= min(5, image.size):
            core = at_limit & (around(at_limit) >= 5)
            found |= at_limit & (around(core) > 0)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_compiled_matches_numpy(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 20, 2)
    image = np.clip(rng.normal(0.5, rng.uniform(0.1, 2), shape), 0, 1).astype(np.float32)
    image[1:][rng.uniform(size=(shape[0] - 1, shape[1])) < 0.05] = np.nan
    np.testing.assert_array_equal(clipped(image), _clipped_in_numpy(image))
