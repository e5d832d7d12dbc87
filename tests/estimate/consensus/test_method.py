"""The compiled consensus: compared with the NumPy reference, and with inputs of any kind."""

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.errors import OptionsError
from d3s.estimate.consensus.consensus_method import ConsensusOptions, estimate_consensus
from d3s.estimate.consensus.consensus_plan import candidates_m, make_plan
from d3s.estimate.flags import Flag
from oracle.consensus import reference_consensus

PROTOTYPE = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.02, disparity_offset_px=-12.5)
QUICK = ConsensusOptions(
    as_printed=True, candidates=16, depth_range_m=(0.5, 1.6), window_px=9, min_confidence=0.2
)
# Half a window of 9 px, one pixel for the differences, three for the prefilter.
REACH_PX = 4 + 1 + 3


def _calibrated() -> d3s.Rig:
    known = calibration(
        virtual_baselines_m=(-5e-4, 4e-4, 6e-4),
        a_cubic_m_px=(-0.1, -5000.0, 1e5, -1e7),
        b_cubic_m=(0.05, 20.0, 0.0, 0.0),
    )
    return PROTOTYPE.replace(calibration=known)


RIGS = {"printed": PROTOTYPE, "tuned": _calibrated(), "pinhole": PINHOLE}


def _pair(
    depth_m: float = 0.8,
    texture: str = "gravel",
    noise: float = 0.01,
    shape: tuple[int, int] = (61, 151),
    rig: d3s.Rig = PROTOTYPE,
) -> tuple[np.ndarray, np.ndarray]:
    pair = d3s.simulate(d3s.Plane(depth_m=depth_m, texture=texture), rig, noise=noise, shape=shape)
    return pair.left, pair.right


def _assert_compiled_matches_reference(left, right, rig, options) -> d3s.DepthMap:
    """At least 99.9 % of the pixels have the same candidate, the others a neighbouring one."""
    fast = estimate_consensus(left, right, rig, options)
    reference = reference_consensus(left, right, rig, options)
    candidates = candidates_m(rig, options).astype(np.float32)
    both = fast.valid & reference.valid
    steps = np.abs(
        np.searchsorted(candidates, fast.depth_m[both])
        - np.searchsorted(candidates, reference.depth_m[both])
    )
    assert (steps <= 1).all()
    assert (steps == 0).mean() >= 0.999 if steps.size else True
    assert (fast.flags != reference.flags).mean() <= 1e-3
    np.testing.assert_allclose(fast.confidence, reference.confidence, atol=1e-5)
    same = both & (fast.depth_m == reference.depth_m)
    np.testing.assert_allclose(fast.sigma_m[same], reference.sigma_m[same], rtol=1e-3)
    _assert_flags_explain(fast)
    return fast


def _assert_flags_explain(found: d3s.DepthMap) -> None:
    np.testing.assert_array_equal(found.valid, found.flags == 0)
    np.testing.assert_array_equal(found.valid, np.isfinite(found.sigma_m))
    assert (found.sigma_m[found.valid] > 0).all()
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()


@pytest.mark.parametrize(
    ("depth_m", "texture", "noise"),
    [(0.6, "leaves", 0.0), (0.9, "calibration", 0.01), (1.3, "brick", 0.03)],
)
@pytest.mark.parametrize("kind", RIGS)
def test_compiled_matches_reference(kind, depth_m, texture, noise):
    rig = RIGS[kind]
    left, right = _pair(depth_m, texture, noise, rig=rig.replace(calibration=None))
    found = _assert_compiled_matches_reference(left, right, rig, QUICK.replace(min_confidence=0.0))
    assert found.density > 0.2


@pytest.mark.parametrize(
    "changes",
    [
        {"window_px": 3, "prefilter_sigma_px": 0.0},
        {"window_px": 21, "prefilter_sigma_px": 0.5},
        {"window_px": 33, "prefilter_sigma_px": 2.0},
        {"agreement_in": "depth"},
        {"virtual_baselines_m": (3e-4,)},
        {"virtual_baselines_m": (2e-3, 1e-4)},
        {"candidates_m": (0.01, 0.3, 0.55, 0.8, 0.85, 5000.0), "depth_range_m": None},
        {"candidates_m": (1e-4, 1e-3, 0.8, 1e4), "depth_range_m": None},
    ],
)
def test_compiled_matches_reference_for_any_options(changes):
    _assert_compiled_matches_reference(*_pair(), PROTOTYPE, QUICK.replace(**changes))


def test_compiled_matches_reference_over_several_tiles():
    options = QUICK.replace(candidates=5)
    found = _assert_compiled_matches_reference(*_pair(shape=(161, 1130)), PROTOTYPE, options)
    assert found.density > 0.5


def test_best_is_by_default_and_better_than_printed():
    pair = _pair(1.0, "stone", shape=(110, 300))
    best = _assert_compiled_matches_reference(
        *pair, PROTOTYPE, ConsensusOptions(candidates=120, refine=False)
    )
    printed = estimate_consensus(*pair, PROTOTYPE, ConsensusOptions(as_printed=True))
    refined = estimate_consensus(*pair, PROTOTYPE, ConsensusOptions(candidates=120))
    errors = [np.nanmean(np.abs(one.depth_m - 1.0)) for one in (printed, best, refined)]
    assert errors[1] < 0.3 * errors[0]
    assert errors[2] < errors[1]


@pytest.mark.parametrize("gain", [0.97, 1.03])
def test_gain_between_the_lenses_changes_hardly_anything(gain):
    left, right = _pair(1.6, "brick", shape=(110, 300))
    even, uneven = (
        estimate_consensus(left, view, PROTOTYPE, ConsensusOptions())
        for view in (right, np.float32(gain) * right)
    )
    errors = [np.nanmean(np.abs(one.depth_m - 1.6)) for one in (even, uneven)]
    assert errors[1] < 1.1 * errors[0]


def test_plane_is_found_and_wrong_depths_have_low_confidence():
    left, right = _pair(0.6, "leaves", shape=(90, 260))
    printed = ConsensusOptions(as_printed=True)
    found = d3s.estimate(left, right, PROTOTYPE, method="consensus", options=printed)
    assert found.method == "consensus"
    assert found.options == printed
    assert set(found.timings_s) == {"prepare", "search", "confidence", "diagnosis"}
    assert found.warnings == ()
    assert np.nanmedian(found.depth_m) == pytest.approx(0.6, rel=0.05)
    error = np.abs(found.depth_m - 0.6)
    sure = found.confidence > 0.8
    assert np.nanmean(error[sure]) < np.nanmean(error[~sure])


# Frames and borders


def test_border_is_what_the_window_and_its_match_need():
    left, right = _pair()
    options = QUICK.replace(candidates_m=(0.7, 0.8, 0.9), depth_range_m=None)
    found = estimate_consensus(left, right, PROTOTYPE, options)
    border = (found.flags & np.uint16(Flag.BORDER)) != 0
    # A pixel is no border if one candidate can be tried; the farthest has the smallest shift.
    shift_px = 6050 * 3.84e-3 * (1 - 0.45 / 3.84) / 0.9
    expected = np.ones(left.shape, dtype=bool)
    first = REACH_PX + int(np.ceil(shift_px))
    expected[REACH_PX:-REACH_PX, first:-REACH_PX] = False
    np.testing.assert_array_equal(border, expected)
    assert not found.confidence[border].any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (2, 3), (16, 300), (60, 24)])
def test_view_without_room_for_a_window(shape):
    rng = np.random.default_rng(0)
    left, right = rng.random((2, *shape), dtype=np.float32)
    for found in (
        estimate_consensus(left, right, PROTOTYPE, QUICK),
        reference_consensus(left, right, PROTOTYPE, QUICK),
    ):
        assert not found.valid.any()
        assert ((found.flags & np.uint16(Flag.BORDER)) != 0).all()
        assert not found.confidence.any()
        assert "could be tried" in found.warnings[0]


# Scenes without information


def _no_information() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    left, right = _pair(shape=(61, 151))
    black, grey = np.zeros_like(left), np.full_like(left, 0.3)
    dark = np.random.default_rng(0).normal(0, 0.01, left.shape).astype(np.float32)
    return {
        "black": (black, black),
        "constant": (grey, grey),
        "saturated": (np.minimum(left + 1, 1), np.minimum(right + 1, 1)),
        "right capped": (left, black),
        "right capped, with noise": (left, np.maximum(dark, 0)),
        "nothing": (np.full_like(left, np.nan), np.full_like(left, np.nan)),
        "rounding": (grey + np.float32(3e-8) * (left > 0.5), grey),
        "lines along the rows, seen by a pinhole": tuple(
            np.tile(view[:, :1], (1, view.shape[1])) for view in (left, right)
        ),
    }


@pytest.mark.parametrize("scene", _no_information())
def test_no_depth_without_information(scene):
    left, right = _no_information()[scene]
    rig = PINHOLE if "pinhole" in scene else PROTOTYPE
    # Not 0: the reference interpolates a row of ones to 1e-17, which gives a tiny confidence.
    options = QUICK.replace(min_confidence=1e-9)
    for method in (estimate_consensus, reference_consensus):
        found = method(left, right, rig, options)
        assert not found.valid.any()
        _assert_flags_explain(found)


@pytest.mark.parametrize("method", [estimate_consensus, reference_consensus])
def test_one_nan_of_the_left_view_touches_only_its_window(method):
    left, right = _pair()
    before = method(left, right, PROTOTYPE, QUICK)
    left = left.copy()
    left[30, 90] = np.nan
    after = method(left, right, PROTOTYPE, QUICK)
    touched = np.zeros(left.shape, dtype=bool)
    touched[30 - REACH_PX : 31 + REACH_PX, 90 - REACH_PX : 91 + REACH_PX] = True
    invalid = (after.flags & np.uint16(Flag.INVALID_INPUT)) != 0
    np.testing.assert_array_equal(invalid, touched)
    np.testing.assert_array_equal(after.depth_m[~touched], before.depth_m[~touched])
    np.testing.assert_array_equal(after.flags[~touched], before.flags[~touched])


def test_clipped_patch_is_flagged_and_nothing_else():
    left, right = _pair(shape=(61, 181))
    before = estimate_consensus(left, right, PROTOTYPE, QUICK)
    left = left.copy()
    left[25:33, 100:110] = 1.5
    after = estimate_consensus(left, right, PROTOTYPE, QUICK)
    touched = np.zeros(left.shape, dtype=bool)
    touched[25 - REACH_PX : 33 + REACH_PX, 100 - REACH_PX : 110 + REACH_PX] = True
    saturated = (after.flags & np.uint16(Flag.SATURATED)) != 0
    np.testing.assert_array_equal(saturated, touched)
    assert not after.valid[touched].any()
    np.testing.assert_array_equal(after.depth_m[~touched], before.depth_m[~touched])
    in_right = estimate_consensus(right[:, ::-1], left[:, ::-1], PROTOTYPE, QUICK)
    assert (in_right.flags & np.uint16(Flag.SATURATED)).any()


def test_depth_beyond_the_range_is_flagged():
    left, right = _pair(0.6, "leaves", 0.005)
    options = QUICK.replace(
        candidates=12, depth_range_m=(0.75, 1.6), window_px=21, min_confidence=0.0
    )
    found = estimate_consensus(left, right, PROTOTYPE, options)
    at_end = (found.flags & np.uint16(Flag.OUT_OF_RANGE)) != 0
    assert at_end.any()
    assert not found.valid[at_end].any()
    ends = np.float32([0.75, 1.6])
    assert not np.isin(found.depth_m, ends).any()


# Invariance


@pytest.mark.parametrize("threads", ["2", "3", "16"])
def test_same_bytes_from_any_number_of_threads(monkeypatch, threads):
    left, right = _pair(shape=(161, 1130))
    options = QUICK.replace(candidates=6)
    monkeypatch.setenv("D3S_THREADS", "1")
    one = estimate_consensus(left, right, PROTOTYPE, options)
    monkeypatch.setenv("D3S_THREADS", threads)
    for _ in range(4):
        _assert_same_bytes(one, estimate_consensus(left, right, PROTOTYPE, options))


def _assert_same_bytes(one: d3s.DepthMap, other: d3s.DepthMap) -> None:
    for name in ("depth_m", "sigma_m", "confidence", "flags"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


# Input arrays and options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"window_px": 20},
            "window_px=20 must be odd: a window has a pixel at its centre. Try 21.",
        ),
        ({"virtual_baselines_m": (0.5,)}, "must be below 0.1: it is in metres. Did you pass mill"),
        ({"virtual_baselines_m": ()}, "virtual_baselines_m=() must have at least 1 value."),
        ({"virtual_baselines_m": (1e-3, 0.004)}, "must be below optics.baseline_m=0.00384 of the"),
        ({"candidates_m": (1.0, 0.5)}, "candidates_m=(1.0, 0.5) must be strictly increasing."),
        ({"candidates_m": (1.0,)}, "must have at least 2 values: with one there is nothing to"),
        ({"depth_range_m": (2.0, 1.0)}, "must be the nearest depth, then a larger one."),
        ({"agreement_in": "depths"}, "agreement_in='depths' must be 'depth and vergence' or 'dep"),
        ({"min_confidence": 1.5}, "min_confidence=1.5 must be at most 1."),
        ({"windows_px": 5}, "windows_px is unknown. Did you mean window_px?"),
    ],
)
def test_wrong_option_is_named(options, words):
    left, right = np.zeros((2, 40, 60))
    with pytest.raises(OptionsError) as caught:
        d3s.estimate(left, right, PROTOTYPE, method="consensus", options=options)
    assert words in str(caught.value)


# Plan


def test_virtual_baselines_scale_with_the_baseline():
    plan = make_plan(PROTOTYPE, ConsensusOptions(as_printed=True), (902, 1802))
    np.testing.assert_allclose(plan.baselines_m, [0.45e-3, 0.50e-3, 0.55e-3])
    wide = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.384)
    np.testing.assert_allclose(
        make_plan(wide, ConsensusOptions(as_printed=True), (902, 1802)).baselines_m,
        [0.045, 0.05, 0.055],
    )
    tuned = make_plan(_calibrated(), ConsensusOptions(), (902, 1802))
    np.testing.assert_array_equal(tuned.baselines_m, [-5e-4, 4e-4, 6e-4])
    chosen = make_plan(_calibrated(), ConsensusOptions(virtual_baselines_m=(1e-3,)), (902, 1802))
    np.testing.assert_array_equal(chosen.baselines_m, [1e-3])


def test_calibrated_rig_sets_the_settings_it_was_tuned_with():
    rig = _calibrated()
    assert make_plan(rig, ConsensusOptions(as_printed=True), (90, 180)).settings == (
        240,
        21,
        1.0,
        0,
    )
    known = {"tuned_candidates": 50, "tuned_window_px": 31, "tuned_prefilter_sigma_px": 4.0}
    rig = rig.replace(calibration=rig.calibration.replace(**known))
    plan = make_plan(rig, ConsensusOptions(), (90, 180))
    assert plan.settings == (50, 31, 4.0, 12.0)
    assert plan.candidates_m.size == 50
    chosen = make_plan(rig, ConsensusOptions(window_px=9, prefilter_sigma_px=0), (90, 180))
    assert chosen.settings == (50, 9, 0.0, 12.0)
    _assert_compiled_matches_reference(*_pair(shape=(60, 300)), rig, ConsensusOptions(refine=False))
    options = {"candidates": 50, "window_px": 31, "prefilter_sigma_px": 4.0}
    found, alike = (
        d3s.estimate(*_pair(shape=(60, 300)), rig, method="consensus", options=one)
        for one in (None, options)
    )
    np.testing.assert_array_equal(found.depth_m, alike.depth_m)


def test_candidates_are_increasing_and_even_in_inverse_depth():
    candidates = candidates_m(PROTOTYPE, ConsensusOptions(candidates=7, depth_range_m=(0.5, 2.0)))
    np.testing.assert_allclose(1 / candidates, np.linspace(2, 0.5, 7))
    plan = make_plan(PROTOTYPE, ConsensusOptions(as_printed=True), (902, 1802))
    assert plan.candidates_m.size == 240
    assert (np.diff(plan.candidates_m) > 0).all()
    assert (np.diff(plan.shifts_px, axis=0) < 0).all()
    np.testing.assert_allclose(plan.candidates_m[[0, -1]], [0.25, 2.5], rtol=0.05)
