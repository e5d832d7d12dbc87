"""Depth, sigma, confidence and flags: compiled against NumPy, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import d3s
from d3s.estimate.flags import Flag
from d3s.estimate.joint.confidence import confidence_parameters
from d3s.estimate.joint.numba_backend.confidence import NumbaConfidence
from d3s.estimate.joint.numpy_backend.confidence import NumpyConfidence
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.joint.types import (
    UNKNOWN_PX,
    CellFit,
    ConfidenceParameters,
    DepthPlanes,
    SearchResult,
    Trust,
)
from d3s.rig.variance import DisparityVariance
from d3s.runtime.scratch import Scratch

RIG = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.02, disparity_offset_px=-12.5)
PLAIN = NumpyConfidence()
BOTH = pytest.mark.parametrize(
    "ops", [NumbaConfidence(Scratch()), PLAIN], ids=["compiled", "plain"]
)
SHAPES = [(1, 1), (1, 12), (11, 1), (2, 9), (7, 5), (35, 61), (48, 64)]
SHAPED = pytest.mark.parametrize("shape", SHAPES, ids=str)
CELL = pytest.mark.parametrize("cell", [1, 2])
DEPTH, LEAST_MARGIN = 21, 0.05
# Errors everywhere, towards the sides, of the scale, and one that changes sign over the field.
UNEVEN = DisparityVariance.of_errors(
    [
        ((0.1,),),
        ((0.0, 0.0, 0.0, 0.3, 0.0, 0.3),),
        ((0.0,), (0.2,)),
        ((0.0, 0.2, 0.1), (0.0, -0.1, 0.0), (0.01, 0.0, 0.0)),
    ],
    40.0,
)


def _confidence_parameters(
    shape, cell: int = 2, rig: d3s.Rig = RIG, **changes
) -> ConfidenceParameters:
    options = d3s.JointOptions(depth_range_m=(0.3, 2.0), search_scale=cell)
    parameters = confidence_parameters(shape, make_plan(rig.optics, options, shape))
    assert parameters.cell_side == cell
    return parameters._replace(**changes)


def _cells(shape, cell: int) -> tuple[int, int]:
    return -(-shape[0] // cell), -(-shape[1] // cell)


def _found(shape, seed: int = 0) -> SearchResult:
    rng = np.random.default_rng(seed)
    step = rng.uniform(0, DEPTH - 1, shape)
    seen = np.rint(step + rng.normal(scale=1.2, size=shape))
    seen[rng.uniform(size=shape) < 0.1] = -1
    margin = rng.uniform(0, 4 * LEAST_MARGIN, shape)
    return SearchResult(step.astype(np.float32), margin.astype(np.float32), seen.astype(np.int16))


def _fit(shape, parameters: ConfidenceParameters, seed: int = 1) -> CellFit:
    """Disparities from beyond infinity to too near, and all that a fit may say of them."""
    rng = np.random.default_rng(seed)
    nearest = parameters.offset_px + parameters.per_dpt_px / parameters.nearest_m
    disparity = rng.uniform(parameters.offset_px - 2, 1.3 * nearest, shape)
    sigma = 10 ** rng.uniform(-4, 1, shape)
    sigma[rng.uniform(size=shape) < 0.05] = UNKNOWN_PX
    correlation = np.clip(rng.uniform(-0.3, 1.2, shape), 0, 1)
    misfit = 10 ** rng.uniform(-2, 1.7, shape)
    bend = np.maximum(rng.normal(-0.02, 0.1, shape), 0)
    parts = (disparity, sigma, bend, correlation, misfit)
    flags = np.where(rng.uniform(size=shape) < 0.05, int(Flag.BORDER), 0).astype(np.uint16)
    return CellFit(*(part.astype(np.float32) for part in parts), flags)


def _trust(shape, seed: int = 2) -> Trust:
    """Probabilities of all sizes, and distances to texture up to the longest ones."""
    rng = np.random.default_rng(seed)
    parts = 10 ** rng.uniform(-5, 0, shape), rng.uniform(0, 60, shape)
    return Trust(*(part.astype(np.float32) for part in parts))


def _sure(shape) -> Trust:
    """Cells that are certainly right, with texture of their own."""
    return Trust(*np.zeros((2, *shape), np.float32))


def _has_depth(flags: np.ndarray) -> np.ndarray:
    """All flags but the remark that a depth is carried over leave a pixel without a depth."""
    return (flags & ~np.uint16(Flag.CARRIED)) == 0


def _flags(shape, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    some = rng.choice([int(Flag.OCCLUDED), int(Flag.AMBIGUOUS)], shape)
    return np.where(rng.uniform(size=shape) < 0.1, some, 0).astype(np.uint16)


def _double(parts):
    return type(parts)(
        *(part.astype(np.float64) if part.dtype == np.float32 else part for part in parts)
    )


# Compiled against plain ---------------------------------------------------------------------------


@SHAPED
@pytest.mark.parametrize("depth", [3, DEPTH, 40])
def test_of_search(shape, depth):
    found = _found(shape)
    ours, theirs = (
        ops.search_flags(found, depth, LEAST_MARGIN) for ops in (NumbaConfidence(Scratch()), PLAIN)
    )
    assert ours.dtype == theirs.dtype == np.uint16
    np.testing.assert_array_equal(ours, theirs)


def _assert_same(
    fit: CellFit, trust: Trust, flags, parameters: ConfidenceParameters
) -> DepthPlanes:
    ours = NumbaConfidence(Scratch()).depth_planes(fit, trust, flags, parameters)
    theirs = PLAIN.depth_planes(_double(fit), _double(trust), flags, parameters)
    for name in ("depth_m", "sigma_m", "confidence"):
        assert getattr(ours, name).dtype == np.float32
        assert getattr(ours, name).shape == getattr(theirs, name).shape == parameters.frame_shape
    assert ours.flags.dtype == theirs.flags.dtype == np.uint16
    # A depth or a confidence that is at a limit but for rounding may be on either side.
    same = ours.flags == theirs.flags
    assert same.sum() >= 0.999 * same.size - 1
    for name in ("depth_m", "sigma_m"):
        one, other = getattr(ours, name)[same], getattr(theirs, name)[same]
        np.testing.assert_allclose(one, other, rtol=2e-5)
        np.testing.assert_array_equal(np.isnan(one), ~_has_depth(ours.flags[same]))
    np.testing.assert_allclose(ours.confidence, theirs.confidence, atol=2e-5)
    assert ((ours.confidence >= 0) & (ours.confidence <= 1)).all()
    return ours


@SHAPED
@CELL
@pytest.mark.parametrize("rig", [RIG, PINHOLE], ids=["prototype", "pinhole"])
def test_depth_planes(shape, cell, rig):
    parameters = _confidence_parameters(shape, cell, rig)
    cells = _cells(shape, cell)
    for seed in range(3):
        _assert_same(
            _fit(cells, parameters, seed), _trust(cells, seed), _flags(cells, seed), parameters
        )


@CELL
@pytest.mark.parametrize(
    "changes",
    [
        {"min_confidence": 0.0},
        {"min_confidence": 1.0},
        {"calibration": DisparityVariance.of_sigma(0.3)},
        {"calibration": UNEVEN, "offset_px": 3.5},
        {"farthest_m": 1e4},
        {"nearest_m": 1e-4, "offset_px": 7.5},
        {"sigma_at_half_confidence_px": 0.02, "sigma_at_half_confidence_per_px": 1e-4},
        {"wrong_at_half_confidence": 0.5, "wrong_variance_px2": 9.0, "harmless_wrong": 0.2},
        {"max_carried_px": 0.0},
        {"min_correlation": 0.6, "max_misfit": 1.5},
    ],
    ids=str,
)
def test_depth_planes_by_other_numbers(cell, changes):
    shape = (61, 90)
    parameters, cells = _confidence_parameters(shape, cell, **changes), _cells(shape, cell)
    _assert_same(_fit(cells, parameters), _trust(cells), _flags(cells), parameters)


@CELL
def test_a_good_frame_is_valid(cell):
    shape = (61, 90)
    parameters, cells = _confidence_parameters(shape, cell), _cells(shape, cell)
    fit = _fit(cells, parameters)
    good = fit._replace(
        disparity_px=np.full(cells, 20, np.float32) + 0.1 * fit.correlation,
        sigma_px=np.full(cells, 0.02, np.float32) + 0.01 * fit.correlation,
        bend_px=np.zeros(cells, np.float32),
        correlation=0.8 + 0.1 * fit.correlation,
        misfit=np.ones(cells, np.float32),
        flags=np.zeros(cells, np.uint16),
    )
    nothing = np.zeros(cells, np.uint16)
    found = _assert_same(good, _sure(cells), nothing, parameters)
    assert (found.flags == 0).all()


@settings(max_examples=60)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 60)),
    cell=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_whatever_the_size(shape, cell, seed):
    parameters, cells = _confidence_parameters(shape, cell), _cells(shape, cell)
    _assert_same(
        _fit(cells, parameters, seed), _trust(cells, seed), _flags(cells, seed), parameters
    )


@CELL
@pytest.mark.parametrize("name", ["disparity_px", "sigma_px", "bend_px", "correlation", "misfit"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_no_depth(cell, name, value):
    # None of it comes out of a fit; should it, it must not be believed.
    shape = (12, 18)
    parameters, cells = _confidence_parameters(shape, cell), _cells(shape, cell)
    fit = CellFit(
        *(np.full(cells, part, np.float32) for part in (20.0, 0.02, 0.0, 0.9, 1.0)),
        np.zeros(cells, np.uint16),
    )
    getattr(fit, name)[3, 4] = value
    for ops, own in ((NumbaConfidence(Scratch()), fit), (PLAIN, _double(fit))):
        found = ops.depth_planes(own, _sure(cells), np.zeros(cells, np.uint16), parameters)
        here = (slice(3 * cell, 4 * cell), slice(4 * cell, 5 * cell))
        if (name, value) not in {("correlation", np.inf), ("misfit", -np.inf)}:
            assert (found.flags[here] != 0).all()
        valid = _has_depth(found.flags)
        np.testing.assert_array_equal(valid, np.isfinite(found.depth_m))
        assert valid[8 * cell // 2 :, : 2 * cell].all()


# Threads and memory -------------------------------------------------------------------------------


def _everything(memory: Scratch, cell: int) -> list[bytes]:
    ops = NumbaConfidence(memory)
    shape = (61, 91)
    parameters, cells = _confidence_parameters(shape, cell), _cells(shape, cell)
    flags = ops.search_flags(_found(cells), DEPTH, LEAST_MARGIN)
    found = ops.depth_planes(_fit(cells, parameters), _trust(cells), flags, parameters)
    return [part.tobytes() for part in (flags, *found)]


@CELL
def test_same_bytes_whatever_the_threads(monkeypatch, cell):
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("D3S_THREADS", threads)
        results.append(_everything(Scratch(), cell))
    assert results[0] == results[1] == results[2]


@CELL
def test_same_bytes_whatever_was_in_the_memory(cell):
    memory = Scratch()
    with memory.part():
        expected = _everything(memory, cell)
    for dirt in (0, 127, 255):
        for block in memory._blocks:
            block[:] = dirt
        with memory.part():
            assert _everything(memory, cell) == expected


@CELL
def test_the_map_outlives_the_memory(cell):
    memory = Scratch()
    shape = (20, 30)
    parameters, cells = _confidence_parameters(shape, cell), _cells(shape, cell)
    with memory.part():
        found = NumbaConfidence(memory).depth_planes(
            _fit(cells, parameters), _trust(cells), _flags(cells), parameters
        )
    for block in memory._blocks:
        for part in found:
            assert not np.shares_memory(part, block)


@CELL
def test_arguments_stay_as_they_are(cell):
    shape = (20, 31)
    parameters, cells = _confidence_parameters(shape, cell), _cells(shape, cell)
    arguments = _fit(cells, parameters), _trust(cells), _flags(cells)
    parts = (*arguments[0], *arguments[1], arguments[2])
    before = [part.copy() for part in parts]
    for ops in (NumbaConfidence(Scratch()), PLAIN):
        ops.depth_planes(*arguments, parameters)
        for part, old in zip(parts, before, strict=True):
            np.testing.assert_array_equal(part, old)


# By hand ------------------------------------------------------------------------------------------


@BOTH
def test_flags_of_the_search_by_hand(ops):
    step = np.array([[0.5, 0.6, 5, 5, 5, 5, 5, 18.4, 18.5]], np.float32)
    seen = np.array([[0, 1, 6, 7, 3, 4, -1, 18, 18]], np.int16)
    margin = np.full(step.shape, 1.0, np.float32)
    margin[0, 2] = 0.9 * LEAST_MARGIN
    flags = ops.search_flags(SearchResult(step, margin, seen), 20, LEAST_MARGIN)
    expected = [
        Flag.OUT_OF_RANGE,
        0,
        Flag.AMBIGUOUS,  # a step nearer in the right view is within what a step is
        Flag.OCCLUDED,  # the right view sees something nearer there
        Flag.INCONSISTENT,  # or something farther
        0,
        0,  # out of the right view nothing is seen
        0,
        Flag.OUT_OF_RANGE,
    ]
    assert flags.tolist() == [[int(flag) for flag in expected]]


def _one(ops, disparity=20.0, sigma=0.02, correlation=0.9, misfit=1.0, bend=0.0, **changes):
    """Judgement of a single cell of a pixel; `wrong` and `carried_px` are those of its trust."""
    trust = Trust(*(np.full((1, 1), changes.pop(name, 0.0), np.float32) for name in Trust._fields))
    parameters = _confidence_parameters((1, 1), 1, **changes)
    fit = CellFit(
        *(
            np.full((1, 1), part, np.float32)
            for part in (disparity, sigma, bend, correlation, misfit)
        ),
        np.zeros((1, 1), np.uint16),
    )
    found = ops.depth_planes(fit, trust, np.zeros((1, 1), np.uint16), parameters)
    return tuple(part[0, 0] for part in found)


@BOTH
@pytest.mark.parametrize("rig", [RIG, PINHOLE], ids=["prototype", "pinhole"])
@pytest.mark.parametrize("depth_m", [0.4, 1.0, 1.9])
def test_depth_and_sigma_by_hand(ops, rig, depth_m):
    optics = rig.optics
    per_dpt, offset = optics.focal_length_px * optics.baseline_m, optics.disparity_offset_px
    disparity = offset + per_dpt / depth_m

    def sigma_m(**changes):
        return _one(
            ops, disparity, rig=rig, **{"calibration": DisparityVariance.of_sigma(0.0), **changes}
        )[1]

    depth, sigma, _, flags = _one(
        ops, disparity, rig=rig, calibration=DisparityVariance.of_sigma(0.0)
    )
    assert flags == 0
    assert depth == pytest.approx(depth_m, rel=1e-5)
    # Eq. 18: dZ = Z² / (f b) dd.
    assert sigma == pytest.approx(0.02 * depth_m**2 / per_dpt, rel=1e-5)
    # The rectification has its own part, and the two are independent.
    both = sigma_m(calibration=DisparityVariance.of_sigma(0.03))
    assert both == pytest.approx(np.hypot(0.02, 0.03) / 0.02 * sigma, rel=1e-4)
    # A scale that is off by a hundredth takes a hundredth of the depth with it.
    of_scale = DisparityVariance.of_errors([((0.0,), (0.01 * per_dpt,))], 1.0)
    scaled = sigma_m(calibration=of_scale)
    assert scaled == pytest.approx(np.hypot(sigma, 0.01 * depth_m), rel=1e-4)
    # So has a bend of the surface.
    assert sigma_m(bend=0.03) == pytest.approx(both, rel=1e-6)
    # A probability of 0.03, of which 0.01 is harmless, that the disparity is wrong by 1.5 px.
    doubt = {"wrong_variance_px2": 2.25, "harmless_wrong": 0.01, "min_confidence": 0.0}
    expected = np.sqrt(0.02**2 + 2.25 * 0.02) / 0.02 * sigma
    assert sigma_m(wrong=0.03, **doubt) == pytest.approx(expected, rel=1e-4)
    assert sigma_m(wrong=0.01, **doubt) == pytest.approx(sigma, rel=1e-4)


@BOTH
def test_confidence_by_hand(ops):
    halves = {
        "wrong_at_half_confidence": 0.04,
        "sigma_at_half_confidence_px": 0.2,
        "sigma_at_half_confidence_per_px": 3e-4,
        "min_confidence": 0.0,
    }
    offset = RIG.optics.disparity_offset_px

    def confidence(beyond=15.0, **changes):
        return _one(ops, offset + beyond, **{**halves, "sigma": 0.0, **changes})[2]

    assert confidence() == pytest.approx(1, abs=1e-3)
    assert confidence(wrong=0.04) == pytest.approx(0.5, abs=1e-3)
    assert confidence(sigma=0.2) == pytest.approx(0.5, abs=1e-3)
    # 1 / (1 + 0.02 / 0.04 + 0.3 / 0.2); a bend of 0.18 beside a sigma of 0.24 is 0.3 too.
    assert confidence(wrong=0.02, sigma=0.3) == pytest.approx(1 / 3, abs=1e-3)
    assert confidence(wrong=0.02, sigma=0.24, bend=0.18) == pytest.approx(1 / 3, abs=1e-3)
    # From a disparity of 26 px on, 3e-4 of its square is more than 0.2 px: at 40 px it is 0.48.
    assert confidence(40.0, sigma=0.48) == pytest.approx(0.5, abs=1e-3)
    # Neither texture beyond the threshold nor errors of the rectification have a part in it.
    assert confidence(sigma=0.2, correlation=0.3) == confidence(sigma=0.2)
    assert confidence(sigma=0.2, calibration=DisparityVariance.of_sigma(3.0)) == confidence(
        sigma=0.2
    )


@BOTH
def test_confidence_does_not_depend_on_the_unit_of_length(ops):
    # The same pixels of a rig ten times as large, ten times as far away.
    small, large = (
        _one(ops, wrong=0.01, per_dpt_px=12.0 * k, nearest_m=0.1 * k, farthest_m=9.0 * k)
        for k in (1, 10)
    )
    assert large[0] == pytest.approx(10 * small[0], rel=1e-6)
    assert large[1] == pytest.approx(10 * small[1], rel=1e-6)
    assert large[2:] == small[2:]


@BOTH
def test_flags_by_hand(ops):
    parameters = _confidence_parameters((1, 1), 1)
    assert _one(ops)[3] == 0
    assert _one(ops, correlation=0.99 * parameters.min_correlation)[3] & Flag.LOW_TEXTURE
    assert _one(ops, misfit=1.01 * parameters.max_misfit)[3] == Flag.INCONSISTENT
    assert _one(ops, sigma=9.0)[3] == Flag.LOW_CONFIDENCE
    assert _one(ops, wrong=0.9)[3] == Flag.LOW_CONFIDENCE
    offset = RIG.optics.disparity_offset_px
    assert _one(ops, disparity=offset)[3] & Flag.OUT_OF_RANGE
    assert _one(ops, disparity=offset - 5)[3] & Flag.OUT_OF_RANGE
    assert _one(ops, min_confidence=0.99)[3] == Flag.LOW_CONFIDENCE


@BOTH
def test_a_depth_without_texture_close_by_is_marked_and_kept(ops):
    limit = _confidence_parameters((1, 1), 1).max_carried_px
    near, far = (_one(ops, carried_px=factor * limit) for factor in (0.99, 1.01))
    assert (near[3], far[3]) == (0, Flag.CARRIED)
    assert near[:3] == far[:3]
    both = _one(ops, carried_px=1.01 * limit, sigma=9.0)
    assert both[3] == Flag.CARRIED | Flag.LOW_CONFIDENCE
    assert np.isnan(both[0])


@BOTH
def test_ends_of_the_range_are_not_sharp(ops):
    parameters = _confidence_parameters((1, 1), 1)
    for depth_m, inside in ((0.2990, True), (0.298, False), (2.008, True), (2.012, False)):
        disparity = parameters.offset_px + parameters.per_dpt_px / depth_m
        assert (_one(ops, disparity, sigma=1e-3)[3] == 0) == inside


@BOTH
def test_a_cell_stands_for_its_pixels(ops):
    shape, cells = (5, 7), (3, 4)
    parameters = _confidence_parameters(shape, 2)
    fit = CellFit(
        *(np.full(cells, part, np.float32) for part in (20.0, 0.02, 0.0, 0.9, 1.0)),
        np.zeros(cells, np.uint16),
    )
    flags = np.zeros(cells, np.uint16)
    flags[1, 2], flags[2, 3] = int(Flag.OCCLUDED), int(Flag.BORDER)
    found = ops.depth_planes(fit, _sure(cells), flags, parameters)
    expected = np.zeros(shape, np.uint16)
    expected[2:4, 4:6], expected[4, 6] = int(Flag.OCCLUDED), int(Flag.BORDER)
    np.testing.assert_array_equal(found.flags, expected)
    assert np.isnan(found.depth_m[expected != 0]).all()
    assert np.isnan(found.sigma_m[expected != 0]).all()
    assert np.ptp(found.depth_m[expected == 0]) == 0
