"""benchmarks/calibration_lenses.py: figures of typical lenses, and their tables."""

import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import d3s
from calibrations import calibration as calibration_of
from d3s.optics.information import depth_bound_map
from d3s.rig import LensMaps
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import calibration_field
import calibration_lenses
import calibration_sets
import lens_figures
from calibration_field import FIELD, NINTHS, SIDES, Camera, Cell
from calibration_sets import LENS_DEPTHS_M, SCENE_PATTERNS

GOOD = Cell(
    method="joint",
    pattern="",
    depth_m=0.0,
    place="",
    pixels=1000,
    share=90.0,
    textured=95.0,
    density=90.0,
    mae_cm=0.1,
    bias_cm=-0.05,
    within_1=68.0,
    within_3=99.0,
    textured_mae_cm=0.1,
    bound_cm=0.08,
)


def cells_of_a_set() -> list[Cell]:
    """Figures of a good camera on all walls."""
    places = [
        *(("joint", place) for place in (FIELD, *NINTHS)),
        *(("consensus", place) for place in (SIDES, "middle")),
    ]
    return [
        replace(GOOD, method=method, place=place, pattern=pattern, depth_m=depth_m)
        for depth_m in LENS_DEPTHS_M
        for pattern in SCENE_PATTERNS
        for method, place in places
    ]


def good_results() -> lens_figures.Results:
    """Results of good cameras."""
    measure = {"title": "rows apart", "unit": "px", "value": "0.2", "grade": "usable"}
    one = {
        "figures": {"time_s": 100.0, "memory_gb": 1.0},
        "view_px": [1000, 1800],
        "verdict": {"grade": "usable", "measures": [measure]},
    }
    names = calibration_lenses.ALL_SETS
    return lens_figures.Results(
        dict.fromkeys(names, one), {name: cells_of_a_set() for name in names}
    )


def with_worse(results, wanted, **values):
    """Results whose cells that have the wanted values are worse, in sets of the typical lenses."""
    cells = {
        name: [
            replace(cell, **values)
            if all(getattr(cell, key) == value for key, value in wanted.items())
            else cell
            for cell in some
        ]
        if name != lens_figures.PERFECT
        else some
        for name, some in results.cells.items()
    }
    return replace(results, cells=cells)


def missed(results) -> set[str]:
    """Figures that are not held."""
    lines = lens_figures.targets(results).lines
    return {line[0] for line in lines if line[-1] != "yes"}


def test_good_cameras_hold_every_figure():
    assert missed(good_results()) == set()


@pytest.mark.parametrize(
    ("wanted", "values", "words"),
    [
        ({"place": FIELD, "depth_m": 0.4}, {"mae_cm": 0.2}, "without curvature, .*over that"),
        ({"place": FIELD, "pattern": "brick"}, {"density": 80.0}, "without curvature, .*density"),
        ({"place": "middle", "method": "joint"}, {"mae_cm": 0.16}, "typical, .*over that"),
        ({"place": "top", "depth_m": 1.9}, {"textured_mae_cm": 0.13}, "typical, .*bound"),
        ({"place": "top", "depth_m": 1.9}, {"bias_cm": -0.5}, "mean error of a ninth"),
        ({"place": "left", "depth_m": 0.7}, {"within_1": 50.0}, "1 sigma, least|sigma is true"),
        ({"place": "left", "depth_m": 0.7}, {"within_1": 80.0}, "1 sigma, largest|sigma is true"),
        ({"place": "left", "depth_m": 0.7}, {"within_3": 94.0}, "3 sigma, least|sigma is true"),
        ({"place": SIDES, "depth_m": 1.4}, {"mae_cm": 1.5}, "< 1 cm up to"),
        ({"place": SIDES, "depth_m": 0.25}, {"mae_cm": math.nan}, "< 1 cm from"),
    ],
)
def test_worse_camera_misses_its_figures(wanted, values, words):
    lost = missed(with_worse(good_results(), wanted, **values))
    assert lost
    for what in lost:
        assert re.search(words, what), what


def test_range_of_accurate_depths_is_interpolated():
    near, far = lens_figures.accurate_range_m([2.0, 0.0, 0.1, 0.1, 0.5, 1.5])
    assert near == pytest.approx(0.325, abs=0.002)
    assert far == pytest.approx(1.65, abs=0.002)
    assert all(map(math.isnan, lens_figures.accurate_range_m([2.0] * 6)))


def test_cells_of_a_file_are_those_written(tmp_path):
    path = tmp_path / "cells.csv"
    told = {"lens1": cells_of_a_set()[:3], "flat1": [replace(GOOD, density=math.nan)]}
    calibration_field.write_cells(path, told)
    found = calibration_field.read_cells(path)
    assert found["lens1"] == told["lens1"]
    assert math.isnan(found["flat1"][0].density)
    assert calibration_field.read_cells(tmp_path / "none.csv") == {}


def test_parts_of_the_field_cover_it_once():
    shape = (901, 1700)
    count = np.zeros(shape, dtype=int)
    for part in calibration_field._ninths(shape):
        count[part] += 1
    assert (count == 1).all()


def test_bound_of_views_of_equal_blur_is_that_of_a_pair():
    shape, depth_m = (90, 180), 0.85
    rig = d3s.Rig.paper_prototype()
    pair = d3s.simulate(d3s.Plane(depth_m=depth_m, texture="gravel"), rig, shape=shape)
    optics = rig.optics
    expected = depth_bound_map(
        pair.left,
        pair.right,
        depth_m,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
        alpha_px2_m=0.0,
        noise_sigma=0.01,
        window_px=31,
    ).stereo_m
    views = calibration_of(
        crop_rows_px=shape[0], crop_cols_px=shape[1], noise_read=0.01, noise_gain=0.0
    )
    camera = Camera.of(rig.replace(calibration=views))
    disparity = camera.disparity_px(depth_m)
    larger, found = calibration_field._bounds_m(camera, (pair.left, pair.right), depth_m, disparity)
    inside = np.isfinite(expected)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=0.05)
    assert (larger[inside] <= found[inside]).all()


def test_noise_of_a_view_is_larger_where_a_lens_is_dark():
    lenses = LensMaps(field_radius_px=100.0, illumination_left=(0.5,), illumination_right=(0.5,))
    views = calibration_of(noise_read=0.01, noise_gain=0.0, lenses=lenses)
    camera = Camera.of(d3s.Rig.paper_prototype().replace(calibration=views))
    flat = np.full((61, 81), 0.4, dtype=np.float32)
    np.testing.assert_allclose(camera.noise((flat, flat)), 0.02)


def test_lens_sets_are_other_cameras_than_that_of_tuning():
    tuned = d3s.typical_lenses(7)
    for name in calibration_sets.LENS_SETS:
        captures = calibration_sets.SETS[name]
        assert captures.lenses[0] != tuned[0]
        assert any(captures.bend_per_m)
        assert captures.typed_m != captures.distances_m
        has_curvature = bool(captures.lenses[0].focus_sagittal_dpt)
        assert has_curvature == name.startswith("lens")
    for name in calibration_sets.REPORT_SETS:
        captures = calibration_sets.SETS[name]
        assert captures.typed_m == captures.distances_m == calibration_sets.DISTANCES_M
