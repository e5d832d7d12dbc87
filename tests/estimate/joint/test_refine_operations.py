"""The refinement: compiled against plain, and both against arithmetic."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy import ndimage

import d3s
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.joint.refine import fit_parameters
from d3s.estimate.joint.types import (
    UNKNOWN_PX,
    CellSum,
    FitParameters,
    SurfaceLimits,
    WindowFit,
)
from oracle import ORACLE, OURS

RIG = d3s.Rig.paper_prototype()
BOTH = (OURS, ORACLE)
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
    views = ORACLE.centre(pair.left, pair.right)
    for step, sigma in {1: [(1, 1.0)], 2: [(2, 1.5)], 4: [(2, 1.5), (2, 2.4)]}[scale]:
        views = tuple(ORACLE.smooth(view, sigma, step) for view in views)
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
    ours, theirs = _sums(OURS, case), _sums(ORACLE, _double(case))
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
    compiled = OURS
    expected = _fit(ORACLE, _double(case), theirs)
    found = _fit(compiled, case, ours)
    _assert_same_fit(case, found, expected)
    np.testing.assert_array_equal(_moved(compiled, case, ours), found.disparity)
    np.testing.assert_array_equal(_moved(ORACLE, _double(case), theirs), expected.disparity)
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
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("windows_px", WINDOWS, ids=str)
def test_only_what_is_wanted(scale, cell, wanted, windows_px):
    for shape in ((40, 301), (9, 14)):
        _assert_same(_case(scale, cell, shape, wanted=wanted, windows_px=windows_px))


@GRID
@pytest.mark.parametrize("disparity", ["even", "noisy", "outside", "negative"])
def test_flat_views_tell_nothing(scale, cell, disparity):
    for shape in ((1, 1), (7, 5), (40, 60)):
        case = _case(scale, cell, shape, "flat", disparity)
        found = _assert_same(case)
        np.testing.assert_array_equal(found.disparity, case.disparity)
        assert (found.sigma == UNKNOWN_PX).all()
        assert (found.correlation == 0).all()


def _surfaces(shape, seed=0) -> np.ndarray:
    """Slopes with steps, of numbers that single precision holds exactly."""
    row, col = np.indices(shape)
    rng = np.random.default_rng(seed)
    image = 40 + 0.125 * col - 0.0625 * row + 3.0 * (col // 17 % 2) + rng.integers(0, 3, shape) / 4
    return image.astype(np.float32)


@GRID
@SHAPED
@pytest.mark.parametrize("windows_px", WINDOWS, ids=str)
def test_usable(scale, cell, shape, windows_px):
    parameters = _fit_parameters(shape, scale, cell, windows_px)
    cells = tuple(-(-size // cell) for size in shape)
    for image in (_surfaces(cells), _surfaces(cells) - 40, 30 - _surfaces(cells)):
        ours = OURS.count_usable(image, parameters, SurfaceLimits(2.0, 0.0625, -4.0))
        theirs = ORACLE.count_usable(
            image.astype(np.float64), parameters, SurfaceLimits(2.0, 0.0625, -4.0)
        )
        assert ours.dtype == theirs.dtype == np.uint8
        np.testing.assert_array_equal(ours, theirs)
        assert ours.max() <= len(parameters.window_halves) - 1


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
        ours = OURS.correct_slopes(fit, parameters, scale)
        doubles = WindowFit(*(part.astype(np.float64) for part in fit[:-1]), fit.window)
        theirs = ORACLE.correct_slopes(doubles, parameters, scale)
        assert all(part.dtype == np.float32 for part in ours[:5])
        assert ours.flags.dtype == theirs.flags.dtype == np.uint16
        np.testing.assert_array_equal(ours.flags, theirs.flags)
        # A slope may be over half a step, with offsets of nine cells.
        np.testing.assert_allclose(ours.disparity_px, theirs.disparity_px, rtol=1e-5, atol=2e-4)
        # The bend is a root: close to zero, small differences are large ones.
        np.testing.assert_allclose(ours.bend_px, theirs.bend_px, rtol=1e-4, atol=4e-3)
        for name in ("sigma_px", "correlation", "misfit"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6)


# Between grids ------------------------------------------------------------------------------------


@SHAPED
def test_cells_of_a_scale_and_those_they_are_interpolated_from(shape):
    chance = np.random.default_rng(6)
    scales = chance.choice((1, 2, 4), shape, p=(0.6, 0.3, 0.1)).astype(np.uint8)
    for least, most in ((1, 1), (2, 2), (4, 4), (1, 2)):
        for is_coarse in (False, True):
            both = (ops.select_cells(scales, least, most, is_coarse=is_coarse) for ops in BOTH)
            np.testing.assert_array_equal(*both)
