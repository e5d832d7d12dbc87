"""The refinement: compiled against plain, and both against arithmetic."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import d3s
from d3s.estimate.flags import Flag
from d3s.estimate.joint.numba_backend.refine import NumbaRefine
from d3s.estimate.joint.numpy_backend.prefilter import NumpyPrefilter
from d3s.estimate.joint.numpy_backend.refine import NumpyRefine
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.joint.refine import fit_parameters
from d3s.estimate.joint.types import (
    UNKNOWN_PX,
    CellFit,
    CellSum,
    FitParameters,
    SurfaceLimits,
    WindowFit,
)
from d3s.runtime.scratch import Scratch

RIG = d3s.Rig.paper_prototype()
PLAIN = NumpyRefine()
BOTH = pytest.mark.parametrize("ops", [NumbaRefine(Scratch()), PLAIN], ids=["compiled", "plain"])
# Scale and side of a cell: all that there are.
GRIDS = [(1, 2), (1, 1), (2, 2), (4, 1)]
GRID = pytest.mark.parametrize(("scale", "cell"), GRIDS, ids=str)
# One pixel, one row, one column, narrower than any window, odd, and wider than a tile of cells.
SHAPES = [(1, 1), (1, 12), (11, 1), (2, 9), (7, 5), (35, 61), (48, 64), (37, 431)]
SHAPED = pytest.mark.parametrize("shape", SHAPES, ids=str)
WINDOWS = [(9,), (9, 23), (9, 23, 57)]


class Case(NamedTuple):
    """A pair at one scale and what is asked of it; in single precision, as the engine has it."""

    left: np.ndarray
    right: np.ndarray
    disparity: np.ndarray
    anchor: np.ndarray
    usable: np.ndarray
    noise: np.ndarray
    wanted: np.ndarray
    parameters: FitParameters

    @property
    def in_reach(self) -> np.ndarray:
        """Cells that the windows of wanted ones hold."""
        size = 2 * self.parameters.window_halves[-1] + 1
        return ndimage.maximum_filter(self.wanted, size, mode="constant", cval=False)


def _random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _fit_parameters(shape, scale, cell, windows_px=(9, 23, 57)) -> FitParameters:
    options = d3s.JointOptions(windows_px=windows_px, search_scale=2 if cell * scale > 1 else 1)
    plan = make_plan(RIG.optics, options, tuple(scale * size for size in shape))
    parameters = fit_parameters(shape, scale, plan)
    assert parameters.cell_side == cell
    return parameters


@cache
def _rendered(scale: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Both views of a plane at a depth that is fitted at this scale, and its disparity."""
    depth_m = {1: 1.0, 2: 0.45, 4: 0.3}[scale]
    shape = (64 * scale, 440 * scale)
    pair = d3s.simulate(d3s.Plane(depth_m=depth_m, texture="leaves"), RIG, noise=0.01, shape=shape)
    views = NumpyPrefilter().centre(pair.left, pair.right)
    for step, sigma in {1: [(1, 1.0)], 2: [(2, 1.5)], 4: [(2, 1.5), (2, 2.4)]}[scale]:
        views = tuple(NumpyPrefilter().smooth(view, sigma, step) for view in views)
    return *views, float(RIG.optics.disparity_px(depth_m)) / scale


def _views(kind: str, shape, scale) -> tuple[np.ndarray, np.ndarray, float]:
    if kind == "rendered":
        left, right, disparity = _rendered(scale)
        cut = slice(0, shape[0]), slice(0, shape[1])
        left, right = (np.ascontiguousarray(view[cut], np.float32) for view in (left, right))
        return left, right, disparity
    if kind == "flat":
        return np.full(shape, 0.7, np.float32), np.full(shape, 0.7, np.float32), 3.0
    return _random(shape), _random(shape, 1), 2.5


def _disparity(kind: str, middle: float, shape, seed: int = 3) -> np.ndarray:
    row, col = np.indices(shape)
    noise = 0.05 * np.random.default_rng(seed).standard_normal(shape)
    found = {
        "even": np.full(shape, middle),
        "noisy": middle + noise,
        "tilted": middle + 0.02 * col - 0.01 * row + noise,
        "stepped": middle + 4.0 * (col > shape[1] // 2) + noise,
        "negative": -middle + noise,
        "whole": np.full(shape, round(middle)),
        "outside": middle + np.where(row % 2, 1.0, -1.0) * (1e4 + col),
        "half outside": middle + 1.5 * (col - shape[1] / 2),
    }[kind]
    return found.astype(np.float32)


DISPARITIES = [
    *("even", "noisy", "tilted", "stepped", "negative", "whole", "outside", "half outside"),
]


def _wanted(kind: str, shape, seed: int = 4) -> np.ndarray:
    some = np.random.default_rng(seed).uniform(size=shape)
    if kind == "sparse":
        return some < 0.01
    wanted = some < (2 if kind == "all" else 0.5)
    if kind == "some rows":
        wanted[shape[0] // 3 : -(shape[0] // 3) or None] = False
    return wanted


WANTED = ["all", "half", "some rows", "sparse"]


def _case(
    scale, cell, shape, kind="rendered", disparity="noisy", wanted="all", windows_px=(9, 23, 57)
) -> Case:
    parameters = _fit_parameters(shape, scale, cell, windows_px)
    left, right, middle = _views(kind, shape, scale)
    cells = tuple(-(-size // cell) for size in shape)
    rng = np.random.default_rng(5)
    start = _disparity(disparity, middle, cells)
    return Case(
        left,
        right,
        start,
        start + rng.uniform(-0.3, 0.3, cells).astype(np.float32),
        rng.integers(0, len(parameters.window_halves), cells).astype(np.uint8),
        rng.uniform(0.5e-4, 2e-4, cells).astype(np.float32),
        _wanted(wanted, cells),
        parameters,
    )


def _double(case: Case) -> Case:
    return case._replace(
        **{
            name: getattr(case, name).astype(np.float64)
            for name in ("left", "right", "disparity", "anchor", "noise")
        }
    )


def _sums(ops, case: Case) -> np.ndarray:
    return ops.sum_cells(case.left, case.right, case.disparity, case.wanted, case.parameters)


def _moved(ops, case: Case, sums) -> np.ndarray:
    return ops.update_disparity(
        sums, case.disparity, case.anchor, case.usable, case.wanted, case.parameters
    )


def _fit(ops, case: Case, sums) -> WindowFit:
    return ops.fit_windows(
        sums, case.disparity, case.anchor, case.usable, case.noise, case.wanted, case.parameters
    )


def _single(fit: WindowFit) -> WindowFit:
    return WindowFit(*(part.astype(np.float32) for part in fit[:-1]), fit.window)


def _assert_same_sums(case: Case) -> tuple[np.ndarray, np.ndarray]:
    ours, theirs = _sums(NumbaRefine(Scratch()), case), _sums(PLAIN, _double(case))
    assert ours.dtype == np.float32
    # The compiled ones have a row of zeros behind the planes, for windows that leave the frame.
    assert ours.shape == (len(CellSum) + 1, *case.disparity.shape)
    assert not ours[len(CellSum), 0].any()
    assert theirs.shape == (len(CellSum), *case.disparity.shape)
    reach = case.in_reach
    for plane, atol in _rounding(case, theirs).items():
        np.testing.assert_allclose(
            ours[plane][reach], theirs[plane][reach], rtol=0, atol=atol, err_msg=plane.name
        )
    return ours, theirs


def _rounding(case: Case, sums: np.ndarray) -> dict[CellSum, float]:
    """What single precision may do to each plane.

    Splines that end after ten pixels, and some ten roundings, are wrong by 5e-6 of a view; so are
    residual, gradient and mean of a pixel, and their products by that much of the other factor.
    """
    pixels = case.parameters.cell_side**2
    one = 5e-6 * max(np.abs(case.left).max(), np.abs(case.right).max())
    seen = sums[CellSum.GG] > 0
    far = 1 + np.abs(case.disparity[seen]).max(initial=0)
    largest = {plane: np.sqrt(np.abs(sums[plane]).max() / pixels) + one for plane in CellSum}
    by_plane = {
        **dict.fromkeys((CellSum.G, CellSum.E, CellSum.M), one),
        CellSum.H: far * one,
        CellSum.GH: 3 * far * one * largest[CellSum.GG],
        **{plane: 3 * one * largest[plane] for plane in (CellSum.GG, CellSum.EE, CellSum.SS)},
        **{plane: 3 * one * largest[plane] for plane in (CellSum.MM, CellSum.UU)},
    }
    return {plane: pixels * value for plane, value in by_plane.items()}


def _assert_left_alone(case: Case, fit: WindowFit) -> None:
    alone = ~case.wanted
    np.testing.assert_array_equal(fit.disparity[alone], case.disparity[alone])
    assert (fit.sigma[alone] == UNKNOWN_PX).all()
    for part in (fit.correlation, fit.misfit, fit.centroid_down, fit.centroid_across, fit.window):
        assert (part[alone] == 0).all()


# Cells that must agree: the others lie where two windows agree just so and rounding chooses, or
# where next to nothing is left of a difference of sums.
_MOST = 0.995


class Near(NamedTuple):
    """How near a number must be: as a share of itself, of its middle among all, and at least."""

    share: float
    of_middle: float
    least: float


_NEAR = {
    "sigma": Near(2e-3, 1e-3, 1e-9),
    "correlation": Near(1e-4, 0.0, 1e-4),
    "misfit": Near(1e-3, 0.0, 1e-4),
    "centroid_down": Near(1e-3, 0.0, 1e-4),
    "centroid_across": Near(1e-3, 0.0, 1e-4),
}


def _assert_same_fit(case: Case, ours: WindowFit, theirs: WindowFit) -> None:
    assert all(part.dtype == np.float32 for part in ours[:-1])
    assert ours.window.dtype == theirs.window.dtype == np.uint8
    for fit in (ours, theirs):
        _assert_left_alone(case, fit)
        moved = case.wanted & (fit.sigma < UNKNOWN_PX)
        distance = np.abs(fit.disparity - case.anchor)[moved]
        # Single precision at 1e4 px, farther than any disparity, is 1e-3 px.
        assert distance.max(initial=0) <= case.parameters.max_move + 1e-3
        assert all(np.isfinite(part).all() for part in fit)
        assert (fit.sigma >= 0).all()
        assert ((fit.correlation >= 0) & (fit.correlation <= 1)).all()
        assert (fit.window <= case.usable).all()
    # Where there is no texture, rounding chooses the window, of which nothing is told.
    textured = (theirs.sigma < UNKNOWN_PX) & case.wanted
    assert ((ours.sigma < UNKNOWN_PX) != textured).mean() <= 1 - _MOST
    textured &= ours.sigma < UNKNOWN_PX
    if not textured.any():
        return
    same = textured & (ours.window == theirs.window)
    assert same.sum() >= _MOST * textured.sum() - 1
    gap = np.abs(ours.disparity - theirs.disparity)[same]
    assert (gap <= 1e-3 * theirs.sigma[same] + 5e-5).mean() >= _MOST
    for name, near in _NEAR.items():
        one, other = getattr(ours, name)[same], getattr(theirs, name)[same]
        middle = np.median(np.abs(other))
        allowed = near.share * np.abs(other) + near.of_middle * middle + near.least
        assert (np.abs(one - other) <= allowed).mean() >= _MOST, name


def _assert_same(case: Case) -> WindowFit:
    ours, theirs = _assert_same_sums(case)
    compiled = NumbaRefine(Scratch())
    expected = _fit(PLAIN, _double(case), theirs)
    found = _fit(compiled, case, ours)
    _assert_same_fit(case, found, expected)
    np.testing.assert_array_equal(_moved(compiled, case, ours), found.disparity)
    np.testing.assert_array_equal(_moved(PLAIN, _double(case), theirs), expected.disparity)
    return found


# Compiled against plain ---------------------------------------------------------------------------


@GRID
@SHAPED
@pytest.mark.parametrize("kind", ["rendered", "random"])
def test_cells_and_fit(scale, cell, shape, kind):
    _assert_same(_case(scale, cell, shape, kind))


@GRID
@pytest.mark.parametrize("disparity", DISPARITIES)
@pytest.mark.parametrize("shape", [(7, 5), (41, 101)], ids=str)
def test_disparities(scale, cell, disparity, shape):
    _assert_same(_case(scale, cell, shape, disparity=disparity))


@GRID
@pytest.mark.parametrize("cols", range(93, 109))
def test_windows_at_the_border_whatever_the_width(scale, cell, cols):
    _assert_same(_case(scale, cell, (13, cols)))


@GRID
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("windows_px", WINDOWS, ids=str)
def test_only_what_is_wanted(scale, cell, wanted, windows_px):
    for shape in ((40, 301), (9, 14)):
        _assert_same(_case(scale, cell, shape, wanted=wanted, windows_px=windows_px))


@GRID
def test_nothing_wanted(scale, cell):
    case = _case(scale, cell, (20, 30))
    _assert_same(case._replace(wanted=np.zeros_like(case.wanted)))


@settings(max_examples=60)
@given(
    grid=st.sampled_from(GRIDS),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 90)),
    kind=st.sampled_from(["rendered", "random"]),
    disparity=st.sampled_from(DISPARITIES),
    wanted=st.sampled_from(WANTED),
    windows_px=st.sampled_from([*WINDOWS, (3,), (3, 5, 7, 11), (255,)]),
)
def test_whatever_the_size(grid, shape, kind, disparity, wanted, windows_px):
    case = _case(*grid, shape, kind, disparity, wanted, windows_px)
    ours, theirs = _assert_same_sums(case)
    for fit in (_fit(NumbaRefine(Scratch()), case, ours), _fit(PLAIN, _double(case), theirs)):
        _assert_left_alone(case, fit)


@GRID
@pytest.mark.parametrize("disparity", ["even", "noisy", "outside", "negative"])
def test_flat_views_tell_nothing(scale, cell, disparity):
    for shape in ((1, 1), (7, 5), (40, 60)):
        case = _case(scale, cell, shape, "flat", disparity)
        found = _assert_same(case)
        np.testing.assert_array_equal(found.disparity, case.disparity)
        assert (found.sigma == UNKNOWN_PX).all()
        assert (found.correlation == 0).all()


@GRID
def test_a_flat_part_of_a_view_tells_nothing(scale, cell):
    case = _case(scale, cell, (60, 160), disparity="even", windows_px=(9,))
    left, right = case.left.copy(), case.right.copy()
    left[:, 60:120] = right[:, 20:120] = 0.7
    case = case._replace(left=left, right=right, disparity=np.full_like(case.disparity, 6.4))
    ops = NumbaRefine(Scratch())
    found = _fit(ops, case, _sums(ops, case))
    reach = 2 * (case.parameters.window_halves[0] + 2) * cell + len(case.parameters.cell_taps)
    inner = np.zeros(case.disparity.shape, dtype=bool)
    inner[:, (60 + reach) // cell : (120 - reach) // cell] = True
    assert inner.any()
    assert (found.sigma[inner] == UNKNOWN_PX).all()
    np.testing.assert_array_equal(found.disparity[inner], case.disparity[inner])


def _surfaces(shape, seed=0) -> np.ndarray:
    """Slopes with steps, of numbers that single precision holds exactly."""
    row, col = np.indices(shape)
    rng = np.random.default_rng(seed)
    image = 40 + 0.125 * col - 0.0625 * row + 3.0 * (col // 17 % 2) + rng.integers(0, 3, shape) / 4
    return image.astype(np.float32)


@SHAPED
@pytest.mark.parametrize("halves", [(1,), (2, 5), (0, 1, 2, 14), (3, 70)], ids=str)
def test_one_surface(shape, halves):
    image = _surfaces(shape)
    for numbers in ((2.0, 0.0, 0.0), (0.5, 0.0625, -8.0), (1e9, 0.0, 0.0), (0.0, 0.0, 0.0)):
        ours = NumbaRefine(Scratch()).count_one_surface(image, halves, SurfaceLimits(*numbers))
        theirs = PLAIN.count_one_surface(image.astype(np.float64), halves, SurfaceLimits(*numbers))
        assert ours.dtype == theirs.dtype == np.uint8
        np.testing.assert_array_equal(ours, theirs)
        if numbers[0] == 1e9:
            assert (ours == len(halves)).all()


@GRID
@SHAPED
@pytest.mark.parametrize("windows_px", WINDOWS, ids=str)
def test_usable(scale, cell, shape, windows_px):
    parameters = _fit_parameters(shape, scale, cell, windows_px)
    cells = tuple(-(-size // cell) for size in shape)
    for image in (_surfaces(cells), _surfaces(cells) - 40, 30 - _surfaces(cells)):
        ours = NumbaRefine(Scratch()).count_usable(
            image, parameters, SurfaceLimits(2.0, 0.0625, -4.0)
        )
        theirs = PLAIN.count_usable(
            image.astype(np.float64), parameters, SurfaceLimits(2.0, 0.0625, -4.0)
        )
        assert ours.dtype == theirs.dtype == np.uint8
        np.testing.assert_array_equal(ours, theirs)
        assert ours.max() <= len(parameters.window_halves) - 1


@SHAPED
def test_scales(shape):
    image = 40 * _random(shape)
    for finer in (
        {},
        {2: (-10.0, 12.5)},
        {2: (-10.0, 12.5), 4: (-20.0, 30.0)},
        {2: (np.inf, -np.inf), 4: (-np.inf, np.inf)},
        {2: (-np.inf, 5.0), 4: (np.inf, -np.inf)},
    ):
        ours = NumbaRefine(Scratch()).coarsest_scales(image, finer)
        theirs = PLAIN.coarsest_scales(image, finer)
        assert ours.dtype == theirs.dtype == np.uint8
        np.testing.assert_array_equal(ours, theirs)


@SHAPED
def test_halved_and_doubled(shape):
    image = _random(shape)
    ours, theirs = NumbaRefine(Scratch()).halve(image), PLAIN.halve(image.astype(np.float64))
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape == tuple(-(-size // 2) for size in shape)
    np.testing.assert_allclose(ours, theirs, atol=2e-7)
    one = NumbaRefine(Scratch()).double(ours, shape)
    other = PLAIN.double(ours.astype(np.float64), shape)
    assert one.dtype == np.float32
    assert one.shape == other.shape == shape
    np.testing.assert_allclose(one, other, atol=2e-7)


def _random_fit(shape, windows: int, seed: int = 0) -> WindowFit:
    rng = np.random.default_rng(seed)
    disparity = 20 + np.cumsum(rng.normal(scale=0.1, size=shape), axis=1)
    parts = (rng.uniform(0.1, 1, shape), *(rng.uniform(-9, 9, shape) for _ in range(4)))
    used = rng.integers(0, windows, shape)
    # Mostly the largest, so that there are slopes.
    used = np.where(rng.uniform(size=shape) < 0.9, windows - 1, used)
    return _single(WindowFit(disparity, *parts, used.astype(np.uint8)))


@GRID
@SHAPED
@pytest.mark.parametrize("windows_px", WINDOWS, ids=str)
def test_finished(scale, cell, shape, windows_px):
    parameters = _fit_parameters(shape, scale, cell, windows_px)
    cells = tuple(-(-size // cell) for size in shape)
    for seed, less in enumerate((0, 20, 40)):
        fit = _random_fit(cells, len(parameters.window_halves), seed)
        fit = fit._replace(disparity=fit.disparity - np.float32(less))
        ours = NumbaRefine(Scratch()).correct_slopes(fit, parameters, scale)
        doubles = WindowFit(*(part.astype(np.float64) for part in fit[:-1]), fit.window)
        theirs = PLAIN.correct_slopes(doubles, parameters, scale)
        assert all(part.dtype == np.float32 for part in ours[:5])
        assert ours.flags.dtype == theirs.flags.dtype == np.uint16
        np.testing.assert_array_equal(ours.flags, theirs.flags)
        # A slope may be over half a step, with offsets of nine cells.
        np.testing.assert_allclose(ours.disparity_px, theirs.disparity_px, rtol=1e-5, atol=2e-4)
        # The bend is a root: close to zero, small differences are large ones.
        np.testing.assert_allclose(ours.bend_px, theirs.bend_px, rtol=1e-4, atol=4e-3)
        for name in ("sigma_px", "correlation", "misfit"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6)


def _random_refined(shape, seed: int) -> CellFit:
    parts = (_random(shape, seed + i) for i in range(5))
    flags = np.random.default_rng(seed).integers(0, 1024, shape).astype(np.uint16)
    return CellFit(*parts, flags)


def _scales(shape, seed: int = 6, of=(1, 2, 4)) -> np.ndarray:
    return np.random.default_rng(seed).choice(of, shape).astype(np.uint8)


@SHAPED
@pytest.mark.parametrize(
    "of", [(1, 2, 4), (2, 4), (4,), (1,), (1, 1, 1, 1, 1, 1, 1, 1, 4)], ids=str
)
@pytest.mark.parametrize(("least", "most"), [(1, 1), (2, 2), (4, 4), (1, 2), (1, 4)], ids=str)
def test_wanted(shape, of, least, most):
    scales = _scales(shape, of=of)
    for is_coarse in (False, True):
        ours, theirs = (
            ops.select_cells(scales, least, most, is_coarse=is_coarse)
            for ops in (NumbaRefine(Scratch()), PLAIN)
        )
        assert ours.dtype == theirs.dtype == np.bool_
        np.testing.assert_array_equal(ours, theirs)


@SHAPED
@pytest.mark.parametrize("of", [(1, 2, 4), (1, 2), (1, 4), (2, 4), (1,), (2,), (4,)], ids=str)
def test_joined(shape, of):
    scales = _scales(shape, of=of)
    coarse = tuple(-(-size // 2) for size in shape)
    present = sorted({int(scale) for scale in np.unique(scales)}, reverse=True)
    parts = {
        scale: _random_refined(shape if scale == 1 else coarse, 10 * scale) for scale in present
    }
    copies = {scale: CellFit(*(one.copy() for one in part)) for scale, part in parts.items()}
    ours = NumbaRefine(Scratch()).join_scales(copies, scales)
    theirs = PLAIN.join_scales(parts, scales)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape == shape
        np.testing.assert_allclose(one, other, atol=2e-7)
    assert ours.flags.dtype == theirs.flags.dtype == np.uint16
    if 1 in parts:
        here = scales == 1
        np.testing.assert_array_equal(ours.flags[here], parts[1].flags[here])
        np.testing.assert_array_equal(ours.sigma_px[here], parts[1].sigma_px[here])


@SHAPED
@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("max_move_px", [0.4, 1.0, 1e9])
def test_merged(shape, most, max_move_px):
    fine, coarse = _random(shape), _random(tuple(-(-size // 2) for size in shape), 1)
    scales, before = _scales(shape), fine.copy()
    ours = NumbaRefine(Scratch()).merge_coarse(fine, coarse, scales, most, max_move_px)
    theirs = PLAIN.merge_coarse(fine, coarse, scales, most, max_move_px)
    np.testing.assert_allclose(ours, theirs, atol=2e-7)
    far = np.abs(PLAIN.double(coarse, shape) - fine) >= max_move_px
    beyond = (scales > most) | far
    np.testing.assert_array_equal(ours[beyond], fine[beyond])
    np.testing.assert_array_equal(fine, before)
    assert not np.shares_memory(ours, fine)


# Threads and memory -------------------------------------------------------------------------------


def _everything(case: Case, memory: Scratch) -> dict[str, np.ndarray]:
    """All results, of which those of sums and of a finished fit hold for some cells only."""
    ops = NumbaRefine(memory)
    sums = _sums(ops, case)
    fit = _fit(ops, case, sums)
    done = ops.correct_slopes(fit, case.parameters, 2)
    small = ops.halve(case.disparity)
    shape = case.disparity.shape
    scales = np.where(case.wanted, 1, 2).astype(np.uint8)
    coarse = _random_refined(small.shape, 7)
    best = ops.join_scales({2: coarse, 1: CellFit(*(part.copy() for part in done))}, scales)
    results = {
        "sums": np.where(case.in_reach, sums[: len(CellSum)], 0),
        "moved": _moved(ops, case, sums),
        "small": small,
        "large": ops.double(small, shape),
        "merged": ops.merge_coarse(case.disparity, small, scales, 1, 0.05),
        "wanted": ops.select_cells(scales, 1, 1, is_coarse=True),
        "usable": ops.count_usable(case.disparity, case.parameters, SurfaceLimits(2.0, 0.06, 0.0)),
        "surface": ops.count_one_surface(case.disparity, (1, 4), SurfaceLimits(2.0, 0.0, 0.0)),
        "scales": ops.coarsest_scales(case.disparity, {2: (3.0, 12.0), 4: (0.0, 50.0)}),
        **{f"fit.{name}": part for name, part in fit._asdict().items()},
        **{f"best.{name}": part for name, part in best._asdict().items()},
    }
    return {name: part.copy() for name, part in results.items()}


def _assert_same_bytes(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    for name, part in one.items():
        assert part.tobytes() == other[name].tobytes(), name


@GRID
@pytest.mark.parametrize("wanted", ["all", "some rows", "sparse"])
def test_same_bytes_whatever_the_threads(monkeypatch, scale, cell, wanted):
    case = _case(scale, cell, (47, 301), disparity="stepped", wanted=wanted)
    monkeypatch.setenv("D3S_THREADS", "1")
    expected = _everything(case, Scratch())
    for threads in ("2", "5", "40"):
        monkeypatch.setenv("D3S_THREADS", threads)
        _assert_same_bytes(_everything(case, Scratch()), expected)


@GRID
@pytest.mark.parametrize("wanted", WANTED)
def test_same_bytes_whatever_was_in_the_memory(scale, cell, wanted):
    memory = Scratch()
    case = _case(scale, cell, (47, 301), disparity="stepped", wanted=wanted)
    with memory.part():
        expected = _everything(case, memory)
    assert all(np.isfinite(part).all() for part in expected.values())
    for dirt in (0, 127, 255):  # nothing, 3e38, and what is no number
        for block in memory._blocks:
            block[:] = dirt
        with memory.part():
            _assert_same_bytes(_everything(case, memory), expected)


@GRID
def test_arguments_stay_as_they_are(scale, cell):
    case = _case(scale, cell, (31, 50), wanted="half")
    for part in case[:-1]:
        part.flags.writeable = True  # the loops are compiled for arrays that can be written to
    before = [part.copy() for part in case[:-1]]
    _everything(case, Scratch())
    for part, old in zip(case[:-1], before, strict=True):
        np.testing.assert_array_equal(part, old)


# Cells by arithmetic ------------------------------------------------------------------------------


def _planes(ops, left, right, disparity, defocus=(0.0, 0.0), cell=1) -> np.ndarray:
    """Sums over cells of one pixel are the values of pixels."""
    parameters = _fit_parameters(left.shape, 1, cell, (9,))._replace(defocus=defocus)
    cells = tuple(-(-size // cell) for size in left.shape)
    kind = np.float64 if ops is PLAIN else np.float32
    views = (np.ascontiguousarray(view, kind) for view in (left, right))
    disparity = np.ascontiguousarray(np.broadcast_to(disparity, cells), kind)
    return ops.sum_cells(*views, disparity, np.ones(cells, bool), parameters)


@BOTH
def test_a_whole_shift_leaves_no_residual(ops):
    right = _random((5, 60))
    left = np.roll(right, 3, axis=1)
    planes = _planes(ops, left, right, 3)
    inner = slice(14, 46)  # away from where splines know of a border
    np.testing.assert_allclose(planes[CellSum.E][:, inner], 0, atol=1e-5)
    np.testing.assert_allclose(planes[CellSum.M][:, inner], left[:, inner], atol=1e-5)


@BOTH
def test_beyond_the_frame_there_is_nothing(ops):
    left, right = _random((2, 12)), _random((2, 12), 1)
    planes = _planes(ops, left, right, 4.5, (1.0, 1.0))
    # Column 6 looks at 1.5 and has all four coefficients, column 5 looks at 0.5 and has not.
    silent = (CellSum.G, CellSum.H, CellSum.GG, CellSum.GH, CellSum.E, CellSum.EE, CellSum.SS)
    for plane in silent:
        assert (planes[plane][:, :6] == 0).all()
        assert (planes[plane][:, 6:] != 0).all()
    np.testing.assert_array_equal(planes[CellSum.M][:, :6], left[:, :6])
    back = _planes(ops, left, right, -2.5, (1.0, 1.0))
    for plane in silent:  # column 7 looks at 9.5, between the last but one two
        assert (back[plane][:, 8:] == 0).all()
        assert (back[plane][:, :8] != 0).all()


@BOTH
def test_planes_are_products_of_each_other(ops):
    planes = _planes(ops, _random((9, 40)), _random((9, 40), 1), 2.3, (0.3, 0.1))
    g, h, e, m = (planes[plane] for plane in (CellSum.G, CellSum.H, CellSum.E, CellSum.M))
    near = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(h, 2.3 * g - e, **near)
    for plane, product in {
        CellSum.GG: g * g,
        CellSum.GH: g * h,
        CellSum.EE: e * e,
        CellSum.MM: m * m,
    }.items():
        np.testing.assert_allclose(planes[plane], product, **near)


@BOTH
@pytest.mark.parametrize("shape", [(9, 40), (8, 41), (7, 5)], ids=str)
def test_cells_are_sums_over_their_pixels(ops, shape):
    left, right = _random(shape), _random(shape, 1)
    single, double = (_planes(ops, left, right, 2.25, (0.3, 0.1), cell) for cell in (1, 2))
    padded = np.pad(single, ((0, 0), (0, shape[0] % 2), (0, shape[1] % 2)))
    sums = padded[:, ::2, ::2] + padded[:, 1::2, ::2] + padded[:, ::2, 1::2] + padded[:, 1::2, 1::2]
    for plane in CellSum:
        if plane not in (CellSum.U, CellSum.UU):
            np.testing.assert_allclose(double[plane], sums[plane], rtol=1e-4, atol=2e-5)


@BOTH
def test_derivatives_of_polynomials(ops):
    # Both views alike and no shift: the gradient is the slope, with the defocus the Laplacian too.
    row, col = np.mgrid[:40, :44] / 20
    view = 0.1 * col**3 + 0.3 * row * col + 0.2 * row**2
    inner = (slice(1, -1), slice(14, -14))
    slope = (0.3 * col**2 + 0.3 * row) / 20
    bend = (0.6 * col + 0.4) / 400
    found = _planes(ops, view, view, 0.0)[CellSum.G]
    np.testing.assert_allclose(found[inner], slope[inner], atol=2e-6)
    found = _planes(ops, view, view, 0.0, (0.0, 30.0))[CellSum.G]
    np.testing.assert_allclose(found[inner], (slope + 30 * bend)[inner], atol=1e-4)


@pytest.mark.parametrize("defocus", [(0.0, 0.0), (-1.3, 0.04), (2.0, -0.1)])
def test_gradient_is_that_of_the_residual(defocus):
    # Of a smooth pair: the residual's derivative has the right view's slope, the gradient has the
    # mean of both, which is the same where both views show the same.
    col = np.arange(60.0)
    right = np.tile(np.sin(0.3 * col), (3, 1))
    left = np.tile(np.sin(0.3 * (col - 4.3)), (3, 1))
    small = 1e-4
    ahead, behind = (
        _planes(PLAIN, left, right, 4.3 + step, defocus)[CellSum.E] for step in (small, -small)
    )
    gradient = _planes(PLAIN, left, right, 4.3, defocus)[CellSum.G]
    blurred = defocus[0] + defocus[1] * 4.3  # its part in the derivative is of third order
    inner = slice(12, -12)
    allowed = 2e-4 + 0.5 * abs(blurred) * 0.3**3
    assert np.abs((ahead - behind) / (2 * small) - gradient)[1, inner].max() < allowed


# The fit by arithmetic ----------------------------------------------------------------------------


@BOTH
@GRID
def test_fit_comes_to_the_true_disparity(ops, scale, cell):
    case = _case(scale, cell, (60, 400), disparity="even")
    case = case if ops is not PLAIN else _double(case)
    truth = float(case.disparity[0, 0])
    # A search that is wrong by 0.1 px of its own.
    start = case.disparity + case.disparity.dtype.type(case.parameters.anchor_sigma)
    case = case._replace(disparity=start, anchor=start)
    usable = ops.count_usable(case.disparity, case.parameters, SurfaceLimits(2.0, 0.06, 0.0))
    for _ in range(3):
        sums = _sums(ops, case)
        case = case._replace(disparity=_moved(ops, case._replace(usable=usable), sums).copy())
    fit = _fit(ops, case._replace(usable=usable), _sums(ops, case))
    inner = (slice(10, -10), slice(120 // cell, -40 // cell))
    assert np.median(np.abs(fit.disparity[inner] - truth)) < 0.01
    assert (np.abs(fit.disparity[inner] - truth) < 0.1).mean() > 0.99
    assert fit.correlation[inner].mean() > 0.9
    assert (fit.sigma[inner] > 0).mean() > 0.99


@BOTH
@pytest.mark.parametrize(
    ("window", "anchor", "anchor_sigma", "expected"),
    [
        # The window is 0.3 px from where its residual was taken, which leaves a variance of
        # 0.3² / 9 = 0.1²: as much as the search has. They meet halfway.
        (0.3, 0.0, 0.1, 0.15),
        (0.3, 0.1, 0.1, 0.2),
        # Three times the residual, nine times the variance: a tenth of the way.
        (0.9, 0.0, 0.1, 0.09),
        (-0.9, 0.0, 0.1, -0.09),
        # A search of 1 px: of the variance 0.2² and 0.15², that is 1 : 25 and 1 : 44.4.
        (0.6, 0.0, 1.0, 0.0),  # 0.577 px from the search, more than 0.5: dropped
        (0.6, 0.1, 1.0, (0.6 + 0.004) / 1.04),  # 0.481 px from it
        (0.45, 0.0, 1.0, 0.45 / 1.0225),
        (0.0, 0.2, 0.1, 0.0),  # no residual, no weight
    ],
)
def test_the_search_is_a_measurement_by_hand(ops, window, anchor, anchor_sigma, expected):
    # One window of nine pixels, whose residual at disparity 5 is that of disparity 5 + window.
    parameters = _fit_parameters((3, 3), 1, 1, (3,))
    parameters = parameters._replace(noise_area=1.0, anchor_sigma=anchor_sigma)
    assert (parameters.window_halves, parameters.max_move) == ((1,), 0.5)
    kind = np.float64 if ops is PLAIN else np.float32
    g = (0.25 * (-1.0) ** np.arange(9)).reshape(3, 3)
    e, one = -window * g, np.ones((3, 3), kind)
    h = 5 * g - e
    # The compiled sums have one plane more.
    planes = [g, h, g * g, g * h, e, e * e, g * g, 0 * g, 0 * g, g, g * g, 0 * g]
    sums = np.array(planes[: len(CellSum) + (ops is not PLAIN)], kind)
    everywhere, usable = np.ones((3, 3), bool), np.zeros((3, 3), np.uint8)
    moved = ops.update_disparity(
        sums, 5 * one, one * kind(5 + anchor), usable, everywhere, parameters
    )
    assert moved[1, 1] == pytest.approx(5 + expected, abs=1e-5)


@BOTH
@GRID
def test_no_fit_goes_far(ops, scale, cell):
    case = _case(scale, cell, (40, 160), disparity="even", windows_px=(9,))
    case = case if ops is not PLAIN else _double(case)
    case = case._replace(parameters=case.parameters._replace(anchor_sigma=1e3))
    inner = (slice(4, -4), slice(90 // cell, -8 // cell))

    def distance(share):
        kind = case.disparity.dtype.type
        start = case.disparity + kind(share * case.parameters.max_move)
        there = case._replace(disparity=start, anchor=start)
        return np.abs(_moved(ops, there, _sums(ops, there)) - start)[inner]

    # Most find a truth that is within reach; of one beyond it, most stay at the search.
    assert distance(0.5).max() < case.parameters.max_move
    assert (distance(0.5) > 0.3 * case.parameters.max_move).mean() > 0.8
    assert distance(1.5).max() < case.parameters.max_move
    assert (distance(1.5) == 0).mean() > 0.8


@BOTH
@GRID
@pytest.mark.parametrize("windows_px", WINDOWS, ids=str)
def test_where_there_is_noise_sigma_is_not_zero(ops, scale, cell, windows_px):
    case = _case(scale, cell, (60, 400), windows_px=windows_px)
    case = case if ops is not PLAIN else _double(case)
    usable = ops.count_usable(case.disparity, case.parameters, SurfaceLimits(2.0, 0.06, 0.0))
    sigma = _fit(ops, case._replace(usable=usable), _sums(ops, case)).sigma
    inner = sigma[4:-4, 120 // cell : -16 // cell]
    assert (inner < UNKNOWN_PX).all()
    assert (inner > 0).all()


@BOTH
@GRID
def test_slopes_are_taken_off(ops, scale, cell):
    # The disparity of a window is that of where its texture lies: down and across from the cell.
    shape = 90, 120
    parameters = _fit_parameters(tuple(size * cell for size in shape), scale, cell)
    rng = np.random.default_rng(0)
    kind = np.float64 if ops is PLAIN else np.float32
    row, col = np.indices(shape)
    for slopes in ((0.02, 0.0), (0.0, -0.03)):
        down, across = rng.uniform(-1, 1, (2, *shape))
        down, across = (
            one * (slope != 0) for one, slope in zip((down, across), slopes, strict=True)
        )
        true = 12 + slopes[0] * row + slopes[1] * col
        disparity = true + slopes[0] * down + slopes[1] * across
        zero, used = np.zeros(shape), np.full(shape, len(parameters.window_halves) - 1, np.uint8)
        parts = (disparity, zero, zero, zero, down, across)
        fit = WindowFit(*(part.astype(kind) for part in parts), used)
        found = ops.correct_slopes(fit, parameters, scale).disparity_px / scale
        half = parameters.window_halves[-1]
        inner = (slice(half, -half), slice(half, -half))
        np.testing.assert_allclose(found[inner], true[inner], atol=2e-5)
        # Without larger windows nothing is known of slopes.
        alone = ops.correct_slopes(fit._replace(window=np.zeros_like(used)), parameters, scale)
        np.testing.assert_allclose(alone.disparity_px / scale, disparity, rtol=1e-6)


@BOTH
@GRID
@pytest.mark.parametrize("axis", [0, 1])
def test_folds_are_found(ops, scale, cell, axis):
    shape = 184, 190
    parameters = _fit_parameters(tuple(size * cell for size in shape), scale, cell)
    half, middle = parameters.window_halves[-1], shape[axis] // 2
    kind = np.float64 if ops is PLAIN else np.float32
    place = np.indices(shape)[axis] - middle
    zero, used = np.zeros(shape), np.full(shape, len(parameters.window_halves) - 1, np.uint8)

    def bend(disparity, sigma=1e-3, used=used):
        parts = (disparity, zero + sigma, zero, zero, zero, zero)
        fit = WindowFit(*(part.astype(kind) for part in parts), used)
        return ops.correct_slopes(fit, parameters, scale).bend_px / scale

    # Like a floor and a wall: each window has the mean of what it covers.
    slope = 0.05
    reach = np.clip((place + half) / (2 * half), 0, 1)
    windows = 12 + slope * half * np.where(place < half, reach**2, place / half)
    inner = (slice(half, -half), slice(half, -half))
    on_fold = (place == 0)[inner]
    error = slope * half / 4
    found = bend(windows)[inner][on_fold]
    assert (found > 0.5 * error).all()
    assert (found < 1.1 * error).all()
    # Also where the windows around are smaller, but not where they are the smallest.
    for others in (1, 0):
        among = np.where(place == 0, used, others).astype(np.uint8)
        here = bend(windows, used=among)[inner][on_fold]
        np.testing.assert_array_equal(here, others * found)
    # A fold that the large window does not see, one of those within it does.
    narrow = 12 + 0.2 * (np.abs(place) == parameters.window_halves[1])
    assert (bend(narrow)[inner][on_fold] > 0.05).all()
    # Beyond the reach of the windows it is a plane again, and so is a slope anywhere.
    away = (np.abs(place) > 2 * half + 1)[inner]
    assert away.any()
    assert not bend(windows)[inner][away].any()
    assert not bend(12 + slope * place)[inner].any()
    # Noise makes bends too, by one or by the others.
    noise = 0.01 * np.random.default_rng(0).uniform(-1, 1, shape[axis])[place + middle]
    assert not bend(12 + noise, sigma=0.01).any()
    assert bend(12 + noise, sigma=0.001).any()
    others = np.where(place == 0, 0.001, 0.02)
    assert not bend(12 + noise, sigma=others)[place == 0].any()


@BOTH
@pytest.mark.parametrize("cell", [1, 2])
def test_border_is_where_a_window_or_its_match_leaves_the_frame(ops, cell):
    parameters = _fit_parameters((20 * cell, 40 * cell), 1, cell, (9,))
    half = parameters.window_halves[0]
    kind = np.float64 if ops is PLAIN else np.float32
    for shift, first, last in ((4, 4, 0), (-4, 0, 4), (0, 0, 0)):
        zero = np.zeros((20, 40), kind)
        fit = WindowFit(zero + shift, zero, zero, zero, zero, zero, np.zeros((20, 40), np.uint8))
        inside = ops.correct_slopes(fit, parameters, 1).flags == 0
        expected = np.zeros((20, 40), bool)
        expected[half : 20 - half, half + first // cell : 40 - half - last // cell] = True
        np.testing.assert_array_equal(inside, expected)
        assert set(np.unique(ops.correct_slopes(fit, parameters, 1).flags)) == {0, int(Flag.BORDER)}


@BOTH
def test_usable_windows_by_hand(ops):
    parameters = _fit_parameters((80, 160), 1, 2, (9, 23))
    assert parameters.window_halves == (2, 5)
    disparity = np.full((40, 80), 8.0, np.float32)
    disparity[:, 50:] = 11.0
    count = ops.count_usable(disparity, parameters, SurfaceLimits(2.0, 0.0, 0.0))
    assert set(np.unique(count)) == {0, 1}
    np.testing.assert_array_equal(np.flatnonzero(count[:, 20]), np.arange(5, 35))
    # Four cells of shift and five of window on the left; five before the step and behind it.
    expected = [*range(9, 45), *range(55, 75)]
    np.testing.assert_array_equal(np.flatnonzero(count[20]), expected)
    everywhere = ops.count_usable(disparity, parameters, SurfaceLimits(3.0, 0.0, 0.0))
    np.testing.assert_array_equal(np.flatnonzero(everywhere[20]), np.arange(9, 75))


@BOTH
def test_surface_by_hand(ops):
    image = np.array([[0, 3, 1], [5, 2, 2], [4, 4, 9]], dtype=np.float32)
    # Extents of 3 x 3: 5 5 2, 5 9 8, 3 7 7.
    found = ops.count_one_surface(image, (0, 1), SurfaceLimits(5.0, 0.0, 0.0))
    np.testing.assert_array_equal(found, [[2, 2, 2], [2, 1, 1], [2, 1, 1]])
    # A share of the distance from zero: 9 from -9 on is 18 and more.
    found = ops.count_one_surface(image, (1,), SurfaceLimits(0.0, 0.5, -9.0))
    np.testing.assert_array_equal(found, [[0, 1, 1], [1, 0, 0], [1, 0, 1]])


# Grids --------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("shape", [(2, 2), (8, 12), (9, 13), (12, 7)], ids=str)
def test_a_ramp_stays_a_ramp(ops, shape):
    row, col = np.indices(shape)
    ramp = (0.5 * row - 0.25 * col + 3).astype(np.float32)
    small = ops.halve(ramp)
    rows, cols = (size // 2 for size in shape)
    whole = ramp[: 2 * rows, : 2 * cols].reshape(rows, 2, cols, 2)
    np.testing.assert_array_equal(small[:rows, :cols], whole.mean(axis=(1, 3)))
    even = tuple(size - size % 2 for size in shape)
    large = ops.double(np.ascontiguousarray(small[:rows, :cols]), even)
    inner = (slice(1, even[0] - 1), slice(1, even[1] - 1))
    np.testing.assert_array_equal(large[inner], ramp[inner])


@BOTH
def test_halved_forgets_one_that_is_far_out(ops):
    image = np.array([[1, 2, 7], [3, 1000, 9], [5, 6, 4]], dtype=np.float32)
    np.testing.assert_array_equal(ops.halve(image), [[2.5, 8], [5.5, 4]])


@BOTH
@SHAPED
def test_doubled_leaves_a_constant(ops, shape):
    small = np.full(tuple(-(-size // 2) for size in shape), 0.7, np.float32)
    np.testing.assert_allclose(ops.double(small, shape), 0.7, rtol=1e-6)


@BOTH
def test_scales_are_those_of_the_plan(ops):
    plan = make_plan(RIG.optics, d3s.JointOptions(), (100, 300))
    disparity = np.linspace(5, 90, 2000, dtype=np.float32)[None]
    found = ops.coarsest_scales(disparity, plan.finer_px)
    assert set(np.unique(found)) == {1, 2, 4}
    for scale, (low, high) in plan.finer_px.items():
        outside = (disparity < np.float32(low)) | (disparity > np.float32(high))
        assert (found[outside] >= scale).all()
        if scale == 4:
            assert (found[~outside] < 4).all()


@BOTH
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 5), (12, 16)], ids=str)
def test_coarse_cells_that_fine_ones_are_interpolated_from(ops, shape):
    # The weights of a coarse cell in the fine ones, by what doubling makes of a single one.
    coarse = tuple(-(-size // 2) for size in shape)
    for seed in range(5):
        scales = _scales(shape, seed, of=(1, 2, 2, 2, 2, 2, 2))
        mask = scales == 1
        wanted = ops.select_cells(scales, 1, 1, is_coarse=True)
        assert wanted.shape == coarse
        for place in np.ndindex(coarse):
            dot = np.zeros(coarse)
            dot[place] = 1
            if (PLAIN.double(dot, shape) > 0)[mask].any():
                assert wanted[place]
        assert wanted.any() == mask.any()
