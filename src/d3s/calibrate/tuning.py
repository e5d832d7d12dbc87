"""Tuned depth equation: scale a and offset b over the virtual baseline, and cubics through these.

The practical form of the depth equation (paper Eq. 17) is Z = a * ratio + b, with the ratio of
`optics.d3.gradient_ratio_per_px`. For each of 16 virtual baselines, a and b minimise the mean
absolute error over the sequence (Eq. S8), with the ratio taken at the shift that aligns the true
depth. Only the method consensus uses them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.ratios import Windows, shift_sums
from d3s.errors import CalibrationError
from d3s.estimate import ConsensusOptions
from d3s.estimate.consensus.consensus_plan import settings_of
from d3s.estimate.consensus.depth_lines import least_absolute_lines
from d3s.estimate.consensus.lens_corrections import corrections
from d3s.estimate.consensus.noise_and_gain import removed_noise
from d3s.estimate.lens_field import LensField, lens_field
from d3s.optics.d3 import practical_depth_m
from d3s.optics.stereo import alignment_shift_px
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Progress

Cubic = tuple[float, float, float, float]

CONSENSUS = ConsensusOptions(
    prefilter_sigma_px=4.0, window_px=41, candidates=960, min_confidence=0.8
)
"""Options of the consensus that a calibrated rig is tuned for; a and b hold for these only.

Noise increases the denominator of the ratio, so that the ratio gets smaller with the distance and
with weak texture; and fine texture changes sign within a residual disparity of several pixels. No a
and b can compensate either. A Gaussian of 4 px removes most of both: on four other textures the
mean absolute error is below 1 cm up to 1.85 m, with 3 px up to 1.7 m, and with 1 px, the default of
the method, at few depths. 960 candidates are 1 cm apart at 1.64 m."""

COMA_CONSENSUS = CONSENSUS.replace(prefilter_sigma_px=6.0)
"""Options of the consensus for lenses with coma, whose views are blurred and skewed off the axis.

Coarse detail is skewed less, and a larger window makes up for the detail lost. Walls gain by it,
and scenes with many edges lose. From the tuning textures before the tuning camera
(`benchmarks/tune_lenses.py`)."""

SHARES_OF_BASELINE = (0.05, 0.2)
"""Range of the virtual baselines, as shares of the real one; those of the paper are 0.12 to 0.14.

Below, the views hardly differ and noise dominates; above, the residual disparity of near boards
exceeds the size of their texture."""
_SAMPLES = 16
GOOD_R2 = 0.98
"""Least R² of a good cubic through a, or b, over the virtual baselines: that of the paper."""

_LEAST_WINDOWS = 10
_MOST_WINDOWS = 400
_NEIGHBOURS = FEWEST_FRAMES - 1  # frames that each frame is compared with; there are always so many
# A frame is rejected if its error differs from that of its neighbours by both: so many times the
# median difference, and this share of its depth. Then its distance is wrong, or the board was not
# there.
_GROSS_TIMES = 8.0
_GROSS_SHARE = 0.02
_JACKKNIFE_GROUPS = 6


class DepthLine(NamedTuple):
    """Scale and offset of the depth equation: depth = a * ratio + b."""

    a_m_px: float
    b_m: float


class CubicFit(NamedTuple):
    """Cubic of the virtual baseline in metres."""

    coefficients: Cubic  # c0 to c3
    r2: float  # coefficient of determination, with the weights of the fit


class Tuning(NamedTuple):
    """Scale and offset of the depth equation over the virtual baselines."""

    virtual_baselines_m: FloatArray  # (baselines,)
    a_m_px: FloatArray  # (baselines,)
    b_m: FloatArray  # (baselines,)
    a_sd_m_px: FloatArray  # standard deviation of a by the jackknife over frames
    b_sd_m: FloatArray
    mae_m: FloatArray  # of the depth equation at the true shift; every frame has the same weight
    a_cubic: CubicFit  # in m px
    b_cubic: CubicFit  # in m
    frame_error_m: (
        FloatArray  # (frames, baselines): median of predicted minus true; NaN if rejected
    )
    windows: NDArray[np.int64]  # (frames,): number of textured windows
    left_out: dict[int, str]
    warnings: tuple[str, ...]

    def line_at(self, virtual_baseline_m: float) -> DepthLine:
        """Scale and offset by the cubics, as `Calibration.a_m_px` and `b_m` give them."""
        a, b = (
            float(np.polynomial.polynomial.polyval(virtual_baseline_m, cubic.coefficients))
            for cubic in (self.a_cubic, self.b_cubic)
        )
        return DepthLine(a, b)


def find_tuning(
    views: Views,
    depths_m: Sequence[float],
    rig: Rig,
    *,
    options: ConsensusOptions = CONSENSUS,
    board: Board = Board(),  # noqa: B008 - immutable
    progress: Progress | None = None,
) -> Tuning:
    """Tune scale and offset of the depth equation with boards at known depths.

    `depths_m` are those of the board on the axis of the left lens, which meets the middle of the
    view; the disparity of a depth by the rig must be right. The result depends on window and
    prefilter of the options, which are those of the consensus that will use it.
    """
    optics, with_blur = rig.optics, changes_blur(rig)
    baselines_m = optics.baseline_m * np.linspace(*SHARES_OF_BASELINE, _SAMPLES)

    def sample_frame(number: int) -> _Sample:
        left, right = views[number]
        last_row, last_col = left.shape[0] - 1, left.shape[1] - 1
        corners = np.array([0, last_col, 0, last_col]), np.array([0, 0, last_row, last_row])
        reached = board.depth_m(*corners, depths_m[number], left.shape, optics)
        ends = shifts_px(reached, baselines_m, optics)
        reach = float(ends.min()), float(ends.max())
        windows, sums = shift_sums(
            left,
            right,
            reach,
            options,
            _MOST_WINDOWS,
            with_blur=with_blur,
            removed_noise=removed_noise(rig, (left, right), options),
        )
        depth = board.depth_m(windows.cols, windows.rows, depths_m[number], left.shape, optics)
        *blur, added_px = lens_corrections(windows, depth, left.shape, rig, options)
        shifts = shifts_px(depth, baselines_m, optics) + added_px
        factors = np.stack(blur)[:, np.newaxis] if with_blur else None
        ratio = sums.ratios_per_px(shifts, factors)
        is_known = np.isfinite(ratio).all(axis=0)
        return _Sample(number, ratio[:, is_known], depth[is_known])

    found = on_each_frame(sample_frame, len(depths_m), progress)
    windows = np.array([sample.depth_m.size for sample in found], dtype=np.int64)
    left_out = {
        number: f"only {count} windows in its middle have texture"
        for number, count in enumerate(windows)
        if count < _LEAST_WINDOWS
    }
    samples = [sample for number, sample in enumerate(found) if number not in left_out]
    _check_count(samples, left_out)
    lines, samples = _fit_without_outliers(samples, left_out, baselines_m / optics.baseline_m)
    return _tuning(baselines_m, lines, samples, windows, left_out)


def fit_cubic(virtual_baselines_m: FloatArray, values: FloatArray, sd: FloatArray) -> CubicFit:
    """Fit a cubic of the virtual baseline (paper Eqs. S9, S10).

    The values are a in m px, or b in m.
    """
    least = 0.1 * np.median(sd)
    weights = 1.0 / np.maximum(sd, least) if least > 0 else np.ones_like(values)
    fitted = np.polynomial.Polynomial.fit(virtual_baselines_m, values, 3, w=weights)
    # With the weights of the fit: errors of the smallest baselines are most of the spread of b.
    away = values - np.average(values, weights=weights**2)
    rest = weights * (fitted(virtual_baselines_m) - values)
    r2 = 1.0 - np.sum(rest**2) / np.sum((weights * away) ** 2)
    c0, c1, c2, c3 = (float(c) for c in fitted.convert().coef)
    return CubicFit((c0, c1, c2, c3), float(r2))


def lens_corrections(
    windows: Windows,
    depth_m: FloatArray,
    shape: tuple[int, ...],
    rig: Rig,
    options: ConsensusOptions,
) -> FloatArray:
    """Corrections of the consensus at the centre of each window, (4, ...).

    Factors of S_xx, 2 S_xy and S_yy as in `lens_corrections.corrections`, and the disparity that
    the lenses add, in pixels.

    The last axis of the depths is that of the windows. Without maps of lenses, nothing is
    corrected. The prefilter of the options decides which detail is compared.
    """
    field = LensField.of(rig, shape)
    if field is None:
        return np.zeros((4, *np.broadcast_shapes(np.shape(depth_m), windows.cols.shape)))
    x = (windows.cols - 0.5 * (shape[1] - 1)) / field.lenses.field_radius_px
    y = (windows.rows - 0.5 * (shape[0] - 1)) / field.lenses.field_radius_px
    return corrections(field, x, y, depth_m, settings_of(options, None).prefilter_sigma_px)


def tuned_options(rig: Rig) -> ConsensusOptions:
    """Options that a and b of a rig are tuned for; `CONSENSUS` if the rig has none."""
    return CONSENSUS if rig.calibration is None else CONSENSUS.replace(**rig.calibration.tuned)


def options_for_lenses(rig: Rig) -> ConsensusOptions:
    """Options to tune a and b of a rig for: they depend on the coma of its lenses."""
    lenses = None if rig.calibration is None else rig.calibration.lenses
    if lenses is not None and LensField(lenses, rig.optics, (1, 1)).has_coma:
        return COMA_CONSENSUS
    return CONSENSUS


def changes_blur(rig: Rig) -> bool:
    """Whether the blur of the lenses is known to change over the field."""
    field = lens_field(rig, (1, 1))
    return field is not None and field.changes_blur


class _Sample(NamedTuple):
    """Ratios of one frame at the true shift, and true depths."""

    number: int
    ratio_per_px: FloatArray  # (baselines, windows)
    depth_m: FloatArray  # (windows,)


def shifts_px(depth_m: FloatArray, baselines_m: FloatArray, optics: Optics) -> FloatArray:
    """Shift of the right view for each virtual baseline and depth, in pixels.

    The result is (baselines, depths).
    """
    return alignment_shift_px(
        depth_m,
        baselines_m[:, np.newaxis],
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
    )


def _check_count(samples: Sequence[_Sample], left_out: dict[int, str]) -> None:
    if len(samples) < FEWEST_FRAMES:
        frames = len(samples) + len(left_out)
        raise CalibrationError(
            f"{len(samples)} of {frames} frames are left to tune the depth equation with, and "
            f"{FEWEST_FRAMES} are needed. Use a board with more texture, or measure its distances "
            "again.",
            left_out=left_out,
        )


def _lines(samples: Sequence[_Sample]) -> tuple[FloatArray, FloatArray]:
    """Scales and offsets, (baselines,) each; every frame has the same weight."""
    depth_m = np.concatenate([sample.depth_m for sample in samples])
    weight = np.concatenate(
        [np.full(sample.depth_m.size, 1.0 / sample.depth_m.size) for sample in samples]
    )
    ratio = np.concatenate([sample.ratio_per_px for sample in samples], axis=1)
    return least_absolute_lines(ratio, depth_m, weight)


def _errors_m(sample: _Sample, lines: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Predicted minus true depth, (baselines, windows)."""
    predicted = [
        practical_depth_m(ratio, a_m_px=float(a), b_m=float(b))
        for ratio, a, b in zip(sample.ratio_per_px, *lines, strict=True)
    ]
    return np.asarray(predicted) - sample.depth_m


def _fit_without_outliers(
    samples: list[_Sample], left_out: dict[int, str], shares: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], list[_Sample]]:
    """Fit without gross outliers: lines, and the frames kept; adds the others to `left_out`."""
    while True:
        lines = _lines(samples)
        off = _difference_to_neighbours(samples, lines, shares)
        worst = int(off.argmax())
        if off[worst] < max(_GROSS_SHARE, _GROSS_TIMES * float(np.median(off))):
            return lines, samples
        gross = samples.pop(worst)
        left_out[gross.number] = (
            f"its depth is {100 * off[worst]:.1f} % off from what the frames beside it suggest, "
            f"where {100 * np.median(off):.2f} % are usual"
        )
        _check_count(samples, left_out)


def _difference_to_neighbours(
    samples: Sequence[_Sample], lines: tuple[FloatArray, FloatArray], shares: FloatArray
) -> FloatArray:
    """Difference of the error of each frame and the median of its neighbours, as shares of depth.

    A distance that is wrong by e moves a prediction by -e (B - dX) / dX, with the virtual baseline
    dX; errors are scaled back by this factor. The errors of the method itself change slowly with
    depth.
    """
    error = np.array(
        [
            np.median(np.median(_errors_m(sample, lines), axis=1) * shares / (1.0 - shares))
            / np.median(sample.depth_m)
            for sample in samples
        ]
    )
    order = np.argsort([np.median(sample.depth_m) for sample in samples])
    off = np.zeros(error.size)
    for place, number in enumerate(order):
        first = min(max(place - _NEIGHBOURS // 2, 0), error.size - 1 - _NEIGHBOURS)
        beside = [other for other in order[first : first + 1 + _NEIGHBOURS] if other != number]
        off[number] = abs(error[number] - np.median(error[beside]))
    return off


def _tuning(
    baselines_m: FloatArray,
    lines: tuple[FloatArray, FloatArray],
    samples: Sequence[_Sample],
    windows: NDArray[np.int64],
    left_out: dict[int, str],
) -> Tuning:
    a, b = lines
    a_sd, b_sd = _jackknifed(samples)
    cubics = fit_cubic(baselines_m, a, a_sd), fit_cubic(baselines_m, b, b_sd)
    frame_error = np.full((windows.size, baselines_m.size), np.nan)
    mae = np.zeros(baselines_m.size)
    for sample in samples:
        error = _errors_m(sample, lines)
        frame_error[sample.number] = np.median(error, axis=1)
        mae += np.abs(error).mean(axis=1) / len(samples)
    return Tuning(
        virtual_baselines_m=baselines_m,
        a_m_px=a,
        b_m=b,
        a_sd_m_px=a_sd,
        b_sd_m=b_sd,
        mae_m=mae,
        a_cubic=cubics[0],
        b_cubic=cubics[1],
        frame_error_m=frame_error,
        windows=windows,
        left_out=left_out,
        warnings=tuple(_warnings(*cubics)),
    )


def _jackknifed(samples: Sequence[_Sample]) -> FloatArray:
    """Standard deviations of a and b, (2, baselines), by the jackknife over groups of frames."""
    groups = min(_JACKKNIFE_GROUPS, len(samples))
    lines = np.array(
        [
            _lines([sample for i, sample in enumerate(samples) if i % groups != group])
            for group in range(groups)
        ]
    )
    return np.asarray(np.sqrt(groups - 1.0) * lines.std(axis=0))


def _warnings(a_cubic: CubicFit, b_cubic: CubicFit) -> list[str]:
    return [
        f"the cubic through {name} explains {cubic.r2:.3f} of its spread over the virtual "
        f"baselines, less than {GOOD_R2}: the depth equation does not suit this texture."
        for name, cubic in (("a", a_cubic), ("b", b_cubic))
        if cubic.r2 < GOOD_R2
    ]
