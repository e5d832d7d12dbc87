"""The tuned depth equation: scale and offset for each virtual baseline, and cubics through them.

Depth by the practical form (paper Eq. 17) is a * ratio + b, with a ratio that
`optics.d3.gradient_ratio_per_px` takes from the images. For a few virtual baselines a and b are
those of the least mean absolute error over the sequence (Eq. S8), the ratio being taken where
stereo would align the true depth.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.frames import on_each_frame
from d3s.calibrate.ratios import Views, Windows, shift_sums
from d3s.calibrate.table import FEWEST_FRAMES
from d3s.errors import CalibrationError
from d3s.estimate import ConsensusOptions
from d3s.optics.d3 import practical_depth_m
from d3s.optics.stereo import alignment_shift_px
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image, Progress

Cubic = tuple[float, float, float, float]

CONSENSUS = ConsensusOptions(
    prefilter_sigma_px=4.0, window_px=31, candidates=960, min_confidence=0.8
)
"""Options of the consensus that a calibrated rig is tuned for; a and b hold for these alone.

Noise adds to the square of the difference and shrinks the ratio, the more the farther the board and
the paler its texture; and fine texture turns round within a residual disparity of several pixels.
No a and b can undo either. A Gaussian of 4 px removes most of both: on four other textures the mean
absolute error is below 1 cm up to 1.85 m, with 3 px up to 1.7 m, and with the 1 px that is the
method's default at few depths. So many candidates are 1 cm apart at 1.64 m."""

SHARES_OF_BASELINE = (0.05, 0.2)
"""Ends of the virtual baselines sampled, as shares of the real one: the paper's are 0.12 to 0.14.

Below, the views hardly differ and noise decides; above, the residual disparity of near boards is
wider than their texture."""
_SAMPLES = 16
GOOD_R2 = 0.98
"""Share of the spread of a, or b, over the baselines that a good cubic explains: the paper's."""

_LEAST_WINDOWS = 10
_MOST_WINDOWS = 400
_BESIDE = FEWEST_FRAMES - 1  # frames that one is held against: as many as there always are
# A frame is out if it is off from those beside it by so many times what is usual, and by so large a
# share of its depth: its distance is wrong, or something else stood there.
_GROSS_TIMES = 8.0
_GROSS_SHARE = 0.02
# Errors below a hundredth of a millimetre count alike: where they are 0 a weight would be infinite.
_SMALL_M = 1e-5
_ROUNDS = 100
_JACKKNIFE_GROUPS = 6


class Line(NamedTuple):
    """Depth = a * ratio + b."""

    a_m_px: float
    b_m: float


class CubicFit(NamedTuple):
    """A cubic of the virtual baseline in metres, c0 to c3, and how well it fits."""

    coefficients: Cubic
    r2: float


class Tuning(NamedTuple):
    """What the practical depth equation needs, over the virtual baselines that were sampled."""

    virtual_baselines_m: FloatArray
    a_m_px: FloatArray
    b_m: FloatArray
    a_sd_m_px: FloatArray  # spread of a when frames are left out in turn, as a standard deviation
    b_sd_m: FloatArray
    mae_m: FloatArray  # of the depth equation at the true shift, over frames that count alike
    a_cubic: CubicFit  # in m px
    b_cubic: CubicFit  # in m
    frame_error_m: FloatArray  # (frames, baselines): median of predicted less true; NaN if left out
    windows: NDArray[np.int64]  # of each frame, that had texture
    left_out: dict[int, str]
    warnings: tuple[str, ...]

    def line_at(self, virtual_baseline_m: float) -> Line:
        """Scale and offset by the cubics, as `Calibration.a_m_px` and `b_m` give them."""
        a, b = (
            float(np.polynomial.polynomial.polyval(virtual_baseline_m, cubic.coefficients))
            for cubic in (self.a_cubic, self.b_cubic)
        )
        return Line(a, b)


def find_tuning(
    views: Views,
    depths_m: Sequence[float],
    rig: Rig,
    *,
    options: ConsensusOptions = CONSENSUS,
    tilt: tuple[float, float] = (0.0, 0.0),
    progress: Progress | None = None,
) -> Tuning:
    """Scale and offset of the depth equation by virtual baseline, from boards at known depths.

    Parameters
    ----------
    views
        Rectified pairs of the board, one at each depth.
    depths_m
        Of the board on the axis of the left lens, which meets the middle of the view.
    rig
        With optics as calibrated: the disparity of a depth has to be right.
    options
        Of the consensus that is to use the tuning: its window and its prefilter change it.
    tilt
        Slopes dZ/dX and dZ/dY of the board.
    progress
        Called after each frame.

    Raises
    ------
    CalibrationError
        If fewer than five frames have texture to tune with, and agree.
    """
    optics = rig.optics
    baselines_m = optics.baseline_m * np.linspace(*SHARES_OF_BASELINE, _SAMPLES)
    found = on_each_frame(
        lambda number: _sampled(
            views[number], number, depths_m[number], baselines_m, optics, options, tilt
        ),
        len(depths_m),
        progress,
    )
    windows = np.array([sample.depth_m.size for sample in found], dtype=np.int64)
    left_out = {
        number: f"only {count} windows in its middle have texture"
        for number, count in enumerate(windows)
        if count < _LEAST_WINDOWS
    }
    samples = [sample for number, sample in enumerate(found) if number not in left_out]
    _check_count(samples, left_out)
    lines, samples = _without_gross(samples, left_out, baselines_m / optics.baseline_m)
    return _tuning(baselines_m, lines, samples, windows, left_out)


def least_absolute_lines(
    ratio_per_px: FloatArray, depth_m: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Scales and offsets of the least weighted sum of |a ratio + b - depth| (paper Eq. S8).

    One line for each row of ratios. By least squares that are weighted anew by the errors they
    leave, until nothing changes.
    """
    weights = np.broadcast_to(weight, ratio_per_px.shape)
    a, b = np.full((2, len(ratio_per_px)), np.inf)
    for _ in range(_ROUNDS):
        before = a, b
        share = weights / weights.sum(axis=1, keepdims=True)
        mean = (share * ratio_per_px).sum(axis=1)
        mean_depth = share @ depth_m
        away = ratio_per_px - mean[:, np.newaxis]
        a = (share * away) @ depth_m / (share * away**2).sum(axis=1)
        b = mean_depth - a * mean
        if np.allclose(before, (a, b), rtol=1e-6, atol=1e-9):
            break
        error = a[:, np.newaxis] * ratio_per_px + b[:, np.newaxis] - depth_m
        weights = weight / np.maximum(np.abs(error), _SMALL_M)
    return a, b


def fitted_cubic(virtual_baselines_m: FloatArray, values: FloatArray, sd: FloatArray) -> CubicFit:
    """Cubic through values that are known to within a standard deviation (paper Eqs. S9, S10)."""
    weights = 1.0 / np.maximum(sd, 0.1 * np.median(sd)) if np.median(sd) > 0 else None
    fitted = np.polynomial.Polynomial.fit(virtual_baselines_m, values, 3, w=weights)
    rest = np.sum((fitted(virtual_baselines_m) - values) ** 2)
    r2 = 1.0 - rest / np.sum((values - values.mean()) ** 2)
    c0, c1, c2, c3 = (float(c) for c in fitted.convert().coef)
    return CubicFit((c0, c1, c2, c3), float(r2))


def board_depth_m(
    windows: Windows,
    depth_m: float,
    shape: tuple[int, ...],
    optics: Optics,
    tilt: tuple[float, float],
) -> FloatArray:
    """Depth of a tilted board in each window; `depth_m` is that in the middle of the view."""
    x = (windows.cols - 0.5 * (shape[1] - 1)) / optics.focal_length_px
    y = (windows.rows - 0.5 * (shape[0] - 1)) / optics.focal_length_px
    return np.asarray(depth_m / (1.0 - tilt[0] * x - tilt[1] * y))


class _Sample(NamedTuple):
    """What one frame tells: ratios at the true shift, and the truth."""

    number: int
    ratio_per_px: FloatArray  # (baselines, windows)
    depth_m: FloatArray  # (windows,)


def _sampled(
    pair: tuple[Image, Image],
    number: int,
    depth_m: float,
    baselines_m: FloatArray,
    optics: Optics,
    options: ConsensusOptions,
    tilt: tuple[float, float],
) -> _Sample:
    rows, cols = pair[0].shape
    corners = Windows(np.array([0, 0, rows - 1, rows - 1]), np.array([0, cols - 1, 0, cols - 1]))
    reached = board_depth_m(corners, depth_m, pair[0].shape, optics, tilt)
    ends = shifts_px(reached, baselines_m, optics)
    windows, sums = shift_sums(*pair, (ends.min(), ends.max()), options, _MOST_WINDOWS)
    depth = board_depth_m(windows, depth_m, pair[0].shape, optics, tilt)
    ratio = sums.ratios_per_px(shifts_px(depth, baselines_m, optics))
    is_known = np.isfinite(ratio).all(axis=0)
    return _Sample(number, ratio[:, is_known], depth[is_known])


def shifts_px(depth_m: FloatArray, baselines_m: FloatArray, optics: Optics) -> FloatArray:
    """Shift of the right view for every virtual baseline and depth, (baselines, depths)."""
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
    """Scale and offset for each virtual baseline, over frames that count alike."""
    depth_m = np.concatenate([sample.depth_m for sample in samples])
    weight = np.concatenate(
        [np.full(sample.depth_m.size, 1.0 / sample.depth_m.size) for sample in samples]
    )
    ratio = np.concatenate([sample.ratio_per_px for sample in samples], axis=1)
    return least_absolute_lines(ratio, depth_m, weight)


def _errors_m(sample: _Sample, lines: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Predicted less true depth, (baselines, windows)."""
    predicted = [
        practical_depth_m(ratio, a_m_px=float(a), b_m=float(b))
        for ratio, a, b in zip(sample.ratio_per_px, *lines, strict=True)
    ]
    return np.asarray(predicted) - sample.depth_m


def _without_gross(
    samples: list[_Sample], left_out: dict[int, str], shares: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], list[_Sample]]:
    """Lines over the frames that fit, and these; the others join those left out."""
    while True:
        lines = _lines(samples)
        off = _unlike_neighbours(samples, lines, shares)
        worst = int(off.argmax())
        if off[worst] < max(_GROSS_SHARE, _GROSS_TIMES * float(np.median(off))):
            return lines, samples
        gross = samples.pop(worst)
        left_out[gross.number] = (
            f"its depth is {100 * off[worst]:.1f} % off from what the frames beside it suggest, "
            f"where {100 * np.median(off):.2f} % are usual"
        )
        _check_count(samples, left_out)


def _unlike_neighbours(
    samples: Sequence[_Sample], lines: tuple[FloatArray, FloatArray], shares: FloatArray
) -> FloatArray:
    """How far the error of each frame is from the median of those beside it, as shares of depth.

    A depth that is wrong by e moves a prediction by -e (B - dX) / dX: so much of the error of a
    prediction would be the distance that was written down. The errors that the method makes
    itself change slowly with depth.
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
        first = min(max(place - _BESIDE // 2, 0), error.size - 1 - _BESIDE)
        beside = [other for other in order[first : first + 1 + _BESIDE] if other != number]
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
    cubics = fitted_cubic(baselines_m, a, a_sd), fitted_cubic(baselines_m, b, b_sd)
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
    """Standard deviations of a and b, (2, baselines), from leaving groups of frames out in turn."""
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
