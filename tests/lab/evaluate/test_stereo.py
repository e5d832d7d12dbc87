"""Stereo data sets: their layouts, the figures worked by hand, and a run over tiny scenes."""

import math
from dataclasses import replace

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.lab.evaluate import evaluate_stereo
from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.stereo.evaluation import checked_lights, stereo_jobs
from d3s.lab.evaluate.stereo.measures import DisparityResult, matches_of, stereo_score
from d3s.lab.evaluate.stereo.scene import DEFAULT_DISPARITIES, LightChange, find_scenes, read_scene
from d3s.rig import Rig
from stereo_sets import (
    FAR_PX,
    NEAR_PX,
    SHAPE,
    SQUARE,
    UNKNOWN,
    stereo_pair,
    write_kitti,
    write_middlebury,
    write_pfm,
)


@pytest.fixture
def middlebury(tmp_path):
    for number, name in enumerate(("Bench", "Chair")):
        write_middlebury(tmp_path / "trainingQ" / name, seed=number)
    return tmp_path


# Layouts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["middlebury", "2014", "eth3d", "kitti", "kitti noc"])
def test_every_layout_gives_the_same_truth(tmp_path, layout):
    if layout.startswith("kitti"):
        write_kitti(tmp_path / "training", occluded=layout == "kitti")
    elif layout == "eth3d":
        write_middlebury(tmp_path / "delivery_area_1l", ndisp=None, doffs=0.0)
    elif layout == "2014":
        write_middlebury(tmp_path / "Bench-perfect", truth="disp0.pfm", mask=False)
    else:
        write_middlebury(tmp_path / "Bench")
    (files,) = find_scenes(tmp_path).scenes
    scene = read_scene(files)
    left, right, disparity, visible = stereo_pair()
    assert np.array_equal(np.rint(255 * scene.left), left)
    assert np.array_equal(np.rint(255 * scene.right), right)
    known = np.ones(SHAPE, dtype=bool)
    known[UNKNOWN] = False
    if layout == "kitti noc":  # truth of visible pixels only
        known &= visible
    assert np.array_equal(scene.known, known)
    assert np.array_equal(scene.disparity_px[known], disparity[known])
    expected = known & ~visible if layout in ("middlebury", "eth3d", "kitti") else known & False
    assert np.array_equal(scene.occluded, expected)
    assert scene.disparities == (24 if layout in ("middlebury", "2014") else DEFAULT_DISPARITIES)


def test_disparity_of_the_right_view_tells_what_it_shows(tmp_path):
    folder = write_middlebury(tmp_path / "Bench", truth="disp0.pfm", mask=False)
    right_px = np.full(SHAPE, float(FAR_PX))
    rows, cols = SQUARE
    right_px[rows, cols.start - NEAR_PX : cols.stop - NEAR_PX] = NEAR_PX
    write_pfm(folder / "disp1.pfm", right_px)
    scene = read_scene(find_scenes(tmp_path).scenes[0])
    assert np.array_equal(scene.occluded, scene.known & ~stereo_pair()[3])


def test_scenes_are_found_and_those_without_truth_left_out(middlebury):
    write_middlebury(middlebury / "testQ" / "Stairs", truth="")
    found = find_scenes(middlebury)
    assert [one.name for one in found.scenes] == ["trainingQ/Bench", "trainingQ/Chair"]
    (one,) = find_scenes(middlebury / "trainingQ" / "Chair").scenes
    assert (one.name, one.layout) == ("Chair", "middlebury")
    assert found.left_out == {"testQ/Stairs": "has no truth"}


def test_nothing_found_says_what_was_looked_for(tmp_path):
    write_middlebury(tmp_path / "Stairs", truth="")
    with pytest.raises(InputError) as caught:
        find_scenes(tmp_path)
    for words in ("no scene", "Stairs has no truth", "disp0GT.pfm", "image_2", "calib.txt"):
        assert words in str(caught.value)


def test_files_of_another_size_are_refused(tmp_path):
    folder = write_middlebury(tmp_path / "Bench")
    write_pfm(folder / "disp0GT.pfm", np.ones((32, 75)))
    with pytest.raises(InputError, match=r"disp0GT.pfm is for views of 75 x 32 px"):
        read_scene(find_scenes(tmp_path).scenes[0])


def test_regions_by_hand(tmp_path):
    write_middlebury(tmp_path / "Bench")
    scene = read_scene(find_scenes(tmp_path).scenes[0])
    regions = scene.regions()
    assert "weak" not in regions  # the texture is strong everywhere
    assert not (regions["all"] & scene.occluded).any()
    near = scene.near_jump
    row, col = 30, SQUARE[1].stop - 1  # the last column of the square
    assert near[row, col + 13]
    assert not near[row, col + 14]
    assert (scene.regions(with_occluded=True)["all"] == scene.known).all()
    assert (regions["occluded"] == scene.occluded).all()


# Light ------------------------------------------------------------------------------------------


def test_lights_by_hand():
    view = np.full((2, 3), 100 / 255, dtype=np.float32)
    levels = {
        text: np.rint(255 * LightChange.parse(text).apply(view))[0].tolist()
        for text in ("gain=0.6", "gamma=1.3", "ramp=0.3", "gain=3")
    }
    assert levels == {
        "gain=0.6": [60, 60, 60],
        "gamma=1.3": [round(255 * (100 / 255) ** 1.3)] * 3,
        "ramp=0.3": [70, 100, 130],
        "gain=3": [255, 255, 255],
    }
    assert LightChange().apply(view) is view
    lights = checked_lights(("gain=0.6", "gain=0.6"))
    assert [one.name for one in lights] == ["as stored", "gain=0.6"]


@pytest.mark.parametrize("text", ["gain", "gain=0", "gain=x", "shade=0.3", "ramp=1", "gamma=nan"])
def test_other_lights_are_refused(text):
    with pytest.raises(InputError, match=r"must be gain=NUMBER"):
        LightChange.parse(text)


# Figures ------------------------------------------------------------------------------------------


def result(disparity_px, sigma_px=0.5, trust=None):
    disparity_px = np.array([disparity_px], dtype=float)
    return DisparityResult(
        disparity_px=disparity_px,
        sigma_px=np.broadcast_to(sigma_px, disparity_px.shape).astype(float),
        trust=np.ones_like(disparity_px) if trust is None else np.array([trust], dtype=float),
    )


def test_figures_by_hand():
    truth = np.full((1, 10), 20.0)
    where = np.ones((1, 10), dtype=bool)
    errors = [0.1, 0.3, 0.6, 1.5, 9.0, 0.2, 0.4, 3.0]
    full = result([20 + e for e in errors] + [np.nan] * 2, trust=[9, 8, 7, 6, 5, 4, 3, 2, 0, 0])
    own = result([20 + e for e in errors[:5]] + [np.nan] * 5, trust=[9, 8, 7, 6, 5, 4, 3, 2, 0, 0])
    found = stereo_score(own, full, truth, where)
    assert (found["pixels"], found["retained"], found["density"]) == (10, 5, 0.5)
    assert found["median_px"] == pytest.approx(0.6)
    assert found["mae_px"] == pytest.approx((0.1 + 0.3 + 0.6 + 1.5 + 5.0) / 5)  # 9 counts as 5
    assert (found["bad_05"], found["bad_1"], found["bad_2"]) == pytest.approx((0.6, 0.4, 0.2))
    assert (found["coverage_1"], found["coverage_2"], found["coverage_3"]) == pytest.approx(
        (0.4, 0.6, 0.6)
    )
    assert found["confidence_gain"] == pytest.approx(1.0)  # in the order of the errors
    assert math.isnan(found["sigma_gain"])  # a constant sigma orders nothing
    assert (found["found"], found["found_bad_1"]) == pytest.approx((0.8, 3 / 8))
    assert (found["at_50"], found["at_70"], found["at_80"]) == pytest.approx((2 / 5, 2 / 7, 3 / 8))
    assert math.isnan(found["sigma_at_50"])


def test_sigma_of_disparity_by_hand(depth_map):
    rig = Rig.from_pinhole(focal_length_px=1000.0, baseline_m=0.1, disparity_offset_px=-20.0)
    found = matches_of(replace(depth_map([[2.0, np.nan]]), rig=rig))
    # d = 1000 px * 0.1 m / 2 m - 20 px; sigma_d = 0.01 m * 100 px m / (2 m)²
    assert found.disparity_px[0, 0] == pytest.approx(30.0)
    assert found.sigma_px[0, 0] == pytest.approx(0.25)
    assert found.valid.tolist() == [[True, False]]


# A run --------------------------------------------------------------------------------------------


def test_run_over_scenes_lights_and_methods(middlebury):
    results = evaluate_stereo(
        middlebury, ("bm:block_size_px=9", "joint"), lights=("gain=0.6",), workers=1
    )
    assert len(results.rows.where(region="all")) == 2 * 2 * 2
    lines = results.summary()
    assert [(one["light"], one["method"]) for one in lines] == [
        ("as stored", "bm:block_size_px=9"),
        ("as stored", "joint"),
        ("gain=0.6", "bm:block_size_px=9"),
        ("gain=0.6", "joint"),
    ]
    bm = lines[0]
    assert bm["density"] > 0.5
    assert bm["median_px"] < 0.2  # the disparities are whole
    assert bm["at_50"] < 0.05
    rows = results.rows.where(light="as stored", region="all", method="bm:block_size_px=9")
    assert bm["bad_1"] == pytest.approx(np.mean(rows.column("bad_1")))
    assert {one["region"] for one in bm["regions"]} >= {"all", "textured", "near jumps", "occluded"}


def test_finished_trials_are_found_again_until_a_file_changes(tmp_path):
    folder = write_middlebury(tmp_path / "Bench")
    found = find_scenes(tmp_path)
    jobs = [stereo_jobs(found, (Contender.parse("bm"),), (LightChange(),))[0]]
    write_pfm(folder / "disp0GT.pfm", np.full(SHAPE, 3.0))
    jobs.append(stereo_jobs(found, (Contender.parse("bm"),), (LightChange(),))[0])
    assert jobs[0] != jobs[1]
    calls = []
    evaluate_stereo(folder, "bm", workers=1, kept=tmp_path / "kept")
    evaluate_stereo(
        folder, "bm", workers=1, kept=tmp_path / "kept", progress=lambda *at: calls.append(at)
    )
    assert calls == [(1, 1)]
    assert len(list((tmp_path / "kept").glob("*.json"))) == 1


@pytest.mark.parametrize("disparities", [1, 5000, 2.5])
def test_impossible_numbers_of_disparities(middlebury, disparities):
    with pytest.raises(InputError, match="disparities="):
        evaluate_stereo(middlebury, "bm", disparities=disparities)
