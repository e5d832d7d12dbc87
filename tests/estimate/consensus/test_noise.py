"""Noise in the denominator of the depth equation, and without it."""

import numpy as np
import pytest

import d3s
from d3s.estimate.consensus.consensus_method import estimate_consensus
from d3s.estimate.consensus.noise_and_gain import removed_noise
from d3s.estimate.consensus.smoothing import noise_passed, smoothed
from d3s.lab.evaluate.cameras import TUNED_RIG
from oracle.consensus import reference_consensus

TUNED = d3s.Rig.load(TUNED_RIG)
WITH_NOISE = TUNED.replace(calibration=TUNED.calibration.replace(tuned_without_noise=False))
NOISE = 0.02
OPTIONS = d3s.ConsensusOptions(
    as_printed=True, candidates=200, window_px=21, prefilter_sigma_px=2.0
)


def without_noise(**changes) -> d3s.Rig:
    told = {"noise_read": NOISE, "noise_gain": 0.0, **changes}
    return TUNED.replace(calibration=TUNED.calibration.replace(**told))


def views(depth_m: float, noise: float, shape=(70, 220)) -> tuple[np.ndarray, np.ndarray]:
    scene = d3s.Plane(depth_m=depth_m, texture="leaves")
    pair = d3s.simulate(scene, d3s.Rig(optics=TUNED.optics), noise=noise, seed=1, shape=shape)
    return pair.left, pair.right


@pytest.mark.parametrize("sigma_px", [0.0, 1.0, 4.0])
def test_share_of_noise_that_the_prefilter_passes(sigma_px):
    noise = np.random.default_rng(0).normal(0, 1, (400, 400))
    assert smoothed(noise, sigma_px).var() == pytest.approx(noise_passed(sigma_px), rel=0.1)


def test_noise_is_that_of_the_sensor_at_the_light_of_the_views():
    grey = np.full((64, 64), 0.5, dtype=np.float32), np.full((64, 64), 0.25, dtype=np.float32)
    rig = without_noise(noise_read=0.01, noise_gain=0.0004)
    bare = d3s.ConsensusOptions(prefilter_sigma_px=0.0)
    assert removed_noise(rig, grey, bare) == pytest.approx(2 * 0.01**2 + 0.0004 * 0.75)
    assert removed_noise(WITH_NOISE, grey, bare) == 0
    noisy = np.random.default_rng(0).normal(0.5, NOISE, (2, 200, 200))
    optics_only = d3s.Rig(optics=TUNED.optics)
    assert removed_noise(optics_only, noisy, bare) == pytest.approx(2 * NOISE**2, rel=0.2)
    assert removed_noise(optics_only, noisy, bare.replace(as_printed=True)) == 0


def test_compiled_matches_reference():
    pair = views(0.8, NOISE)
    options = OPTIONS.replace(candidates=40, window_px=11, prefilter_sigma_px=1.0)
    engine, plain = (
        method(*pair, without_noise(), options)
        for method in (estimate_consensus, reference_consensus)
    )
    np.testing.assert_array_equal(engine.depth_m, plain.depth_m)
    np.testing.assert_allclose(engine.confidence, plain.confidence, atol=1e-5)
    np.testing.assert_allclose(engine.sigma_m, plain.sigma_m, rtol=1e-4)


def test_noise_no_longer_brings_walls_nearer():
    depth_m, noise, shape = 1.6, 0.05, (90, 300)
    options = OPTIONS.replace(candidates=900, window_px=31)
    clean = estimate_consensus(*views(depth_m, 0.0, shape), WITH_NOISE, options)
    noisy = views(depth_m, noise, shape)
    as_printed, without = (
        estimate_consensus(*noisy, rig, options)
        for rig in (WITH_NOISE, without_noise(noise_read=noise))
    )
    nearer_m, rest_m = (
        float(np.nanmean(clean.depth_m) - np.nanmean(found.depth_m))
        for found in (as_printed, without)
    )
    assert nearer_m > 0.03
    assert abs(rest_m) < 0.3 * nearer_m
