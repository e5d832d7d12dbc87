"""Depth, sigma, confidence and flags: compiled against NumPy, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import d3s
from d3s.estimate.flags import Flag
from d3s.estimate.joint.method import confidence_parameters
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
from oracle import ORACLE, OURS

RIG = d3s.Rig.paper_prototype()
CELL = pytest.mark.parametrize("cell", [1, 2])
DEPTH = 21
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


def _has_depth(flags: np.ndarray, remarks: int = Flag.CARRIED) -> np.ndarray:
    """All flags but remarks leave a pixel without a depth."""
    return (flags & ~np.uint16(remarks)) == 0


def _flags(shape, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    some = rng.choice([int(Flag.OCCLUDED), int(Flag.AMBIGUOUS), int(Flag.ENCLOSED)], shape)
    return np.where(rng.uniform(size=shape) < 0.1, some, 0).astype(np.uint16)


def _double(parts):
    return type(parts)(
        *(part.astype(np.float64) if part.dtype == np.float32 else part for part in parts)
    )


# Compiled against plain ---------------------------------------------------------------------------


def test_flags_of_the_search():
    rng = np.random.default_rng(0)
    step = rng.uniform(0, DEPTH - 1, (48, 64))
    seen = np.rint(step + rng.normal(scale=1.2, size=step.shape))
    seen[rng.uniform(size=step.shape) < 0.1] = -1
    margin = rng.uniform(0, 0.1, step.shape)
    found = SearchResult(step.astype(np.float32), margin.astype(np.float32), seen.astype(np.int16))
    both = (ops.search_flags(found, DEPTH, 0.05) for ops in (OURS, ORACLE))
    np.testing.assert_array_equal(*both)


def _assert_same(
    fit: CellFit, trust: Trust, flags, parameters: ConfidenceParameters
) -> DepthPlanes:
    ours = OURS.depth_planes(fit, trust, flags, parameters)
    theirs = ORACLE.depth_planes(_double(fit), _double(trust), flags, parameters)
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
        np.testing.assert_array_equal(
            np.isnan(one), ~_has_depth(ours.flags[same], parameters.remarks)
        )
    np.testing.assert_allclose(ours.confidence, theirs.confidence, atol=2e-5)
    assert ((ours.confidence >= 0) & (ours.confidence <= 1)).all()
    return ours


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
        {"remarks": int(Flag.CARRIED | Flag.ENCLOSED), "enclosed_confidence": 0.3},
        {"min_correlation": 0.6, "max_misfit": 1.5},
    ],
    ids=str,
)
def test_depth_planes_by_other_numbers(cell, changes):
    shape = (61, 90)
    parameters, cells = _confidence_parameters(shape, cell, **changes), _cells(shape, cell)
    _assert_same(_fit(cells, parameters), _trust(cells), _flags(cells), parameters)


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
