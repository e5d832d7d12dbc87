"""Trust: evidence about wrong disparities from the search, the fit, and the texture around."""

import numpy as np
import pytest

import d3s
from d3s.estimate.joint.plan import Plan, make_plan
from d3s.estimate.joint.trust import (
    _REACH,
    gather_evidence,
    judge_cells,
)
from d3s.estimate.joint.types import CellFit, Evidence, SearchResult
from oracle import ORACLE, OURS

LENSES = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1)
BOTH = pytest.mark.parametrize("ops", [OURS, ORACLE], ids=["compiled", "plain"])
CELLS = (40, 60)
NOISE = 1e-4  # variance


def _plan(rig: d3s.Rig = PINHOLE, cells=CELLS, scale=None) -> Plan:
    range_m = (4.0, 20.0) if rig is PINHOLE else (0.4, 2.0)
    options = d3s.JointOptions(depth_range_m=range_m, search_scale=scale)
    side = 1 if rig is PINHOLE and scale is None else 2
    plan = make_plan(rig.optics, options, (side * cells[0], side * cells[1]))
    assert plan.cell_px == side
    return plan


class Case:
    """One surface 5 shifts from the first one; a search and a fit that are sure of it."""

    def __init__(self, plan: Plan, cells=CELLS) -> None:
        self.plan, rng = plan, np.random.default_rng(0)
        ratio = plan.search_scale // plan.cell_px
        size = tuple(-(-side // ratio) for side in cells)
        self.view = rng.normal(scale=0.2, size=cells).astype(np.float32)
        self.noise = np.full(cells, NOISE, np.float32)
        self.step = np.full(size, 5, np.float32)
        self.margin = np.full(size, 0.5, np.float32)
        start_px = (5 + float(plan.shifts[0])) * plan.search_scale
        parts = (start_px, 0.05, 0.0, 0.9, 1.0)
        images = (np.full(cells, part, np.float32) for part in parts)
        self.fit = CellFit(*images, np.zeros(cells, np.uint16))

    @property
    def arguments(self):
        """Arguments of `gather_evidence` and `judge_cells` but for the memory."""
        found = SearchResult(self.step, self.margin, self.step.astype(np.int16))
        return self.view, self.noise, self.fit, found, self.plan


def _evidence(case: Case, ops) -> Evidence:
    return Evidence(*(np.array(part) for part in ops.run(gather_evidence, *case.arguments)))


PLANS = pytest.mark.parametrize(
    "plan",
    [_plan(), _plan(LENSES), _plan(LENSES, scale=4), _plan(PINHOLE, scale=2)],
    ids=["sharp", "lenses", "coarse search", "sharp at half size"],
)


@PLANS
def test_engine_and_oracle_agree(plan):
    case, rng = Case(plan), np.random.default_rng(1)
    size = case.step.shape
    case.step = (3 + 6 * (np.indices(size)[1] > size[1] // 2)).astype(np.float32)
    case.step += rng.integers(0, 3, size).astype(np.float32) / 4
    case.margin = rng.uniform(0, 1, size).astype(np.float32)
    moved = case.fit.disparity_px + rng.normal(size=CELLS).astype(np.float32)
    misfit = 10 ** rng.uniform(-1, 2, CELLS).astype(np.float32)
    case.fit = case.fit._replace(disparity_px=moved, misfit=misfit)
    case.view[10:30, 10:30] *= np.float32(0.02)
    ours, theirs = (ops.run(gather_evidence, *case.arguments) for ops in (OURS, ORACLE))
    for name, one, other in zip(Evidence._fields, ours, theirs, strict=True):
        assert one.shape == CELLS, name
        assert one.dtype == np.float32, name
        close = np.isclose(one, other, rtol=1e-5, atol=1e-5)
        # A ridge may be one but for rounding.
        assert close.mean() > (0.99 if name in ("gap_px", "nearest_px") else 0.9999), name
    ours, theirs = (ops.run(judge_cells, *case.arguments) for ops in (OURS, ORACLE))
    assert np.isclose(ours.wrong, theirs.wrong, rtol=1e-4).mean() > 0.99
    assert ((ours.wrong >= 0) & (ours.wrong <= 1)).all()


@BOTH
@pytest.mark.parametrize("plan", [_plan(), _plan(LENSES)], ids=["sharp", "lenses"])
def test_noise_is_no_texture(ops, plan):
    # Noise alone, smoothed and shrunk as the method does it, and its variance.
    cells, side = CELLS, plan.cell_px
    rng = np.random.default_rng(3)
    frame = np.sqrt(NOISE) * rng.normal(size=(side * cells[0], side * cells[1]))
    case = Case(plan)
    case.view = ops.smooth(frame.astype(np.float32), plan.smoothing_px[side], side)
    evidence = _evidence(case, ops)
    assert (evidence.nearest_px == _REACH * side).mean() > 0.999
    # A tenth of that variance, and there is texture.
    case.noise /= np.float32(10)
    assert (_evidence(case, ops).nearest_px == _REACH * side).mean() < 0.5


@BOTH
def test_beside_texture_is_not_between_texture(ops):
    # A textured square before a plain wall, to which the search has carried its depth.
    case = Case(_plan(LENSES))
    case.view[:] = 0
    rng = np.random.default_rng(4)
    case.view[12:28, 20:40] = rng.normal(scale=0.2, size=(16, 20))
    evidence = _evidence(case, ops)
    within, beside = evidence.gap_px[16:24, 24:36], evidence.gap_px[16:24, 44:56]
    assert (within < 10).mean() > 0.9
    assert (beside == 2 * _REACH).all()
    trust = ops.run(judge_cells, *case.arguments)
    assert np.median(trust.wrong[16:24, 44:56]) > 2 * np.median(trust.wrong[16:24, 24:36])
    # The distance to the texture is that to the square, 2 px a cell.
    assert trust.carried_px[20, 50] == pytest.approx(2 * 11, abs=4)
    assert trust.carried_px[20, 30] <= 4


@BOTH
def test_doubt_grows_with_each_kind_of_evidence(ops):
    def wrong(change) -> float:
        case = Case(_plan(LENSES))
        change(case)
        return float(ops.run(judge_cells, *case.arguments).wrong[20, 28])

    def low_margin(case):
        case.margin[:] = 0.05

    def step(case):
        case.step[:, 30:] += np.float32(3)

    def misfit(case):
        case.fit.misfit[:] = 20

    def move(case):
        case.fit.disparity_px[:] += np.float32(0.8)

    usual = wrong(lambda case: None)
    assert usual < 0.05
    for change in (low_margin, step, misfit, move):
        assert wrong(change) > 1.5 * usual, change.__name__
