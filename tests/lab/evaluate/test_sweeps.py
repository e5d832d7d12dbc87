"""Sweeps from end to end, as small as they go, and their summaries on rows made by hand."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from d3s.errors import InputError, OptionsError
from d3s.files import write_image
from d3s.lab.evaluate import (
    REPORT_PATTERNS,
    TUNING_PATTERNS,
    PlaneSweep,
    SceneSweep,
    evaluate_planes,
    evaluate_scenes,
)
from d3s.lab.evaluate.contender import as_contenders
from d3s.lab.evaluate.table import SweepTable
from d3s.lab.twin.patterns import PATTERNS

TINY = PlaneSweep(depths_m=(0.6, 0.9), patterns=("brick", "grass"), shape=(100, 220))
FEW = SceneSweep(count=2, shape=(200, 260))


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def planes():
    seen = []
    results = evaluate_planes(
        ("sgbm", "bm"),
        sweep=TINY,
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    return results


@pytest.fixture(scope="module")
def scenes():
    return evaluate_scenes(("bm", "bm:block_size_px=11"), sweep=FEW, workers=1)


def test_no_pattern_is_both_tuned_on_and_reported():
    assert not set(TUNING_PATTERNS) & set(REPORT_PATTERNS)
    assert set(TUNING_PATTERNS) | set(REPORT_PATTERNS) == set(PATTERNS)
    assert len(REPORT_PATTERNS) >= 8


def test_photos_are_the_textures_in_place_of_patterns(tmp_path):
    for name in "cab":
        noise = np.random.default_rng(ord(name)).random((64, 96))
        write_image(tmp_path / f"{name}.png", noise)
    sweep = TINY.replace(photos=str(tmp_path))
    assert list(sweep.textures) == ["a.png", "b.png"]  # as many as patterns
    assert sweep.places == TINY.places
    rig = sweep.default_rig()
    first, other = (sweep.trial(place, rig) for place in ((0, 0), (1, 0)))
    assert first.key == {"texture": "a.png", "depth_m": 0.6}
    assert np.abs(first.left - other.left).max() > 0.1
    (layer, *_) = FEW.replace(photos=str(tmp_path)).scene(0).layers_for(rig.optics, (200, 260))
    assert layer.texture.image == str(tmp_path)
    with pytest.raises(InputError, match="there is no such folder"):
        TINY.replace(photos=str(tmp_path / "no")).check()


def test_planes_have_a_row_for_each_texture_depth_and_method(planes):
    places = [(row["texture"], row["depth_m"], row["method"]) for row in planes.rows]
    assert len(set(places)) == len(places) == 8
    for row in planes.rows:
        assert row["density"] > 0.9
        assert row["mae_m"] < 0.01
        assert 0.5 < row["mae_over_bound"] < 50
    assert len(planes.duels) == 8
    (there,) = planes.duels.where(texture="brick", depth_m=0.6, method="sgbm", rival="bm")
    (back,) = planes.duels.where(texture="brick", depth_m=0.6, method="bm", rival="sgbm")
    assert (there["mae_m"], there["rival_mae_m"]) == (back["rival_mae_m"], back["mae_m"])


def test_summary_of_planes_by_hand(planes):
    errors = {("brick", 0.6): 0.002, ("grass", 0.6): 0.004}
    errors |= {("brick", 0.9): 0.003, ("grass", 0.9): 0.011}
    rows = SweepTable(
        {
            **row,
            "mae_m": errors[row["texture"], row["depth_m"]] * (1 + (row["method"] == "bm")),
            "textured": 100,
            "textured_retained": 90 if row["texture"] == "brick" else 50,
            "mae_over_bound": 1.0 if row["depth_m"] == 0.6 else 2.0,
        }
        for row in planes.rows
    )
    cells = {"common": 10, "mae_m": 0.1, "rival_mae_m": 0.4}
    duels = SweepTable({**row, **cells} for row in planes.duels)
    sgbm, bm = replace(planes, rows=rows, duels=duels).summary()
    near, far = sgbm["depths"]
    assert near["mae_m"] == pytest.approx(0.003)
    assert (near["worst_mae_m"], near["worst_texture"]) == (0.004, "grass")
    assert near["accurate"]
    assert near["density"] == pytest.approx(0.7)
    assert far["worst_mae_m"] == 0.011
    assert not far["accurate"]
    assert sgbm["range_m"] == (0.6, 0.6)
    assert sgbm["density"] == pytest.approx(0.7)
    assert sgbm["mae_over_bound"] == pytest.approx(1.5)
    assert [one["ratio_own"] for one in sgbm["rivals"]] == pytest.approx([0.5, 0.5])
    assert [one["ratio_common"] for one in sgbm["rivals"]] == pytest.approx([0.25, 0.25])
    assert [one["common"] for one in bm["rivals"]] == [20, 20]


def test_scenes_by_region(scenes):
    assert set(scenes.rows.column("scene")) == {0, 1}
    assert len(scenes.rows) == 2 * 2 * 6
    large, small = scenes.summary()
    assert (large["method"], small["method"]) == ("bm", "bm:block_size_px=11")
    regions = {one["region"]: one for one in large["regions"]}
    assert regions["all"]["share"] == 1
    assert regions["near edges"]["share"] + regions["interior"]["share"] == pytest.approx(1)
    assert regions["interior"]["mae_m"] < regions["near edges"]["mae_m"]
    rows = scenes.rows.where(method="bm", region="all")
    errors_m, counts = rows.column("mae_m"), rows.column("retained")
    everything = sum(m * n for m, n in zip(errors_m, counts, strict=True)) / sum(counts)
    assert large["mae_m"] == pytest.approx(everything)
    assert large["mean_mae_m"] == pytest.approx(sum(errors_m) / 2)
    assert large["worst_mae_m"] == max(errors_m)
    assert large["scenes_with_depth"] == large["scenes"] == 2
    ((ours,), (theirs,)) = (large["rivals"], small["rivals"])
    assert ours["ratio_common"] == pytest.approx(1 / theirs["ratio_common"])


def test_weak_scenes_have_flat_pixels_and_fattening():
    sweep = FEW.replace(surfaces="weak", count=1, seed=6)
    (line,) = evaluate_scenes("bm", sweep=sweep, workers=1).summary()
    regions = {one["region"]: one for one in line["regions"]}
    assert regions["flat"]["share"] > 0.3
    assert regions["flat"]["retained"] < regions["textured"]["retained"]
    assert 0 < line["fattened_unflagged"] == line["fattened"] < line["beside_retained"] < 1
    assert line["beside_carried"] == 0
    assert 0 < line["coverage"] < line["coverage_3"] < 1


@pytest.mark.parametrize(
    ("methods", "error", "words"),
    [
        ((), InputError, "methods is empty: name at least one."),
        (("bm", "bm"), InputError, "methods has 'bm' twice. Give one of them another label."),
        ("bm:block_size_px=8", OptionsError, "block_size_px=8 must be odd"),
    ],
)
def test_wrong_contenders_are_told_at_once(methods, error, words):
    with pytest.raises(error) as caught:
        as_contenders(methods)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (PlaneSweep, {"depths_m": (1.0, 0.5)}, "must be one depth or several, increasing."),
        (PlaneSweep, {"patterns": ()}, "must name at least one pattern."),
        (SceneSweep, {"patterns": ("text", "text")}, "must name each pattern once."),
        (SceneSweep, {"shape": (60, 200)}, "must be at least 93"),
        (SceneSweep, {"nearest_m": 400.0}, "it is in metres. Did you pass millimetres?"),
    ],
)
def test_wrong_sweeps_are_told(kind, values, words):
    with pytest.raises(OptionsError) as caught:
        kind(**values)
    assert words in str(caught.value)
