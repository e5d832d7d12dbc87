"""The operations of the joint method: compiled against plain, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d3s.estimate import kernels
from d3s.estimate.operations import CompiledOperations, View, gaussian_kernel
from d3s.estimate.reference_operations import PlainOperations
from d3s.estimate.refine import noise_gains

COMPILED, PLAIN = CompiledOperations(), PlainOperations()
BOTH = pytest.mark.parametrize("ops", [COMPILED, PLAIN], ids=["compiled", "plain"])
# One pixel, one row, one column, narrower than any window, odd, and more than one band of rows.
SHAPES = [(1, 1), (1, 9), (7, 1), (2, 3), (3, 2), (4, 4), (5, 6), (23, 31), (kernels.BAND + 9, 17)]
SHAPED = pytest.mark.parametrize("shape", SHAPES, ids=str)


def _random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _assert_same(name: str, image: np.ndarray, *arguments, atol: float = 3e-6) -> None:
    ours = getattr(COMPILED, name)(image, *arguments)
    theirs = getattr(PLAIN, name)(image.astype(np.float64), *arguments)
    assert ours.dtype == np.float32
    assert theirs.dtype == np.float64
    assert ours.flags.c_contiguous
    np.testing.assert_allclose(ours, theirs, atol=atol, rtol=1e-6)


# Images -------------------------------------------------------------------------------------------


@SHAPED
@pytest.mark.parametrize("name", ["median_of_nine", "spline", "laplacian", "gradient_x"])
def test_filters_of_one_image(name, shape):
    _assert_same(name, _random(shape))


@SHAPED
@pytest.mark.parametrize("half", [0, 1, 2, 4, 15, 70])
@pytest.mark.parametrize("name", ["window_sums", "window_extent"])
def test_windows(name, shape, half):
    # Sums of many values are rounded once, to 24 bits of their size.
    _assert_same(name, _random(shape), half, atol=3e-6 * (2 * half + 1))


@SHAPED
@pytest.mark.parametrize("step", [1, 2, 4])
@pytest.mark.parametrize("sigma_px", [0.3, 1.0, 4.0])
def test_smoothing(shape, sigma_px, step):
    _assert_same("smooth", _random(shape), sigma_px, step)


@settings(max_examples=40)
@given(
    rows=st.integers(1, 40),
    cols=st.integers(1, 40),
    half=st.integers(0, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_whatever_the_size(rows, cols, half, seed):
    image = _random((rows, cols), seed)
    for name in ("median_of_nine", "spline", "laplacian", "gradient_x"):
        _assert_same(name, image)
    for name in ("window_sums", "window_extent"):
        _assert_same(name, image, half, atol=3e-4)
    _assert_same("smooth", image, 0.2 + half / 5, 1 + half % 4)


@pytest.mark.parametrize("sigma_px", [0.3, 0.5, 1.0, 1.5, 4.0])
def test_gaussian_is_one(sigma_px):
    kernel = gaussian_kernel(sigma_px)
    place = np.arange(kernel.size) - kernel.size // 2
    assert kernel.sum() == pytest.approx(1)
    assert (kernel == kernel[::-1]).all()
    if sigma_px >= 1:  # finer ones are too coarsely sampled to have their own variance
        assert (kernel * place**2).sum() == pytest.approx(sigma_px**2, rel=1e-3)


@BOTH
@SHAPED
def test_smooth_leaves_a_constant(ops, shape):
    image = np.full(shape, 0.3, dtype=ops.dtype)
    np.testing.assert_allclose(ops.smooth(image, 1.5), image, rtol=1e-6)


@BOTH
def test_smooth_goes_on_as_the_mirror_image(ops):
    image = np.array([[1, 2, 5, 3]], dtype=ops.dtype)
    mirrored = np.array([[5, 2, 1, 2, 5, 3, 5, 2]])
    kernel = gaussian_kernel(0.4)
    assert kernel.size == 5
    expected = np.convolve(mirrored[0], kernel, mode="valid")
    np.testing.assert_allclose(ops.smooth(image, 0.4)[0], expected, rtol=1e-6)


@BOTH
def test_smooth_keeps_every_other_pixel(ops):
    image = _random((9, 12)).astype(ops.dtype)
    whole = ops.smooth(image, 1.0)
    np.testing.assert_allclose(ops.smooth(image, 1.0, 2), whole[::2, ::2], rtol=1e-6)
    assert ops.smooth(image, 1.0, 4).shape == (3, 3)


@BOTH
@SHAPED
def test_window_sum_of_ones_is_the_count(ops, shape):
    half = 2
    counts = [
        [
            len(set(range(row - half, row + half + 1)) & set(range(shape[0])))
            * len(set(range(col - half, col + half + 1)) & set(range(shape[1])))
            for col in range(shape[1])
        ]
        for row in range(shape[0])
    ]
    sums = ops.window_sums(np.ones(shape, dtype=ops.dtype), half)
    np.testing.assert_array_equal(sums, counts)


@BOTH
def test_window_sums_forget_what_has_left(ops):
    # A running sum in single precision would keep the rounding of the large values.
    image = np.full((150, 150), 1e-3, dtype=ops.dtype)
    image[:5, :5] = 1e4
    np.testing.assert_allclose(ops.window_sums(image, 1)[80:-1, 80:-1], 9e-3, rtol=1e-5)


@BOTH
def test_extent_by_hand(ops):
    image = np.array([[0, 3, 1], [5, 2, 2], [4, 4, 9]], dtype=ops.dtype)
    np.testing.assert_array_equal(ops.window_extent(image, 1), [[5, 5, 2], [5, 9, 8], [3, 7, 7]])
    np.testing.assert_array_equal(ops.window_extent(image, 0), np.zeros((3, 3)))


@BOTH
def test_median_by_hand(ops):
    image = np.array([[1, 9, 2], [8, 3, 7], [4, 6, 5]], dtype=ops.dtype)
    # At the corner: 1 1 9, 1 1 9, 8 8 3.
    expected = {(1, 1): 5, (0, 0): 3, (2, 2): 5, (0, 1): 3}
    found = ops.median_of_nine(image)
    assert {place: found[place] for place in expected} == expected


@BOTH
@pytest.mark.parametrize("cols", [2, 3, 4, 5, 9, 30, 101])
def test_spline_passes_through_the_pixels(ops, cols):
    image = _random((3, cols)).astype(ops.dtype)
    wide = np.pad(ops.spline(image), ((0, 0), (1, 1)), mode="reflect")
    through = (wide[:, :-2] + 4 * wide[:, 1:-1] + wide[:, 2:]) / 6
    np.testing.assert_allclose(through, image, atol=1e-6)


@BOTH
def test_spline_of_a_constant(ops):
    for cols in (1, 2, 5, 40):
        image = np.full((2, cols), 0.7, dtype=ops.dtype)
        np.testing.assert_allclose(ops.spline(image), image, rtol=1e-6)


@BOTH
def test_derivatives_of_polynomials(ops):
    row, col = np.mgrid[:12, :14].astype(ops.dtype)
    quartic = (col / 10) ** 4
    inner = ops.gradient_x(quartic)[:, 2:-2]
    np.testing.assert_allclose(inner, 0.4 * (col[:, 2:-2] / 10) ** 3, atol=1e-5)
    line = ops.gradient_x(3 * col + row)
    np.testing.assert_allclose(line[:, 2:-2], 3, rtol=1e-6)
    assert (line[:, [0, 1, -2, -1]] == 0).all()
    quadratic = 2 * col**2 + 0.5 * row**2 + col * row
    np.testing.assert_allclose(ops.laplacian(quadratic)[1:-1, 1:-1], 5, rtol=1e-5)


@BOTH
def test_laplacian_at_the_border(ops):
    found = ops.laplacian(np.array([[1, 2], [4, 8]], dtype=ops.dtype))
    np.testing.assert_array_equal(found, [[4, 5], [1, -10]])


# Views --------------------------------------------------------------------------------------------


def _view(image: np.ndarray, ops) -> View:
    image = np.ascontiguousarray(image, dtype=ops.dtype)
    return View(image, ops.laplacian(image))


def _compare(ops, left, right, disparity, defocus):
    one = _view(left, ops)
    disparity = np.asarray(disparity, dtype=ops.dtype)
    spline = _view(ops.spline(right.astype(ops.dtype)), ops)
    return ops.compare(one, ops.gradient_x(one.image), spline, disparity, defocus)


@SHAPED
@pytest.mark.parametrize("defocus", [(0.0, 0.0), (-1.3, 0.04)])
def test_compare(shape, defocus):
    left, right = _random(shape), _random(shape, 1)
    disparity = _random(shape, 2) * shape[1]
    ours = _compare(COMPILED, left, right, disparity, defocus)
    theirs = _compare(PLAIN, left, right, disparity, defocus)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=3e-5)


@BOTH
def test_compare_at_a_whole_shift(ops):
    right = _random((5, 30))
    left = np.roll(right, 3, axis=1)
    seen = _compare(ops, left, right, np.full((5, 30), 3), (0.0, 0.0))
    inner = slice(4, 29)
    np.testing.assert_allclose(seen.residual[:, inner], 0, atol=1e-6)
    np.testing.assert_allclose(seen.mean[:, inner], left[:, inner], atol=1e-6)


@BOTH
def test_compare_says_nothing_beyond_the_frame(ops):
    left, right = _random((2, 12)), _random((2, 12), 1)
    seen = _compare(ops, left, right, np.full((2, 12), 4.5), (1.0, 1.0))
    # Column 6 looks at 1.5 and has all four coefficients, column 5 looks at 0.5 and has not.
    assert (seen.residual[:, :6] == 0).all()
    assert (seen.gradient[:, :6] == 0).all()
    np.testing.assert_array_equal(seen.mean[:, :6], left[:, :6].astype(ops.dtype))
    assert (seen.residual[:, 6:] != 0).all()
    back = _compare(ops, left, right, np.full((2, 12), -2.5), (1.0, 1.0))
    assert (back.residual[:, 8:] == 0).all()  # column 7 looks at 9.5, between the last but one two
    assert (back.residual[:, :8] != 0).all()


@pytest.mark.parametrize("defocus", [(0.0, 0.0), (-1.3, 0.04), (2.0, -0.1)])
def test_gradient_is_that_of_the_residual(defocus):
    # Of a smooth pair: the residual's derivative has the right view's slope, the gradient has the
    # mean of both, which is the same where both views show the same.
    col = np.arange(60.0)
    shape = np.tile(np.sin(0.3 * col), (3, 1))
    disparity, small = np.full((3, 60), 4.3), 1e-4
    left = np.tile(np.sin(0.3 * (col - 4.3)), (3, 1))
    ahead = _compare(PLAIN, left, shape, disparity + small, defocus).residual
    behind = _compare(PLAIN, left, shape, disparity - small, defocus).residual
    blurred = defocus[0] + defocus[1] * 4.3  # its part in the derivative is of third order
    slope = (ahead - behind) / (2 * small)
    gradient = _compare(PLAIN, left, shape, disparity, defocus).gradient
    inner = slice(12, -12)
    allowed = 2e-4 + 0.5 * abs(blurred) * 0.3**3
    assert np.abs(slope - gradient)[1, inner].max() < allowed


def _costs(ops, left, right, shifts, defocus, **numbers):
    told = {"half": 2, "floor": 0.1, "tolerance": 0.25, "limit": 2.0, **numbers}
    views = _view(left, ops), _view(right, ops)
    return ops.matching_costs(*views, np.asarray(shifts), np.asarray(defocus, dtype=float), **told)


@SHAPED
@pytest.mark.parametrize("half", [0, 1, 2])
@pytest.mark.parametrize("shifts", [range(-2, 4), range(3, 7), range(-40, -37)], ids=str)
def test_matching_costs(shape, half, shifts):
    shifts = list(shifts)
    arguments = (_random(shape), _random(shape, 1), shifts, np.linspace(-2, 2, len(shifts)))
    ours = _costs(COMPILED, *arguments, half=half)
    theirs = _costs(PLAIN, *arguments, half=half)
    assert ours.dtype == np.float32
    assert ours.shape == (*shape, len(shifts))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@BOTH
def test_matching_cost_by_hand(ops):
    left = np.array([[1, 2, 4, 1, 3]], dtype=np.float32)
    right = np.array([[2, 4, 2, 3, 0]], dtype=np.float32)
    costs = _costs(ops, left, right, [0, 1, 4], [0, 0, 0], half=1, floor=0.5, limit=9.0)
    # Column 2 at shift 0: 2 4 1 against 4 2 3, squares 4 4 4, energy 20 20 10.
    assert costs[0, 2, 0] == pytest.approx(12 / (3 * 0.5 + 0.25 * 50))
    # At shift 1: 2 4 1 against 2 4 2, squares 0 0 1, energy 8 32 5.
    assert costs[0, 2, 1] == pytest.approx(1 / (3 * 0.5 + 0.25 * 45))
    np.testing.assert_array_equal(costs[0, :, 2], 9.0)  # one column in common: no window in it
    np.testing.assert_array_equal(costs[0, [0, 4], 0], 9.0)
    np.testing.assert_array_equal(costs[0, [0, 1, 4], 1], 9.0)


@BOTH
def test_views_blurred_alike_cost_nothing(ops):
    # Half of the blur between them is taken off the one view, half is added to the other.
    sharp = _random((9, 12)).astype(np.float64)
    left = right = sharp
    for _ in range(100):  # until left + 0.1 lap(left) is right - 0.1 lap(right)
        left = sharp - 0.1 * PLAIN.laplacian(left)
        right = sharp + 0.1 * PLAIN.laplacian(right)
    costs = _costs(ops, left, right, [0, 1], [0.2, 0.2], floor=1e-3)
    assert costs[:, 2:-2, 0].max() < 1e-6
    assert costs[:, 3:-2, 1].min() > 0.1


# Paths and picks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 6, 4), (5, 1, 1), (7, 9, 2), (11, 13, 20)])
@pytest.mark.parametrize("steps", [(0.0, 0.0), (0.3, 0.9), (5.0, 100.0)])
def test_path_sums(shape, steps):
    costs = np.abs(_random(shape))
    ours = COMPILED.path_sums(costs, *steps)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, PLAIN.path_sums(costs.astype(float), *steps), atol=1e-5)


@BOTH
def test_path_sums_by_hand(ops):
    # One row of three pixels and two shifts; a step costs 1 (large ones more, but there are none).
    costs = np.array([[[0, 3], [2, 0], [5, 1]]], dtype=ops.dtype)
    # From the left: 0 3 | 2 + 0, 0 + min(3, 0 + 1) | least 1: 5 + min(2, 2) - 1, 1 + 1 - 1.
    left = np.array([[0, 3], [2, 1], [6, 1]])
    # From the right: 5 1 | least 1: 2 + min(5, 2) - 1, 0 + 0 | least 0: 0 + min(3, 1), 3 + 0.
    right = np.array([[1, 3], [3, 0], [5, 1]])
    # From above and from below there is nothing before: the costs themselves.
    expected = left + right + 2 * costs[0]
    np.testing.assert_allclose(ops.path_sums(costs, 1.0, 7.0)[0], expected)
    # A column of three is the same the other way round.
    turned = np.ascontiguousarray(costs.swapaxes(0, 1))
    np.testing.assert_allclose(ops.path_sums(turned, 1.0, 7.0)[:, 0], expected)


@BOTH
def test_large_steps_cost_the_same_however_large(ops):
    costs = np.full((1, 2, 5), 9.0, dtype=ops.dtype)
    costs[0, 0, 0] = 0
    costs[0, 1, [1, 2, 4]] = 1
    total = ops.path_sums(costs, 0.5, 2.0)
    from_left = total[0, 1] - 3 * costs[0, 1]
    np.testing.assert_allclose(from_left, [9, 1.5, 3, 11, 3])


@BOTH
def test_paths_without_a_price_leave_each_pixel_alone(ops):
    costs = np.abs(_random((6, 7, 5))).astype(ops.dtype)
    total = ops.path_sums(costs, 0.0, 0.0)
    np.testing.assert_array_equal(total.argmin(axis=2), costs.argmin(axis=2))


@pytest.mark.parametrize("shape", [(1, 1, 3), (4, 1, 2), (1, 7, 1), (9, 11, 3), (8, 9, 30)])
@pytest.mark.parametrize("first", [-5, 0, 4, 90])
def test_picks(shape, first):
    total = np.abs(_random(shape))
    ours, theirs = COMPILED.pick_left(total), PLAIN.pick_left(total.astype(float))
    assert ours.step.dtype == np.float32
    np.testing.assert_allclose(ours.step, theirs.step, atol=1e-5)
    np.testing.assert_array_equal(ours.lowest, theirs.lowest)
    np.testing.assert_array_equal(ours.other, theirs.other)
    right = COMPILED.pick_right(total, first)
    np.testing.assert_array_equal(right, PLAIN.pick_right(total.astype(float), first))
    if first == 90:
        assert (right == -1).all()


@BOTH
def test_pick_left_finds_the_parabola(ops):
    step = np.arange(8)
    total = np.array([[(step - 3.3) ** 2, abs(step - 7.0), abs(step - 0.0)]], dtype=ops.dtype)
    pick = ops.pick_left(total)
    np.testing.assert_allclose(pick.step, [[3.3, 7, 0]], atol=1e-6)  # the ends have one side only
    np.testing.assert_array_equal(pick.lowest, [[3, 7, 0]])
    np.testing.assert_array_equal(pick.other, -1)  # the flanks of a valley are no other


@BOTH
def test_pick_left_of_equals(ops):
    total = np.array([[[1, 1, 1, 1], [4, 2, 2, 4], [2, 9, 9, 2]]], dtype=ops.dtype)
    pick = ops.pick_left(total)
    np.testing.assert_allclose(pick.step, [[0, 1.5, 0]])
    np.testing.assert_array_equal(pick.other, [[2, -1, 3]])


@BOTH
def test_pick_left_names_the_next_best_valley(ops):
    total = np.array([[[5, 1, 4, 3, 6, 2, 2.5]]], dtype=ops.dtype)
    pick = ops.pick_left(total)
    assert (pick.lowest, pick.other) == (1, 5)


@BOTH
def test_pick_right_by_hand(ops):
    # Shifts 1 and 2; pixel x of the right view is at x + 1 and x + 2 of the left one.
    total = np.array([[[7, 7], [3, 7], [2, 1], [5, 4]]], dtype=ops.dtype)
    # Column 0: total[1, 0] = 3, total[2, 1] = 1. Column 1: total[2, 0] = 2, total[3, 1] = 4.
    # Column 2: total[3, 0] = 5 only. Column 3: none.
    np.testing.assert_array_equal(ops.pick_right(total, 1), [[1, 0, 0, -1]])


# Noise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma_px", [1.5, 4.0])
def test_noise_after_a_gaussian(sigma_px):
    # White noise after a Gaussian, by integrals over the plane.
    gains = noise_gains(sigma_px)
    assert gains.smoothed == pytest.approx(1 / (4 * np.pi * sigma_px**2), rel=1e-3)
    assert gains.area_px == pytest.approx(2 * np.pi * sigma_px**2, rel=1e-3)
    # Five points are nearly a derivative; second differences are less of a Laplacian.
    assert gains.gradient == pytest.approx(1 / (8 * np.pi * sigma_px**4), rel=0.06)
    assert gains.laplacian == pytest.approx(1 / (2 * np.pi * sigma_px**6), rel=0.35)


@pytest.mark.parametrize("sigma_px", [0.0, 0.5, 1.0, 2.0])
def test_noise_gains_are_those_of_noise(sigma_px):
    noise = np.random.default_rng(0).standard_normal((400, 400))
    spread = PLAIN.smooth(noise, sigma_px) if sigma_px else noise
    gains = noise_gains(sigma_px)
    near = {"rel": 0.08}  # of some 10,000 independent samples, or fewer
    assert gains.smoothed == pytest.approx(spread.var(), **near)
    assert gains.laplacian == pytest.approx(PLAIN.laplacian(spread).var(), **near)
    assert gains.gradient == pytest.approx(PLAIN.gradient_x(spread)[:, 2:-2].var(), **near)
