"""Prefilter of the joint method: compiled against plain, and what must be true of both."""

import numpy as np
import pytest

from d3s.estimate.clipping import clipped
from d3s.estimate.images import checked_pair
from d3s.estimate.joint.numba_backend.prefilter import NumbaPrefilter
from d3s.estimate.joint.numpy_backend.prefilter import NumpyPrefilter
from d3s.runtime.scratch import Scratch

SHAPES = [(1, 1), (2, 3), (1, 40), (33, 1), (17, 23), (40, 50), (61, 451)]
SMOOTHING = [(0.0, 1), (0.3, 1), (1.0, 1), (4.0, 1), (0.0, 2), (0.3, 2), (1.5, 2), (4.0, 2)]


def _view(shape, seed=0) -> np.ndarray:
    """Gradient, steps and noise, about zero."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape)
    steps = (y // 7 + x // 11) % 2
    return (0.003 * x + 0.4 * steps + 0.1 * rng.standard_normal(shape) - 0.4).astype(np.float32)


@pytest.fixture
def compiled():
    return NumbaPrefilter(Scratch())


@pytest.fixture
def plain():
    return NumpyPrefilter()


# Compiled against plain ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_centred(compiled, plain, shape):
    left, right = _view(shape, 1) + 3, _view(shape, 2) * 5 - 1
    left[0, 0], right[-1, -1] = np.nan, np.inf
    found, expected = compiled.centre(left, right), plain.centre(left, right)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-7)
    assert found[0][0, 0] == found[1][-1, -1] == 0


@pytest.mark.parametrize(("sigma", "step"), SMOOTHING)
@pytest.mark.parametrize("shape", SHAPES)
def test_smooth(compiled, plain, shape, sigma, step):
    view = _view(shape)
    found, expected = compiled.smooth(view, sigma, step), plain.smooth(view, sigma, step)
    assert found.shape == expected.shape == (-(-shape[0] // step), -(-shape[1] // step))
    # Some ten roundings of numbers up to one.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * (1 + np.abs(view).max()))


@pytest.mark.parametrize("half", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("shape", SHAPES)
def test_noise_variance(compiled, plain, shape, half):
    view = _view(shape)
    found, expected = compiled.noise_variance(view, half), plain.noise_variance(view, half)
    assert found.shape == expected.shape == (-(-shape[0] // 2), -(-shape[1] // 2))
    np.testing.assert_allclose(found, expected, rtol=5e-6, atol=3e-9)


# What must be true --------------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [1e-30, 1.0, 1e30])
def test_centred_is_about_zero_and_between_one_and_two(compiled, gain):
    views = [np.float32(gain) * (_view((30, 40), seed) + 5) for seed in (1, 2)]
    both = np.stack(compiled.centre(*views))
    assert abs(both.mean(dtype=np.float64)) < 1e-7
    assert 1 <= np.abs(both).max() < 2


def test_centred_views_without_contrast(compiled, plain):
    for value in (0.0, 7.5, np.nan):
        view = np.full((5, 6), value, dtype=np.float32)
        for ops in (compiled, plain):
            assert not np.any(ops.centre(view, view))


def test_smooth_by_hand(compiled, plain):
    ramp = np.tile(np.arange(7, dtype=np.float32), (3, 1))
    for ops in (compiled, plain):
        # The last column stands for a pixel and its mirror image.
        np.testing.assert_array_equal(ops.smooth(ramp, 0.0, 2), [[0.5, 2.5, 4.5, 6.0]] * 2)
        np.testing.assert_array_equal(ops.smooth(ramp, 0.0, 1), ramp)
        long = np.tile(np.arange(60, dtype=np.float32), (4, 1))
        inner = ops.smooth(long, 1.5, 2)[:, 8:-8]
        np.testing.assert_allclose(inner, [2 * np.arange(8, 22) + 0.5] * 2, rtol=1e-6)


@pytest.mark.parametrize(("sigma", "step"), SMOOTHING)
@pytest.mark.parametrize("shape", [(2, 4), (40, 52)])
def test_smooth_turns_with_the_image(compiled, shape, sigma, step):
    view = _view(shape)
    found = compiled.smooth(view, sigma, step)
    for axis in (0, 1):
        turned = compiled.smooth(np.ascontiguousarray(np.flip(view, axis)), sigma, step)
        np.testing.assert_array_equal(np.flip(turned, axis), found)


@pytest.mark.parametrize(("sigma", "step"), SMOOTHING)
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (31, 45)])
def test_smooth_leaves_a_constant(compiled, plain, shape, sigma, step):
    view = np.full(shape, 0.7, dtype=np.float32)
    for ops in (compiled, plain):
        found = ops.smooth(view, sigma, step)
        np.testing.assert_allclose(found, 0.7, rtol=1e-6)
        assert np.ptp(found) < 1e-15


def test_noise_variance_of_white_noise(compiled):
    rng = np.random.default_rng(3)
    slope = np.add.outer(0.01 * np.arange(200), 0.02 * np.arange(300))
    view = (slope + rng.normal(scale=0.05, size=slope.shape)).astype(np.float32)
    inner = compiled.noise_variance(view, 7)[8:-8, 8:-8]
    # 900 pixels each, and neighbours share theirs.
    assert np.abs(inner / 0.05**2 - 1).max() < 0.4
    assert abs(inner.mean() / 0.05**2 - 1) < 0.02


def test_results_do_not_share_memory(compiled):
    view = _view((40, 60))
    found = [
        *compiled.centre(view, view),
        compiled.smooth(view, 1.0, 1),
        compiled.smooth(view, 1.5, 2),
        compiled.noise_variance(view, 3),
        compiled.noise_variance(view, 3),
    ]
    for i, one in enumerate(found):
        assert not any(np.shares_memory(one, other) for other in found[:i])


# Threads ------------------------------------------------------------------------------------------


def _everything(left, right) -> list[bytes]:
    ops = NumbaPrefilter(Scratch())
    checked = checked_pair(left, right)
    views = ops.centre(*checked)
    images = [*checked, *views, clipped(checked.left), clipped(checked.right)]
    for view in views:
        images += [ops.smooth(view, sigma, step) for sigma, step in SMOOTHING]
        images += [ops.noise_variance(view, half) for half in (0, 5)]
    return [image.tobytes() for image in images]


@pytest.mark.parametrize("kind", ["f4", "f8", "u1"])
def test_threads_do_not_matter(monkeypatch, kind):
    left, right = (np.clip(100 * _view((61, 90), seed) + 90, 50, 140) for seed in (1, 2))
    left[20, 20] = 250
    views = [
        (view.astype(np.float64) + (0.1 if kind == "f8" else 0)).astype(kind)
        for view in (left, right)
    ]
    if kind == "f4":
        views[0][5:8, 5:9] = np.nan
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setenv("D3S_THREADS", str(threads))
        results.append(_everything(*views))
    assert results[0] == results[1] == results[2]
