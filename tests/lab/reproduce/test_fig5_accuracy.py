"""Accuracy on planes: the protocol, ranges by hand, and what is said beside the paper."""

import numpy as np
import pytest

from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS, SweepTable
from d3s.lab.evaluate.cameras import BOARD
from d3s.lab.reproduce import fig5_accuracy
from d3s.lab.reproduce.fig5_accuracy import THRESHOLDS, lines_of, make_accuracy, sweeps
from d3s.lab.reproduce.item import Comparison, Context
from d3s.lab.reproduce.protocol import ACCURACY_THRESHOLD, OTHERS, PRINTED, TUNED, WHOLE
from made_results import row, table

DEPTHS_M = (0.25, 0.29, 0.6, 1.1, 1.6, 1.64, 1.97)


def line_of(*rows):
    (line,) = lines_of(SweepTable(rows))
    return line


def row_at(depth_m, mae_m):
    return row(depth_m=depth_m, mae_m=mae_m)


def made_up(reach_m):
    """Every method with an error of 1 mm up to its reach, and 2 cm beyond; 0.9 m if not told."""
    told = {name: reach_m.get(name, 0.9) for name in (one.name for one in (*OTHERS, *WHOLE))}
    rows = [
        row(name, z, 0.001 if z <= far else 0.02) for name, far in told.items() for z in DEPTHS_M
    ]
    for threshold in THRESHOLDS:
        far = reach_m[TUNED.name] if threshold >= ACCURACY_THRESHOLD else 1.0
        kept = 80 if threshold < ACCURACY_THRESHOLD else 40
        rows += [
            row(TUNED.name, z, 0.001 if z <= far else 0.02, threshold=threshold, retained=kept)
            for z in DEPTHS_M
        ]
    rows += [row(PRINTED.name, z, 0.009, threshold=ACCURACY_THRESHOLD) for z in DEPTHS_M]
    return SweepTable(rows)


@pytest.fixture
def make(monkeypatch, tmp_path):
    def made(*, quick=False, **reach_m):
        rows = made_up(reach_m | {TUNED.name: 1.64})
        monkeypatch.setattr(fig5_accuracy, "measure", lambda context: rows)
        monkeypatch.setattr(fig5_accuracy, "parameters", lambda context: [{"sweep": {}}])
        density = Comparison(what="density", paper="", ours="", why="")
        monkeypatch.setattr(fig5_accuracy, "_density_comparison", lambda context: density)
        return make_accuracy(Context(folder=tmp_path, quick=quick))

    return made


@pytest.mark.parametrize("quick", [False, True])
def test_nothing_is_tuned_on_what_is_reported(quick, tmp_path):
    for sweep in sweeps(Context(folder=tmp_path, quick=quick)):
        assert set(sweep.patterns) <= set(REPORT_PATTERNS)
    assert BOARD in TUNING_PATTERNS


def test_planes_of_a_depth_count_alike():
    line = line_of(
        row(mae_m=0.004, retained=100),
        row(mae_m=0.012, retained=20, texture="bark"),
        row(depth_m=2.0, mae_m=0.03),
    )
    np.testing.assert_allclose(line.depth_m, (1.0, 2.0))
    np.testing.assert_allclose(line.mae_m, (0.008, 0.03))
    np.testing.assert_allclose(line.worst_mae_m, (0.012, 0.03))
    np.testing.assert_allclose(line.share, (0.6, 0.5))
    assert line.range_m == (1.0, 1.0)
    assert line.strict_range_m is None


def test_a_depth_without_any_pixel_ends_a_range():
    nothing = {"mae_m": float("nan"), "retained": 0}
    rows = [row(depth_m=0.5), row(depth_m=1.0), row(depth_m=1.5, **nothing), row(depth_m=2.0)]
    line = line_of(*rows)
    assert line.range_m == (0.5, 1.0)
    # It has no error, but counts in the share: 0.5, 0.5, nothing and 0.5.
    assert line.over((0.4, 2.0)) == pytest.approx((0.005, 0.375))
    assert np.isnan(line.over((3.0, 4.0))).all()


def test_tables_of_ranges(make):
    result = make(joint=1.97, sift=0.29)
    order = [row["method"] for row in table(result, "working_ranges")]
    assert (order[0], order[-1]) == ("joint", "sift")  # the longest first
    assert len(table(result, "threshold_ranges")) == len(THRESHOLDS)


def test_the_page_says_where_a_rival_wins(make):
    rows = {one.what: one for one in make(li2010=1.97, takeda2013=0.29).comparisons}
    assert not rows["li2010 against the consensus, on the same images"].agrees
    assert rows["takeda2013 against the consensus, on the same images"].agrees
    assert not any(one.same_conditions for one in rows.values())


def test_every_depth_of_the_printed_range_must_be_below_a_centimetre(make):
    (row,) = (one for one in make().comparisons if one.what.startswith("MAE of the consensus"))
    assert "0.10 cm on average and 0.10 cm at the worst depth" in row.ours
    assert row.agrees
    line = line_of(row_at(0.2, 0.5), row_at(0.5, 0.004), row_at(1.0, 0.02), row_at(2.0, 9.0))
    assert line.largest_m((0.3, 1.64)) == 0.02
    line = line_of(row_at(0.5, 0.004), row_at(1.0, float("nan")))
    assert line.largest_m((0.3, 1.64)) == np.inf


def test_figures_can_be_drawn(make):
    result = make()
    assert [one.name for one in result.pictures] == ["thresholds", "methods"]
    for picture in result.pictures:
        picture.figure.draw_without_rendering()
        assert picture.caption.startswith("Simulated")
