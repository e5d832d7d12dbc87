"""The NumPy reference of the consensus, compared with arithmetic that shares no code with it."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

import d3s
from calibrations import calibration
from d3s.estimate.consensus.smoothing import noise_variance
from d3s.estimate.options import ConsensusOptions
from oracle.consensus import reference_consensus

PROTOTYPE = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.02)


def _calibrated(a_m_px: float, b_m: float) -> d3s.Rig:
    known = calibration(
        virtual_baselines_m=(4e-4, 6e-4),
        a_cubic_m_px=(0.0, a_m_px, 0.0, 0.0),
        b_cubic_m=(b_m, 0.0, 0.0, 0.0),
    )
    return PROTOTYPE.replace(calibration=known)


def _plane(depth_m: float, shape: tuple[int, int] = (40, 130), **more) -> d3s.Pair:
    scene = d3s.Plane(depth_m=depth_m, texture="gravel")
    return d3s.simulate(scene, PROTOTYPE, shape=shape, **{"noise": 0.01, "seed": 0, **more})


def _smooth_by_hand(view: np.ndarray, sigma_px: float, reach: int) -> np.ndarray:
    weights = [np.exp(-0.5 * (k / sigma_px) ** 2) for k in range(-reach, reach + 1)]
    weights = np.array(weights) / sum(weights)
    for axis in (0, 1):
        view = np.apply_along_axis(np.convolve, axis, view.astype(float), weights, mode="same")
    return view


def _pixel_by_hand(pair, row, col, candidate_m, baseline_m, equation):
    """Predicted depth and sum of squared denominators at one pixel, window of 5 px, in loops."""
    left, right = (_smooth_by_hand(view, 1.0, 3) for view in (pair.left, pair.right))
    shift_px = 6050 * (3.84e-3 - baseline_m) / candidate_m
    cols = np.arange(left.shape[1])
    moved = {
        y: make_interp_spline(cols, right[y], k=5)(cols - shift_px) for y in range(row - 3, row + 4)
    }
    top = bottom = 0.0
    for y in range(row - 2, row + 3):
        for x in range(col - 2, col + 3):

            def mean(j, i, y=y, x=x):
                return (left[y + j, x + i] + moved[y + j][x + i]) / 2

            gradient = (mean(0, 1) - mean(0, -1)) / 2
            laplacian = mean(0, 1) + mean(0, -1) + mean(1, 0) + mean(-1, 0) - 4 * mean(0, 0)
            numerator, denominator = equation(gradient, laplacian, left[y, x] - moved[y][x])
            top += numerator * denominator
            bottom += denominator**2
    return top / bottom, bottom


def _printed(baseline_m):
    alpha, kappa = (0.5 * 6050 * 1e-3) ** 2 * 0.1, 83.83 - 1 / 0.0121
    return lambda gx, lap, rate: (
        -6050 * baseline_m * gx - alpha * lap,
        rate - alpha * kappa * lap,
    )


@pytest.mark.parametrize("kind", ["printed", "tuned", "depth only"])
def test_one_pixel_by_hand(kind):
    pair, row, col = _plane(0.9), 20, 80
    rig = _calibrated(-5000.0, 0.05) if kind == "tuned" else PROTOTYPE
    candidates, baselines = (0.6, 0.8, 0.9, 1.0, 1.3), (4e-4, 6e-4)
    predictions, energies = {}, {}
    for z in candidates:
        for dx in baselines:
            equation = _printed(dx) if kind != "tuned" else lambda gx, lap, rate: (gx, rate)
            ratio, energies[z, dx] = _pixel_by_hand(pair, row, col, z, dx, equation)
            predictions[z, dx] = -5000 * dx * ratio + 0.05 if kind == "tuned" else ratio
    confidence = {}
    for z in candidates:
        in_depth = max(abs(z - predictions[z, dx]) for dx in baselines)
        in_vergence = max(abs(1 / z - 1 / predictions[z, dx]) for dx in baselines)
        confidence[z] = 1 / (1 + in_depth)
        if kind != "depth only":
            confidence[z] /= 1 + in_vergence
    best = max(candidates, key=confidence.get)
    noise = noise_variance(pair.left) + noise_variance(pair.right)
    step = {0.6: 0.2, 0.8: 0.15, 0.9: 0.1, 1.0: 0.2, 1.3: 0.3}[best]
    variance = step**2 / 12 + sum(
        ((predictions[best, dx] - best) * dx / 3.84e-3) ** 2
        + (best * dx / 3.84e-3) ** 2 * noise / energies[best, dx]
        for dx in baselines
    ) / len(baselines)

    options = ConsensusOptions(
        as_printed=True,
        candidates_m=candidates,
        virtual_baselines_m=baselines,
        window_px=5,
        agreement_in="depth" if kind == "depth only" else "depth and vergence",
        min_confidence=0.0,
    )
    found = reference_consensus(pair.left, pair.right, rig, options)
    assert found.confidence[row, col] == pytest.approx(confidence[best], rel=1e-6)
    assert best in (0.8, 0.9, 1.0)  # else a depth at the end of the range is flagged
    assert found.depth_m[row, col] == np.float32(best)
    assert found.sigma_m[row, col] == pytest.approx(variance**0.5, rel=1e-5)


@pytest.mark.parametrize("true_m", [0.4, 0.5, 0.8])
def test_sine_in_closed_form(true_m):
    # Without defocus, for a sine of k rad/px with a residual disparity of d px, the printed
    # equation gives f dX sin(k) / (2 tan(k d / 2)) at every pixel.
    k, f, baseline_m, dx = 0.15, 1000.0, 0.02, 2.5e-3
    cols = np.arange(260)
    left = np.tile(np.sin(k * cols), (11, 1)).astype(np.float32)
    right = np.tile(np.sin(k * (cols + f * baseline_m / true_m)), (11, 1)).astype(np.float32)
    candidates = np.array([0.3, 0.4, 0.5, 0.65, 0.8, 1.0])
    residual = f * baseline_m / true_m - f * (baseline_m - dx) / candidates
    predicted = f * dx * np.sin(k) / (2 * np.tan(k * residual / 2))
    confidence = 1 / ((1 + abs(candidates - predicted)) * (1 + abs(1 / candidates - 1 / predicted)))
    options = ConsensusOptions(
        as_printed=True,
        candidates_m=tuple(candidates),
        virtual_baselines_m=(dx,),
        window_px=5,
        prefilter_sigma_px=0.0,
        min_confidence=0.0,
    )
    found = reference_consensus(left, right, PINHOLE, options)
    inner = found.confidence[5, 100:200]
    np.testing.assert_allclose(inner, confidence.max(), atol=2e-4)
    assert 0 < confidence.argmax() < candidates.size - 1  # else the depth is flagged
    np.testing.assert_array_equal(
        found.depth_m[5, 100:200], np.float32(candidates[confidence.argmax()])
    )


OPTIONS = ConsensusOptions(
    as_printed=True, candidates=12, depth_range_m=(0.5, 1.5), window_px=9, min_confidence=0.3
)


def _search(left: np.ndarray, right: np.ndarray, options=OPTIONS) -> d3s.DepthMap:
    return reference_consensus(left, right, PROTOTYPE, options)


def _assert_same(one: d3s.DepthMap, other: d3s.DepthMap) -> None:
    np.testing.assert_array_equal(one.depth_m, other.depth_m)
    np.testing.assert_array_equal(one.flags, other.flags)
    np.testing.assert_allclose(one.confidence, other.confidence, rtol=1e-6)
    np.testing.assert_allclose(one.sigma_m, other.sigma_m, rtol=1e-5)


@pytest.mark.parametrize("gain", [0.25, 1 / 3, 2.7, 4.0])
def test_gain_and_offset_do_not_matter(gain):
    pair = _plane(0.8)
    # In double precision, so that gain and offset do not round the views.
    left, right = (view.astype(np.float64) for view in (pair.left, pair.right))
    _assert_same(_search(left, right), _search(gain * left + 0.3, gain * right + 0.3))
