"""Choice of the virtual baselines that the consensus compares (paper Eq. S11).

The prediction of a virtual baseline for a candidate depth does not depend on the other baselines.
So predictions are made once, for windows of all frames, and then sets of baselines are compared.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.ratios import shift_sums
from d3s.calibrate.tuning import CONSENSUS, Tuning, changes_blur, lens_corrections, shifts_px
from d3s.calibrate.validation import widened_depth_range_m
from d3s.errors import InputError
from d3s.estimate import ConsensusOptions
from d3s.estimate.consensus.consensus_plan import candidates_m
from d3s.estimate.consensus.noise_and_gain import removed_noise
from d3s.optics.d3 import practical_depth_m
from d3s.rig import Rig
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Progress

MISSING_M = 0.02
"""Cost of a window without a depth: that of an error of 2 cm.

The paper does not say what a pixel without a depth costs. A set must win neither by few depths nor
by wrong ones."""

_COUNTS = (1, 2, 3, 4, 5)
_WINDOWS_PER_FRAME = 48
# Of sets of more than three, only the best smaller sets with one more baseline are tried.
_ALL_SETS_UP_TO = 3
_KEPT_SETS = 12


class BaselineSet(NamedTuple):
    """A set of virtual baselines, and the errors of the consensus with it over the sequence."""

    virtual_baselines_m: tuple[float, ...]
    cost_m: float  # mean price of all windows: absolute error, `MISSING_M` where there is no depth
    mae_m: float  # over the windows that have a depth; NaN if none has
    density: float  # share of the windows that have a depth


class ChosenBaselines(NamedTuple):
    """The best set of virtual baselines, and the costs of others."""

    chosen: BaselineSet
    best_of_count: tuple[BaselineSet, ...]  # best set of one virtual baseline, of two, ...
    sampled_m: FloatArray  # (sampled,): virtual baselines to choose from
    surface_m: FloatArray  # (sampled, sampled): least cost by first and last baseline; NaN if none
    sets_tried: int
    windows: NDArray[np.int64]  # (frames,): number of windows
    left_out: dict[int, str]


def choose_baselines(
    views: Views,
    depths_m: Sequence[float],
    rig: Rig,
    tuning: Tuning,
    *,
    count: int = 3,
    options: ConsensusOptions = CONSENSUS,
    board: Board = Board(),  # noqa: B008 - immutable
    at_one_metre: bool = False,
    progress: Progress | None = None,
) -> ChosenBaselines:
    """Choose the set of virtual baselines with the least cost over boards at known depths.

    `tuning` is the result of `find_tuning` with the same options, and its virtual baselines are
    chosen from; views, depths and board are as there. `count` is 1 to 5; the result has the best
    sets of 1 to 5. A window has a depth where the confidence exceeds `options.min_confidence`;
    without a depth range, one that has all boards is used. With `at_one_metre` errors count as they
    would be at 1 m: divided by the square of the depth in metres, with which noise grows. In the
    paper (Eq. S11) errors count as they are, so that far boards decide: sets that differ by a few
    per cent of that cost differ by half at near depths.
    """
    if count not in _COUNTS:
        raise InputError(f"count={count!r} must be a whole number from 1 to {_COUNTS[-1]}.")
    if options.depth_range_m is None and options.candidates_m is None and len(depths_m):
        options = options.replace(depth_range_m=widened_depth_range_m(rig.optics, depths_m))
    numbers = [number for number in range(len(depths_m)) if number not in tuning.left_out]
    sampled_m, candidates = tuning.virtual_baselines_m, candidates_m(rig, options)
    shifts = shifts_px(candidates, sampled_m, rig.optics)
    ends, with_blur = (float(shifts.min()), float(shifts.max())), changes_blur(rig)

    def predict(i: int) -> _Predictions:
        left, right = views[numbers[i]]
        windows, sums = shift_sums(
            left,
            right,
            ends,
            options,
            _WINDOWS_PER_FRAME,
            with_blur=with_blur,
            removed_noise=removed_noise(rig, (left, right), options),
        )
        predicted = np.empty((windows.rows.size, *shifts.shape), dtype=np.float32)
        *blur, added_px = lens_corrections(
            windows, candidates[:, np.newaxis], left.shape, rig, options
        )
        factors = np.stack(blur) if with_blur else None
        for k, baseline_m in enumerate(sampled_m):
            line = tuning.line_at(float(baseline_m))
            ratio = sums.ratios_per_px(shifts[k][:, np.newaxis] + added_px, factors)
            predicted[:, k] = practical_depth_m(ratio, a_m_px=line.a_m_px, b_m=line.b_m).T
        truth = board.depth_m(
            windows.cols, windows.rows, depths_m[numbers[i]], left.shape, rig.optics
        )
        return _Predictions(predicted, truth, np.full(truth.size, 1.0 / max(truth.size, 1)))

    frames = on_each_frame(predict, len(numbers), progress)
    windows = np.zeros(len(views), dtype=np.int64)
    windows[numbers] = [frame.truth_m.size for frame in frames]
    if not windows.any():
        raise InputError("no frame has texture to choose virtual baselines with.")
    trial = _Trial(_joined(frames), candidates, sampled_m, options, at_one_metre)
    return _chosen(trial, count, windows, dict(tuning.left_out))


def cost_m(
    error_m: FloatArray, confidence: FloatArray, min_confidence: float, weight: FloatArray
) -> float:
    """Weighted mean absolute error in metres, `MISSING_M` where confidence is low (paper Eq. S11).

    `error_m` is depth minus truth in each window; a window has a depth if its confidence exceeds
    `min_confidence`; the weights sum to 1.
    """
    price = np.where(confidence > min_confidence, np.abs(error_m), MISSING_M)
    return float(weight @ price)


class _Predictions(NamedTuple):
    """Depths that the virtual baselines predict for the candidates."""

    depth_m: NDArray[np.float32]  # (windows, baselines, candidates)
    truth_m: FloatArray  # (windows,)
    weight: FloatArray  # (windows,): the same sum for each frame


def _joined(frames: list[_Predictions]) -> _Predictions:
    """Predictions of all frames; empties the list, to save half of the memory."""
    truth = np.concatenate([one.truth_m for one in frames])
    weight = np.concatenate([one.weight for one in frames])
    depth = np.empty((truth.size, *frames[0].depth_m.shape[1:]), dtype=np.float32)
    stop = truth.size
    while frames:
        last = frames.pop().depth_m
        depth[stop - len(last) : stop] = last
        stop -= len(last)
    return _Predictions(depth, truth, weight / weight.sum())


class _Trial(NamedTuple):
    """Predictions and candidates that sets of virtual baselines are compared on."""

    predictions: _Predictions
    candidates_m: FloatArray
    sampled_m: FloatArray
    options: ConsensusOptions
    at_one_metre: bool = False

    def compare(self, sets: NDArray[np.int64]) -> list[BaselineSet]:
        """Errors of the consensus with sets (sets, baselines) of indices into `sampled_m`."""
        windows = self.predictions.truth_m.size
        found = np.zeros((windows, len(sets)), dtype=np.int64)
        confidence = np.zeros(found.shape)
        counts = np.full(self.candidates_m.size, self.options.agreement_in != "depth")
        candidates = np.stack([self.candidates_m, 1.0 / self.candidates_m, counts])
        dearest = 1.0 / max(self.options.min_confidence, 1e-9)
        depth = self.predictions.depth_m
        run_over_rows(_agree, windows, depth, candidates, sets, dearest, found, confidence)
        error = self.candidates_m[found] - self.predictions.truth_m[:, np.newaxis]
        return [
            self._errors(chosen, error[:, i], confidence[:, i]) for i, chosen in enumerate(sets)
        ]

    def _errors(
        self, chosen: NDArray[np.int64], error_m: FloatArray, confidence: FloatArray
    ) -> BaselineSet:
        weight, least = self.predictions.weight, self.options.min_confidence
        counted_m = error_m / self.predictions.truth_m**2 if self.at_one_metre else error_m
        kept = weight * (confidence > least)
        density = float(kept.sum())
        mae_m = float(kept @ np.abs(error_m)) / density if density else float("nan")
        return BaselineSet(
            virtual_baselines_m=tuple(self.sampled_m[chosen].tolist()),
            cost_m=cost_m(counted_m, confidence, least, weight),
            mae_m=mae_m,
            density=density,
        )


@compiled
def _agree(
    start: int,
    stop: int,
    predicted: NDArray[np.float32],
    candidates: FloatArray,
    sets: NDArray[np.int64],
    dearest: float,
    found: NDArray[np.int64],
    confidence: FloatArray,
) -> None:
    """Write the best candidate of each set of baselines and its confidence (paper Eqs. 14, 15).

    The price of a candidate is 1 / confidence. The price for a set is at least that for each of its
    baselines alone, so candidates that exceed the limit `dearest` for every baseline are skipped.
    """
    baselines, depths = predicted.shape[1:]
    far, steep = np.zeros((2, depths, baselines))
    numbers = np.zeros(depths, dtype=np.int64)
    for i in range(start, stop):
        count = 0
        for c in range(depths):
            cheapest = np.inf
            for k in range(baselines):
                depth = np.float64(predicted[i, k, c])
                far[count, k] = abs(depth - candidates[0, c])
                steep[count, k] = candidates[2, c] * abs(1.0 / depth - candidates[1, c])
                price = (1.0 + far[count, k]) * (1.0 + steep[count, k])
                if not price < np.inf:
                    far[count, k] = np.inf
                elif price < cheapest:
                    cheapest = price
            if cheapest < dearest:
                numbers[count] = c
                count += 1
        for j in range(len(sets)):
            best = dearest
            for c in range(count):
                gap, slope = 0.0, 0.0
                for k in sets[j]:
                    gap = max(gap, far[c, k])
                    slope = max(slope, steep[c, k])
                price = (1.0 + gap) * (1.0 + slope)
                if price < best:
                    best = price
                    found[i, j] = numbers[c]
                    confidence[i, j] = 1.0 / price


def _chosen(
    trial: _Trial, count: int, windows: NDArray[np.int64], left_out: dict[int, str]
) -> ChosenBaselines:
    best: list[BaselineSet] = []
    kept: list[tuple[int, ...]] = [()]
    surface = np.full((trial.sampled_m.size, trial.sampled_m.size), np.nan)
    tried = 0
    for size in _COUNTS:
        sets = _sets(kept, size, trial.sampled_m.size)
        results = trial.compare(np.array(sets, dtype=np.int64))
        order = sorted(range(len(sets)), key=lambda i: results[i].cost_m)
        best.append(results[order[0]])
        kept = [sets[i] for i in order[:_KEPT_SETS]]
        tried += len(sets)
        if size == count:
            for numbers, result in zip(sets, results, strict=True):
                ends = numbers[0], numbers[-1]
                surface[ends] = np.fmin(surface[ends], result.cost_m)
    return ChosenBaselines(
        chosen=best[count - 1],
        best_of_count=tuple(best),
        sampled_m=trial.sampled_m,
        surface_m=surface,
        sets_tried=tried,
        windows=windows,
        left_out=left_out,
    )


def _sets(kept: Sequence[tuple[int, ...]], size: int, sampled: int) -> list[tuple[int, ...]]:
    """Sets of indices to try: all of a size, or the kept sets with one more index."""
    if size <= _ALL_SETS_UP_TO:
        return list(combinations(range(sampled), size))
    longer = {tuple(sorted({*numbers, one})) for numbers in kept for one in range(sampled)}
    return sorted(numbers for numbers in longer if len(numbers) == size)
