"""Blocks of the left view found in the right one, wherever they are."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from d3s.estimate.diagnosis.blocks import match_blocks

SHAPE = (160, 300)


def _texture(seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal((SHAPE[0] + 40, SHAPE[1] + 160))
    return gaussian_filter(noise, 1.5).astype(np.float32)


def _cut(texture: np.ndarray, rows: int = 0, cols: int = 0) -> np.ndarray:
    """Window of the texture whose content lies `rows` lower and `cols` further right."""
    top, left = 20 - rows, 80 - cols
    return np.ascontiguousarray(texture[top : top + SHAPE[0], left : left + SHAPE[1]])


@pytest.mark.parametrize(("rows", "disparity"), [(0, 30), (0, -45), (5, 12), (-3, 0)])
def test_shift_is_found(rows, disparity):
    texture = _texture()
    found = match_blocks(_cut(texture), _cut(texture, rows, -disparity))
    assert found.is_sure.mean() > 0.5
    np.testing.assert_allclose(found.disparity_px[found.is_sure], disparity, atol=0.3)
    np.testing.assert_allclose(found.rows_px[found.is_sure], rows, atol=0.3)
    np.testing.assert_allclose(found.contrast[found.is_sure], 0, atol=0.02)


def test_noise_and_unlike_views_are_not_matched():
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((2, *SHAPE)).astype(np.float32)
    found = match_blocks(*noise)
    assert not found.is_sure.any()
    assert found.is_plain_left.all()
    assert found.is_plain_right.all()
    other = match_blocks(_cut(_texture(0)), _cut(_texture(1)))
    assert not other.is_sure.any()
    assert not other.is_plain_left.any()


def test_views_without_anything():
    assert match_blocks(*np.zeros((2, 20, 300), np.float32)) is None
    for value in (0.0, np.nan):
        found = match_blocks(*np.full((2, *SHAPE), value, np.float32))
        assert not found.is_sure.any()
        assert np.isfinite(found.contrast).all()
