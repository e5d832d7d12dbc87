"""SIMD vectors in compiled loops: results are those of NumPy."""

import numpy as np
import pytest

from d3s.runtime.compile import compiled
from d3s.runtime.simd import SHORTS, count_different_bits, load_16, splat_16, store


@compiled
def _count(one, other, out):
    for place in range(0, out.size, SHORTS):
        both = count_different_bits(load_16(one, place), load_16(other, place))
        store(out, place, both)


@compiled
def _count_from(number, other, out):
    for place in range(0, out.size, SHORTS):
        store(out, place, count_different_bits(splat_16(number), load_16(other, place)))


@pytest.mark.parametrize("seed", range(3))
def test_different_bits_as_numpy_counts_them(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(-(2**15), 2**15, (2, 64 * SHORTS)).astype(np.int16)
    out = np.empty_like(one)
    _count(one, other, out)
    np.testing.assert_array_equal(out, np.bitwise_count((one ^ other).view(np.uint16)))
    _count_from(one[5], other, out)
    np.testing.assert_array_equal(out, np.bitwise_count((one[5] ^ other).view(np.uint16)))
