"""Planes over thresholds of confidence."""

import math

import pytest

from d3s.lab.evaluate import PlaneSweep
from d3s.lab.evaluate.planes import AT_THRESHOLD, evaluate_thresholds
from d3s.lab.evaluate.table import SweepTable, summarise


def row(depth_m, threshold, retained, mae_m, texture="brick", density=0.5):
    values = {"method": "a", "threshold": threshold, "texture": texture, "depth_m": depth_m}
    figures = {"density": density, "mae_m": mae_m, "median_m": mae_m / 2}
    return {**values, "pixels": 100, "retained": retained, **figures}


def summary(rows):
    return summarise(SweepTable(rows), ("method", "threshold"), AT_THRESHOLD)


def test_a_stricter_threshold_keeps_less():
    sweep = PlaneSweep(depths_m=(0.6,), patterns=("brick",), shape=(93, 220))
    rows = evaluate_thresholds("joint", (0.0, 0.9, 1.0), sweep=sweep, workers=1).rows
    assert rows.column("threshold") == [0.0, 0.9, 1.0]
    kept = rows.column("retained")
    assert kept[0] > kept[1] > kept[2]
    assert rows[0]["pixels"] >= kept[0]


def test_summary_by_hand():
    rows = [
        row(0.5, 0.0, 100, 0.004),
        row(0.5, 0.0, 50, 0.012, "grass"),
        row(1.0, 0.0, 50, 0.008),
        row(0.5, 0.8, 20, 0.002),
        row(1.0, 0.8, 0, math.nan),
    ]
    loose, strict = summary(rows)
    assert (loose["threshold"], strict["threshold"]) == (0.0, 0.8)
    assert loose["mae_m"] == pytest.approx((0.4 + 0.6 + 0.4) / 200)
    assert loose["density"] == pytest.approx(200 / 300)
    assert loose["median_m"] == pytest.approx((0.002 + 0.006 + 0.004) / 3)
    assert loose["range_m"] == (1.0, 1.0)
    assert strict["range_m"] == (0.5, 0.5)
    assert strict["density"] == pytest.approx(0.1)


def test_a_plane_without_texture_ends_no_range():
    rows = [row(0.5, 0.8, 9, 0.004), row(1.0, 0.8, 9, 0.004), row(1.0, 0.8, 0, math.nan, "pale")]
    assert summary(rows)[0]["range_m"] == (0.5, 0.5)
    pale = row(1.0, 0.8, 0, math.nan, "pale", density=math.nan)
    assert summary([*rows[:2], pale])[0]["range_m"] == (0.5, 1.0)
    # A depth at which nothing at all is known was not shown to be in range.
    assert summary([rows[0], pale])[0]["range_m"] == (0.5, 0.5)
