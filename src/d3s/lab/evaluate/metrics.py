"""Figures of a depth map against the truth: errors, trust in sigma and confidence, fattening."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from d3s.estimate import DepthMap, Flag
from d3s.lab.evaluate.truth import JUMP_PX, Truth
from d3s.rig import Optics
from d3s.types import FloatArray, Mask

BAD_M = 0.02


@dataclass(frozen=True, kw_only=True)
class Score:
    """Figures of a depth map over some pixels; NaN for a mean over no pixels.

    Errors are over all retained pixels, textured or not, also where the right view does not show
    the point: a method is judged wherever it gives a depth. Density, bound and the ratio to the
    bound are over textured pixels, which both views show.
    """

    pixels: int  # number of judged pixels
    retained: int  # number of judged pixels that have a depth
    mae_m: float  # mean absolute error
    median_m: float  # median absolute error
    rmse_m: float  # root mean square error
    bad_2cm: float  # share of the retained pixels with an error above 2 cm
    bias_m: float  # mean of depth less truth
    coverage: float  # share of the retained pixels with an error below sigma; 0.68 for a true sigma
    textured: int  # number of judged pixels that are textured
    textured_retained: int  # number of textured pixels that have a depth
    density: float  # textured_retained / textured
    textured_mae_m: float  # mean absolute error over the textured retained pixels
    bound_mean_m: float  # Cramér-Rao bound over the textured retained pixels: mean
    bound_median_m: float  # and median
    mae_over_bound: float  # textured_mae_m / bound_mean_m; 0.8 for Gaussian errors at the bound

    @property
    def retained_share(self) -> float:
        """Share of the judged pixels, textured or not, that have a depth."""
        return ratio(self.retained, self.pixels)


def score(depth_map: DepthMap, truth: Truth, region: Mask | None = None) -> Score:
    """Compare a depth map with the truth.

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    region
        Mask, (rows, cols), to restrict the judged pixels; all judged pixels if left out.
    """
    judged = truth.judged if region is None else truth.judged & region
    retained = judged & depth_map.valid
    error = depth_errors_m(depth_map, truth, retained)
    size = np.abs(error)
    textured = judged & truth.textured
    both = textured & retained
    textured_mae_m = mean_or_nan(np.abs(depth_errors_m(depth_map, truth, both)))
    bound_mean_m = mean_or_nan(truth.bound_m[both])
    return Score(
        pixels=count_pixels(judged),
        retained=count_pixels(retained),
        mae_m=mean_or_nan(size),
        median_m=median_or_nan(size),
        rmse_m=float(np.sqrt(mean_or_nan(size**2))),
        bad_2cm=mean_or_nan(size > BAD_M),
        bias_m=mean_or_nan(error),
        coverage=mean_or_nan(size < depth_map.sigma_m[retained]),
        textured=count_pixels(textured),
        textured_retained=count_pixels(both),
        density=ratio(count_pixels(both), count_pixels(textured)),
        textured_mae_m=textured_mae_m,
        bound_mean_m=bound_mean_m,
        bound_median_m=median_or_nan(truth.bound_m[both]),
        mae_over_bound=ratio(textured_mae_m, bound_mean_m),
    )


def duel(depth_map: DepthMap, rival: DepthMap, truth: Truth) -> dict[str, Any]:
    """Errors of two depth maps on the judged pixels that both retained, and how many these are."""
    common = truth.judged & depth_map.valid & rival.valid
    own, other = (
        mean_or_nan(np.abs(depth_errors_m(one, truth, common))) for one in (depth_map, rival)
    )
    return {"common": count_pixels(common), "mae_m": own, "rival_mae_m": other}


def depth_errors_m(depth_map: DepthMap, truth: Truth, where: Mask) -> FloatArray:
    """Depth less truth in metres on some pixels, (pixels,)."""
    return np.asarray(depth_map.depth_m[where] - truth.depth_m[where], dtype=np.float64)


def worst(errors_m: Iterable[float]) -> float:
    """Largest error, such as `d3s.lab.evaluate.table.error_m` gives; NaN if all are NaN."""
    return max((one for one in errors_m if not math.isnan(one)), default=float("nan"))


def ratio(part: float, whole: float) -> float:
    """Part over whole; NaN if the whole is 0."""
    return part / whole if whole else float("nan")


def pooled(means: Sequence[float], counts: Sequence[int]) -> float:
    """Mean over several groups together, from their means and sizes; an empty group may be NaN."""
    total = sum(mean * count for mean, count in zip(means, counts, strict=True) if count)
    return ratio(total, sum(counts))


def finite_mean(values: Iterable[float]) -> float:
    """Mean of the finite values; NaN if there are none."""
    return mean_or_nan(_finite(values))


def finite_median(values: Iterable[float]) -> float:
    """Median of the finite values; NaN if there are none."""
    return median_or_nan(_finite(values))


def _finite(values: Iterable[float]) -> FloatArray:
    array = np.array(list(values), dtype=np.float64)
    return np.asarray(array[np.isfinite(array)])


def count_pixels(mask: Mask) -> int:
    """Number of pixels in a mask."""
    return int(np.count_nonzero(mask))


def mean_or_nan(values: FloatArray | Mask) -> float:
    """Mean; NaN if there are no values."""
    return float(np.mean(values, dtype=np.float64)) if values.size else float("nan")


def median_or_nan(values: FloatArray) -> float:
    """Median; NaN if there are no values."""
    return float(np.median(values)) if values.size else float("nan")


Key = Literal["confidence", "sigma_m"]
"""Quantity by which pixels are ranked: the highest confidence first, or the lowest sigma."""


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Sparsification of errors in order of trust (Ilg et al., ECCV 2018); NaN without errors.

    The least trusted pixels are dropped one after the other, and the mean error of the others
    falls. An oracle drops the largest errors first.
    """

    ause_m: float  # area between the mean error and that of the oracle, over the share kept
    gain: float  # improvement over a random order, as a share of the improvement of the oracle


def trust_of(depth_map: DepthMap, truth: Truth, region: Mask | None = None) -> dict[str, float]:
    """Trust in the sigma and the confidence of a depth map, over some pixels.

    Of Gaussian errors 0.954 are below 2 sigma, and 0.997 below 3.
    """
    part = truth if region is None else replace(truth, judged=truth.judged & region)
    sigma, confidence = (
        rank(ranked_errors_m(depth_map, part, by)) for by in ("sigma_m", "confidence")
    )
    two, three = coverage(depth_map, part, (2.0, 3.0))
    return {
        "sigma_ause_m": sigma.ause_m,
        "sigma_gain": sigma.gain,
        "confidence_ause_m": confidence.ause_m,
        "confidence_gain": confidence.gain,
        "coverage_2": two,
        "coverage_3": three,
    }


def threshold_curve(
    depth_map: DepthMap, truth: Truth, thresholds: Sequence[float]
) -> list[dict[str, float]]:
    """Error and density of the pixels that reach each confidence.

    Pixels that the filter of the method dropped stay dropped: switch that filter off to see all.
    The density is that of textured pixels, as in `Score`.
    """
    kept, textured = depth_map.valid & truth.judged, truth.textured
    rows: list[dict[str, float]] = []
    for threshold in thresholds:
        passes = kept & (depth_map.confidence >= threshold)
        errors = np.abs(depth_errors_m(depth_map, truth, passes))
        rows.append(
            {
                "threshold": float(threshold),
                "retained": errors.size,
                "density": ratio(count_pixels(passes & textured), count_pixels(textured)),
                "mae_m": mean_or_nan(errors),
                "median_m": median_or_nan(errors),
            }
        )
    return rows


def ranked_errors_m(depth_map: DepthMap, truth: Truth, by: Key = "sigma_m") -> FloatArray:
    """Absolute errors of the retained judged pixels, the most trusted pixel first."""
    kept = depth_map.valid & truth.judged
    errors = np.abs(depth_errors_m(depth_map, truth, kept))
    return errors[trust_order(trust(depth_map, by)[kept])]


def trust(depth_map: DepthMap, by: Key) -> FloatArray:
    """Trust in each pixel, (rows, cols): its confidence, or its negative sigma."""
    if by == "confidence":
        return depth_map.confidence.astype(np.float64)
    return -depth_map.sigma_m.astype(np.float64)


def trust_order(*keys: FloatArray) -> NDArray[np.intp]:
    """Indices from the highest to the lowest first key, ties by the next key.

    Remaining ties are in a random order, the same at every call: a method that trusts all pixels
    equally gets the figures of a random choice, not those of a corner of the frame.
    """
    chance = np.random.default_rng(0).permutation(keys[0].size)
    order = np.lexsort([-key.ravel()[chance] for key in reversed(keys)])
    return np.asarray(chance[order])


def rank(errors_m: FloatArray) -> Ranking:
    """Sparsification of absolute errors that are in order of trust, the most trusted first."""
    errors = np.asarray(errors_m, dtype=np.float64)
    if errors.size == 0:
        return Ranking(ause_m=float("nan"), gain=float("nan"))
    own, oracle = _area(errors), _area(np.sort(errors))
    random = float(errors.mean())
    return Ranking(
        ause_m=own - oracle,
        gain=(random - own) / (random - oracle) if random > oracle else float("nan"),
    )


def _area(errors: FloatArray) -> float:
    """Area under the mean of the first errors, over their share of all errors."""
    return float((np.cumsum(errors) / np.arange(1, errors.size + 1)).mean())


def coverage(
    depth_map: DepthMap, truth: Truth, sigmas: Sequence[float] = (1.0, 2.0, 3.0)
) -> tuple[float, ...]:
    """Share of the retained judged pixels with an error below each multiple of sigma.

    0.683, 0.954 and 0.997 for 1, 2 and 3 sigma, if errors are Gaussian and sigma is true.
    """
    kept = depth_map.valid & truth.judged
    size, sigma = np.abs(depth_errors_m(depth_map, truth, kept)), depth_map.sigma_m[kept]
    return tuple(mean_or_nan(size < factor * sigma) for factor in sigmas)


REACH_PX = 25
"""Pixels within this distance of an object that stands before them count as background beside it.

About half of the widest window of `joint`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Beside:
    """Background beside objects, from the true disparity; arrays are (rows, cols)."""

    mask: Mask  # background within `REACH_PX` of an object
    disparity_px: FloatArray  # of the background
    object_px: FloatArray  # disparity of the nearest object


def background_beside(truth: Truth, optics: Optics, reach_px: float = REACH_PX) -> Beside:
    """Find the background beside objects.

    The near side of each jump of disparity is the outline of an object. A pixel belongs to the
    background of the nearest outline if it is farther away by more than half the jump.
    """
    from scipy.ndimage import distance_transform_edt

    disparity_px = optics.disparity_px(truth.depth_m)
    jump_px = _jump_to_background(disparity_px)
    is_outline = jump_px > 0
    if not is_outline.any():
        return Beside(mask=is_outline, disparity_px=disparity_px, object_px=disparity_px)
    distance_px, (row, col) = distance_transform_edt(~is_outline, return_indices=True)
    object_px = disparity_px[row, col]
    is_behind = disparity_px < object_px - jump_px[row, col] / 2
    return Beside(
        mask=(distance_px <= reach_px) & is_behind & truth.visible,
        disparity_px=disparity_px,
        object_px=object_px,
    )


def _jump_to_background(disparity_px: FloatArray) -> FloatArray:
    """Largest fall of disparity to a neighbour, (rows, cols); 0 where it is no jump."""
    jump_px = np.zeros(disparity_px.shape)
    down, across = np.diff(disparity_px, axis=0), np.diff(disparity_px, axis=1)
    for side, fall in (
        (jump_px[:-1], -down),
        (jump_px[1:], down),
        (jump_px[:, :-1], -across),
        (jump_px[:, 1:], across),
    ):
        np.maximum(side, np.where(fall > JUMP_PX, fall, 0.0), out=side)
    return jump_px


def fattening_of(
    depth_map: DepthMap, truth: Truth, beside: Beside, region: Mask | None = None
) -> dict[str, int]:
    """Count the background beside objects that has the depth of the object.

    All are numbers of judged pixels that both views show, also outside the texture: those
    `beside` an object, of these those that have a depth, a depth with the flag CARRIED, a depth
    whose disparity is nearer to that of the object, and the last without the flag.
    """
    judged = truth.judged & beside.mask
    judged = judged if region is None else judged & region
    kept = judged & depth_map.valid
    found_px = depth_map.rig.optics.disparity_px(depth_map.depth_m[kept].astype(np.float64))
    to_object = np.abs(found_px - beside.object_px[kept])
    is_fattened = to_object < np.abs(found_px - beside.disparity_px[kept])
    is_carried = (depth_map.flags[kept] & np.uint16(Flag.CARRIED)) != 0
    return {
        "beside": count_pixels(judged),
        "beside_retained": count_pixels(kept),
        "beside_carried": count_pixels(is_carried),
        "fattened": count_pixels(is_fattened),
        "fattened_unflagged": count_pixels(is_fattened & ~is_carried),
    }
