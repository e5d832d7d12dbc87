"""The league on tiny images, and its standings on rows made by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from d3s.estimate.methods import methods
from d3s.lab.evaluate import Contender, PlaneSweep, Program, SceneSweep, compare
from d3s.lab.evaluate.league import STEPS, WEAK, step_errors, steps_at
from d3s.lab.evaluate.league_tables import best_of, columns
from d3s.lab.evaluate.table import SweepTable

TINY = Program(
    planes=PlaneSweep(depths_m=(0.6, 0.95), patterns=("brick",), shape=(93, 220)),
    scenes=SceneSweep(count=1, shape=(93, 220)),
    more={WEAK: SceneSweep(count=1, shape=(120, 240), surfaces="weak", seed=8)},
)


TRUST = {
    "bad_2cm": 0.02, "coverage": 0.68, "coverage_3": 0.99,
    "beside": 50, "beside_retained": 20, "beside_carried": 5,
    "fattened": 10, "fattened_unflagged": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def played():
    return compare(("bm", "joint", "sift"), program=TINY, workers=1)


def row(method, density, error_m, *, depth_m=1.0, full=1.0, slope=0.0, trust=None):
    """A row of a hundred pixels whose error grows with the share that is kept."""

    def errors(share, prefix=""):
        kept = round(100 * min(share, full))
        mae_m = error_m * (1 + slope * min(share, full)) if kept else math.nan
        return {f"{prefix}retained": kept, f"{prefix}mae_m": mae_m, f"{prefix}median_m": mae_m}

    steps = [errors((step + 1) / STEPS) for step in range(STEPS)]
    return {
        "group": "planes", "pair": "brick", "depth_m": depth_m, "method": method,
        "megapixels": 2.0, "time_s": 3.0, "pixels": 100, "textured": 100,
        **errors(full, "full_"), **errors(density, "own_"), **TRUST,
        "steps": {name: [one[name] for one in steps] for name in steps[0]}
        | {"trust": trust or np.linspace(1, 0, STEPS).tolist()},
    }  # fmt: skip


def made(played, *rows):
    names = dict.fromkeys(one["method"] for one in rows)
    contenders = tuple(Contender(method="bm", label=name) for name in names)
    return replace(played, contenders=contenders, rows=SweepTable(rows))


def test_common_density_is_the_lowest_that_dense_methods_keep(played):
    (section, beyond) = made(
        played,
        row("a", 0.93, 0.002, slope=1.0),
        row("b", 0.78, 0.003),
        row("c", 0.3, 0.0001),  # not dense, but it can be made to answer
        row("d", 0.02, 0.004, full=0.02),  # sparse
    ).sections()
    assert (section.name, beyond.name) == ("planes", "planes beyond 0.9 m")
    assert section.common_density == 0.75
    a, b, c, d = section.standings
    assert a.common["mae_m"] == pytest.approx(0.002 * 1.75)
    assert a.own["mae_m"] == pytest.approx(0.002 * 1.93)
    assert a.full["density"] == 1
    assert (b.common["density"], c.common["density"]) == (0.75, 0.75)
    assert a.curve_m[9] == pytest.approx(0.003)
    assert d.common is None
    assert d.own["density"] == 0.02
    assert a.time_s_per_mpx == 1.5
    assert math.isnan(d.curve_m[3])
    assert d.full["range_m"] == (1.0, 1.0)
    mae = next(one for one in columns(section) if (one.group, one.heading) == ("at 75 %", "MAE"))
    assert best_of(mae, section) == "c"


def test_without_a_dense_method_there_is_no_common_density(played):
    (section, _) = made(played, row("a", 0.2, 0.1, full=0.2)).sections()
    assert math.isnan(section.common_density)
    assert section.standings[0].common is None


def test_a_range_ends_where_a_texture_is_given_up(played):
    near, far = (row("a", 0.9, 0.001, depth_m=depth_m) for depth_m in (0.5, 1.0))
    lost = {**far, "own_retained": 0, "own_mae_m": math.nan, "own_median_m": math.nan}
    one = made(played, near, lost).sections()[0].standings[0]
    assert (one.own["range_m"], one.full["range_m"]) == ((0.5, 0.5), (0.5, 1.0))
    assert (one.own["pairs_with_depth"], one.full["pairs_with_depth"]) == (1, 2)
    assert one.own["median_m"] == near["own_median_m"]


def test_planes_and_scenes_of_a_tiny_league(played):
    planes, beyond, scenes, weak = played.sections()
    names = ["planes", "planes beyond 0.9 m", "scenes", "weak scenes"]
    assert [one.name for one in (planes, beyond, scenes, weak)] == names
    assert (planes.pairs, beyond.pairs, scenes.pairs, weak.pairs) == (2, 1, 1, 1)
    bm, joint, sift = planes.standings
    assert joint.common["mae_m"] < bm.common["mae_m"]
    assert sift.common is None
    assert sift.own["density"] < 0.05
    for one in played.rows:
        retained, trust = one["steps"]["retained"], one["steps"]["trust"]
        assert len(retained) == STEPS
        assert retained == sorted(retained)
        assert retained[49] == min(round(0.5 * one["pixels"]), retained[-1])
        assert retained[-1] >= one["own_retained"]
        assert trust == sorted(trust, reverse=True)
        assert one["full_retained"] >= one["own_retained"]
    assert bm.curve_m[-1] == pytest.approx(bm.full["mae_m"], rel=0.1)


def test_one_threshold_for_all_pairs():
    sure = row("a", 1, 0.001, trust=[0.9] * STEPS)
    unsure = row("a", 1, 0.01, trust=[0.8] * 50 + [0.1] * 50)
    assert steps_at(SweepTable([sure, unsure]), 0.5) == [100, 0]
    assert steps_at(SweepTable([sure, unsure]), 0.7) == [100, 40]
    assert steps_at(SweepTable([sure, unsure]), 1.0) == [100, 100]


def test_the_own_filter_comes_first(depth_map, truth):
    """Of three pixels the filter drops that of the highest confidence, which is wrong."""
    full = depth_map([[1.0, 1.1, 1.2, np.nan]])
    full = replace(full, confidence=np.float32([[0.2, 0.9, 0.5, 1.0]]))
    own = replace(full, depth_m=np.float32([[1.0, np.nan, 1.2, np.nan]]))
    contender = Contender(method="joint")
    found = step_errors(contender, own, full, truth(np.ones((1, 4))))
    assert [found["retained"][step] for step in (24, 49, 74, 99)] == [1, 2, 3, 3]
    maes_m = [found["mae_m"][step] for step in (24, 49, 74)]
    assert maes_m == pytest.approx([0.2, 0.1, 0.1], rel=1e-5)


def test_every_method_says_how_its_filters_are_switched_off():
    for method in methods():
        contender = Contender(method=method)
        off = contender.unfiltered()
        assert off.name == contender.name
        options = off.checked_options()
        assert getattr(options, "min_confidence", 0) == 0
        assert getattr(options, "consistency_px", -1) == -1
        assert getattr(options, "speckle_window_px", 0) == 0
    assert Contender(method="guo2017").ranked_by == "sigma_m"
    assert Contender(method="joint").ranked_by == "confidence"
    kept = Contender.parse("bm:block_size_px=15").unfiltered().checked_options()
    assert (kept.block_size_px, kept.disp12_max_diff_px) == (15, -1)
