"""The consensus with lenses that differ from place to place."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import j1

import d3s
from d3s.estimate.consensus.consensus_method import estimate_consensus
from d3s.estimate.consensus.lens_corrections import (
    _blur_factors,
    corrections,
)
from d3s.estimate.lens_field import COMA_GAIN, lens_field
from d3s.lab.evaluate.cameras import TUNED_RIG
from d3s.rig import LensMaps
from lens_pairs import lens_pair
from oracle.consensus import reference_consensus

TUNED = d3s.Rig.load(TUNED_RIG)
CURVED = LensMaps(
    field_radius_px=250.0, focus_left_dpt=(0, 0, 0.6, 1.2), focus_right_dpt=(0.05, 0, 0.6, 1.1)
)
OPTIONS = d3s.ConsensusOptions(
    candidates=40, window_px=11, prefilter_sigma_px=1.0, local_mean_px=0, refine=False
)


def _rig(lenses: LensMaps) -> d3s.Rig:
    return TUNED.replace(calibration=TUNED.calibration.replace(lenses=lenses))


def test_compiled_matches_reference_with_lens_maps():
    lenses = CURVED.replace(disparity_px=((0.2, 0.1, -0.1), (0.05,)), extra_blur_left_px2=(0.3,))
    views = lens_pair(0.8, lenses, shape=(70, 300))
    engine, plain = (
        method(*views, _rig(lenses), OPTIONS)
        for method in (estimate_consensus, reference_consensus)
    )
    # Candidates that are equally good are chosen by rounding, and by the interpolation of maps.
    same = (engine.depth_m == plain.depth_m) | (np.isnan(engine.depth_m) & np.isnan(plain.depth_m))
    assert same.mean() > 0.985
    close = np.abs(engine.confidence - plain.confidence) < 5e-3
    assert close.mean() > 0.985
    both = same & engine.valid
    assert both.mean() > 0.3
    np.testing.assert_allclose(engine.sigma_m[both], plain.sigma_m[both], rtol=0.05)


def test_lenses_alike_all_over_the_field_change_nothing(plane, assert_same_bytes):
    pair = plane(0.8, shape=(60, 160))
    assert lens_field(TUNED, (60, 160)) is None
    alike = _rig(LensMaps(field_radius_px=100.0))
    found = [
        d3s.estimate(pair.left, pair.right, rig, method="consensus", options=OPTIONS)
        for rig in (TUNED, alike)
    ]
    # But for sigma: no calibration of lenses is perfect.
    bare, known = (replace(one, sigma_m=found[0].sigma_m) for one in found)
    assert_same_bytes(bare, known)
    assert (found[1].sigma_m[known.valid] > found[0].sigma_m[known.valid]).all()


def test_there_is_nothing_to_correct_on_the_axis():
    field = lens_field(_rig(CURVED), (61, 61))
    optics = TUNED.optics
    # The left place whose match is on the axis of the right lens, and the axis of the left lens.
    for depth_m in (0.5, 1.5):
        moved = float(optics.disparity_px(depth_m)) / CURVED.field_radius_px
        # Detail that is coarse enough for any disk: the difference of the variances counts as is.
        found = corrections(field, np.array([0.0, moved]), np.zeros(2), depth_m, 1e6)
        left = CURVED.blur_px2(0, moved, 0.0, 1 / depth_m, optics)
        expected = 0.5 * (CURVED.blur_px2(0, 0.0, 0.0, 1 / depth_m, optics) - left)
        np.testing.assert_allclose(found[:3, 1], expected, atol=1e-9)


@pytest.mark.parametrize("blur_px2", [2.0, 12.0, 30.0])
def test_the_difference_of_wide_disks_counts_more_than_that_of_their_variances(blur_px2):
    # Two views that disks of these variances blur, of a texture whose contrast falls as 1/k,
    # smoothed by 4 px: the factor of the Laplacian that fits their difference best.
    variances = np.array([0.95, 1.05]) * blur_px2
    k = np.linspace(1e-3, 2.0, 4000)
    radii = 2 * np.sqrt(variances)[:, np.newaxis]
    left, right = 2 * j1(k * radii) / (k * radii) * np.exp(-8 * k**2) / k
    mean = 0.5 * (left + right)
    expected = np.sum((left - right) * k**2 * mean * k) / np.sum(k**4 * mean**2 * k)
    tensors = [np.array([variance, 0.0, variance]) for variance in variances]
    found = _blur_factors(*tensors, 16.0)
    np.testing.assert_allclose(found, [expected, 0.0, expected], rtol=0.04)
    assert expected > 0.5 * np.diff(variances) * (1 + 0.1 * blur_px2 / (blur_px2 + 16))


def test_fine_detail_is_shifted_less_by_coma_than_coarse_detail():
    lenses = CURVED.replace(coma_left_px=(0.3, 0.0, 0.0), disparity_px=((0.3,),))
    field = lens_field(_rig(lenses), (61, 61))
    coarse, medium, fine = (
        corrections(field, np.array(0.0), np.array(0.0), 0.5, sigma_px)[3]
        for sigma_px in (1e4, 4.0, 1.0)
    )
    assert coarse == pytest.approx(0.3, abs=1e-6)
    assert fine < medium < coarse
    blur = field.blur_px2(0.0, 0.0, TUNED.optics.disparity_px(0.5))
    mean_px2, left_px2 = np.mean([one[[0, 2]] for one in blur]), blur[0][0]
    share = COMA_GAIN * left_px2 / 3 / (mean_px2 + 16)
    assert medium == pytest.approx(0.3 * (1 - share), rel=1e-6)


def test_disparity_that_lenses_add_is_taken_out():
    optics = TUNED.optics.replace(disparity_offset_px=0.3)
    scene = d3s.Plane(depth_m=0.8, texture="leaves")
    pair = d3s.simulate(scene, d3s.Rig(optics=optics), noise=0.005, seed=1, shape=(90, 240))
    options = OPTIONS.replace(candidates=200, window_px=21, prefilter_sigma_px=2.0)
    lenses = LensMaps(field_radius_px=100.0, disparity_px=((0.3,),))
    medians = [
        np.nanmedian(
            d3s.estimate(pair.left, pair.right, rig, method="consensus", options=options).depth_m
        )
        for rig in (TUNED.replace(optics=optics), TUNED, _rig(lenses))
    ]
    known, unknown, corrected = medians
    assert abs(unknown - known) > 0.005
    assert abs(corrected - known) < 0.003
