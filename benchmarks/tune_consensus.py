"""Tune the practical form of the consensus on the digital twin, and see what that gains.

    .venv/bin/python benchmarks/tune_consensus.py [--quick] [--candidates=240]

The paper's tuning (its Eqs. S8 to S10): for some virtual baselines, the a and b that make the mean
absolute error of a * ratio + b least, over planes at known depths; then a cubic through the a and
one through the b. Prints the fields of `Calibration`, and the error on other textures without and
with them.
"""

import argparse
from datetime import UTC, datetime

import numpy as np
from rich.console import Console
from rich.table import Table

import d3s
from d3s.estimate.consensus.method import estimate_consensus
from d3s.estimate.consensus.plan import settings_of
from d3s.estimate.consensus.prefilter import smoothed
from d3s.optics.d3 import finite_differences, gradient_ratio_per_px
from d3s.optics.stereo import alignment_shift_px
from d3s.optics.windows import shifted_right

TUNED_WITH = "calibration"
JUDGED_BY = ("leaves", "gravel", "brick")
JUDGED_AT_M = (0.3, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.64, 1.9)
BASELINES_M = np.linspace(0.35e-3, 0.65e-3, 7)
COMPARED_M = (0.45e-3, 0.50e-3, 0.55e-3)
NOISE = 0.01
# Enough pixels of a plane, whose windows overlap.
SAMPLES_PER_PLANE = 2000


def ratios(pair: d3s.Pair, depth_m: float, options: d3s.ConsensusOptions) -> np.ndarray:
    """What the practical form takes from a plane at its true shift, (baselines, samples)."""
    optics, settings = pair.rig.optics, settings_of(options, None)
    left, right = (smoothed(view, settings.prefilter_sigma_px) for view in (pair.left, pair.right))
    shifts = alignment_shift_px(
        depth_m,
        BASELINES_M,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
    )
    maps = [
        gradient_ratio_per_px(
            finite_differences(left, shifted_right(right, shift)), settings.window_px
        )
        for shift in shifts
    ]
    margin = settings.window_px // 2 + 5
    inner = np.array(maps)[:, margin:-margin, margin + int(shifts.max()) + 1 : -margin]
    flat = inner.reshape(len(maps), -1)
    return flat[:, np.linspace(0, flat.shape[1] - 1, SAMPLES_PER_PLANE).astype(int)]


def least_absolute(ratio: np.ndarray, depth_m: np.ndarray) -> tuple[float, float]:
    """The a and b of the least mean of |a ratio + b - depth|, by reweighted least squares."""
    columns = np.stack([ratio, np.ones_like(ratio)], axis=1)
    weights = np.ones_like(ratio)
    for _ in range(60):
        scaled = columns * weights[:, np.newaxis]
        a, b = np.linalg.solve(scaled.T @ columns, scaled.T @ depth_m)
        weights = 1.0 / np.maximum(np.abs(columns @ (a, b) - depth_m), 1e-5)
    return float(a), float(b)


def tune(rig: d3s.Rig, depths_m: np.ndarray, shape: tuple[int, int]) -> d3s.Calibration:
    options = d3s.ConsensusOptions()
    planes = []
    for number, depth_m in enumerate(depths_m):
        scene = d3s.Plane(depth_m=float(depth_m), texture=TUNED_WITH)
        pair = d3s.simulate(scene, rig, noise=NOISE, seed=number, shape=shape)
        planes.append(ratios(pair, float(depth_m), options))
    truth = np.repeat(depths_m, SAMPLES_PER_PLANE)
    fits = [least_absolute(np.concatenate([p[m] for p in planes]), truth) for m in range(7)]
    a, b = (_cubic(values) for values in np.transpose(fits))
    return _calibration(a, b, shape)


def _cubic(values: np.ndarray) -> tuple[float, ...]:
    fitted = np.polynomial.Polynomial.fit(BASELINES_M, values, 3).convert()
    return tuple(float(c) for c in fitted.coef)


def _calibration(
    a: tuple[float, ...], b: tuple[float, ...], shape: tuple[int, int]
) -> d3s.Calibration:
    """A calibration of which the cubics alone mean something: the twin needs no rectification."""
    return d3s.Calibration(
        anchor_left_px=(0.0, 0.0),
        anchor_right_px=(0.0, 0.0),
        crop_rows_px=shape[0],
        crop_cols_px=shape[1],
        rectify_scale=1.0,
        rectify_angle_rad=0.0,
        rectify_shift_y_px=0.0,
        virtual_baselines_m=COMPARED_M,
        a_cubic_m_px=a,
        b_cubic_m=b,
        provenance=d3s.Provenance(
            residuals={},
            input_sha256={},
            created=datetime.now(UTC).isoformat(),
            d3s_version=d3s.__version__,
        ),
    )


def error_text(pair: d3s.Pair, rig: d3s.Rig, options: d3s.ConsensusOptions) -> str:
    """Mean absolute error in cm and share of the pixels that could be tried, at C > 0.5 and 0.8."""
    found = estimate_consensus(pair.left, pair.right, rig, options)
    inner = (found.flags & np.uint16(d3s.Flag.BORDER)) == 0
    error_cm = 100 * np.abs(found.depth_m - pair.depth_m)
    parts = []
    for confidence in (0.5, 0.8):
        kept = found.valid & (found.confidence > confidence)
        mean = error_cm[kept].mean() if kept.any() else np.nan
        parts.append(f"{mean:.2f} {100 * kept.sum() / inner.sum():.0f}%")
    return "  ".join(parts)


def judge(
    rigs: dict[str, d3s.Rig],
    depths_m: tuple[float, ...],
    shape: tuple[int, int],
    options: d3s.ConsensusOptions,
) -> Table:
    table = Table(title="mean absolute error in cm and density, C > 0.5, then C > 0.8")
    for name in ("depth (m)", *(f"{texture}, {kind}" for texture in JUDGED_BY for kind in rigs)):
        table.add_column(name)
    for depth_m in depths_m:
        cells = []
        for texture in JUDGED_BY:
            scene = d3s.Plane(depth_m=depth_m, texture=texture)
            plain = d3s.Rig.paper_prototype()
            pair = d3s.simulate(scene, plain, noise=NOISE, seed=0, shape=shape)
            cells += [error_text(pair, rig, options) for rig in rigs.values()]
        table.add_row(f"{depth_m:.2f}", *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few and small planes")
    parser.add_argument("--candidates", type=int, default=240, help="how many depths to try")
    told = parser.parse_args()
    quick = told.quick
    shape = (120, 300) if quick else (300, 500)
    rig = d3s.Rig.paper_prototype()
    depths_m = 1 / np.linspace(1 / 0.3, 1 / 1.95, 9 if quick else 25)
    calibration = tune(rig, depths_m, shape)
    console = Console(width=180)
    for name in ("virtual_baselines_m", "a_cubic_m_px", "b_cubic_m"):
        console.print(f"{name} = {list(getattr(calibration, name))}")
    for baseline_m in COMPARED_M:
        a, b = calibration.a_m_px(baseline_m), calibration.b_m(baseline_m)
        console.print(f"dX = {baseline_m * 1e3:.2f} mm: a = {a:.4f} m px, b = {b:.4f} m")
    rigs = {"as printed": rig, "tuned": rig.replace(calibration=calibration)}
    options = d3s.ConsensusOptions(candidates=told.candidates)
    console.print(judge(rigs, JUDGED_AT_M[1::3] if quick else JUDGED_AT_M, shape, options))


if __name__ == "__main__":
    main()
