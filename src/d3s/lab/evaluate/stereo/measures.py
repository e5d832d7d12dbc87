"""Figures of a depth map in pixels of disparity, and their mean over the scenes of a data set."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from d3s.estimate import DepthMap
from d3s.lab.evaluate.metrics import (
    count_pixels,
    mean_or_nan,
    median_or_nan,
    rank,
    ratio,
    trust_order,
)
from d3s.lab.evaluate.table import Figure, SweepTable, mean_of, median_of, summarise
from d3s.types import FloatArray, Mask

DENSITIES = (0.5, 0.7, 0.8)
"""Densities at which the errors of all methods are compared."""
SHARES = tuple(round(0.05 * step, 2) for step in range(1, 21))
"""Densities of a curve."""
CAP_PX = 5.0
"""Errors count as this at most where errors are averaged, so that a few do not decide."""
ORDERS = ("confidence", "sigma", "oracle")
"""Orders in which the pixels of a curve are taken; the oracle takes the smallest error first."""

_SIGMA_DIGITS = 5  # of sigma in px, where pixels are ordered by it


@dataclass(frozen=True, kw_only=True, eq=False)
class DisparityResult:
    """Result of one method in disparity; all arrays are (rows, cols), NaN where there is none."""

    disparity_px: FloatArray
    sigma_px: FloatArray  # its standard deviation
    trust: FloatArray  # confidence, or another quantity that orders pixels, the best highest

    @property
    def valid(self) -> Mask:
        """Pixels that have a disparity."""
        return np.isfinite(self.disparity_px)


def matches_of(depth_map: DepthMap, trust: FloatArray | None = None) -> DisparityResult:
    """Disparity of a depth map and its sigma, which is sigma_Z f B / Z².

    The trust is the confidence of the depth map if left out.
    """
    optics = depth_map.rig.optics
    depth_m = depth_map.depth_m.astype(np.float64)
    px_per_m = optics.focal_length_px * optics.baseline_m / depth_m**2
    return DisparityResult(
        disparity_px=optics.disparity_px(depth_m),
        sigma_px=depth_map.sigma_m * px_per_m,
        trust=depth_map.confidence.astype(np.float64) if trust is None else trust,
    )


def stereo_score(
    own: DisparityResult, full: DisparityResult, truth_px: FloatArray, where: Mask
) -> dict[str, float]:
    """Compare the result of a method with the true disparity on some pixels.

    Shares are 0 to 1, NaN of nothing. `found` and what follows is of the method with its filters
    off, all else with its own filter. `coverage_2` is the share of the errors below 2 sigma, 0.954
    for Gaussian errors; `sigma_gain` is what ordering by sigma wins over chance, of what an oracle
    wins; `at_50` is `bad_1` of the pixels of highest confidence at a density of 50 %, and
    `sigma_at_50` that of the smallest sigma.
    """
    kept, found = where & own.valid, where & full.valid
    error, all_errors = (
        np.abs(one.disparity_px - truth_px)[mask] for one, mask in ((own, kept), (full, found))
    )
    pixels, limits_px = count_pixels(where), {"05": 0.5, "1": 1.0, "2": 2.0}
    within = {n: mean_or_nan(error < n * own.sigma_px[kept]) for n in (1, 2, 3)}
    orders = {key: all_errors[order] for key, order in _orders(full, found).items()}
    own_gain = {key: _gain(error[order]) for key, order in _orders(own, kept).items()}
    prefixes = {"confidence": "", "sigma": "sigma_"}
    return {
        "pixels": pixels,
        "retained": count_pixels(kept),
        "density": ratio(count_pixels(kept), pixels),
        "median_px": median_or_nan(error),
        "mae_px": mean_or_nan(np.minimum(error, CAP_PX)),
        **{f"bad_{name}": mean_or_nan(error > limit) for name, limit in limits_px.items()},
        **{f"coverage_{n}": share for n, share in within.items()},
        "sigma_gain": own_gain["sigma"],
        "confidence_gain": own_gain["confidence"],
        "found": ratio(count_pixels(found), pixels),
        "found_bad_1": mean_or_nan(all_errors > 1.0),
        "found_sigma_gain": _gain(orders["sigma"]),
        "found_confidence_gain": _gain(orders["confidence"]),
        **{
            f"{prefix}at_{100 * density:.0f}": _bad_1_at(orders[key], pixels, density)
            for key, prefix in prefixes.items()
            for density in DENSITIES
        },
    }


def curve_rows(full: DisparityResult, truth_px: FloatArray, where: Mask) -> list[dict[str, Any]]:
    """Errors of the most trusted pixels over `SHARES`, in each of `ORDERS`."""
    found = where & full.valid
    errors = np.abs(full.disparity_px - truth_px)[found]
    orders = {key: errors[order] for key, order in _orders(full, found).items()}
    orders["oracle"] = np.sort(errors)
    pixels = count_pixels(where)
    return [
        {
            "order": key,
            "density": share,
            "bad_1": mean_or_nan(orders[key][:count] > 1.0),
            "mae_px": mean_or_nan(np.minimum(orders[key][:count], CAP_PX)),
        }
        for key in ORDERS
        for share in SHARES
        if 0 < (count := round(share * pixels)) <= orders[key].size
    ]


def _orders(result: DisparityResult, where: Mask) -> dict[str, Any]:
    """Indices of some pixels from the most to the least trusted, by confidence and by sigma.

    A constant sigma orders nothing: it has no indices.
    """
    # Rounded, since single precision varies the last digits of a constant sigma.
    sigma_px = result.sigma_px[where].round(_SIGMA_DIGITS)
    is_constant = sigma_px.size > 0 and sigma_px.min() == sigma_px.max()
    return {
        "confidence": trust_order(result.trust[where]),
        "sigma": trust_order(-sigma_px)[: 0 if is_constant else None],
    }


def _gain(errors: FloatArray) -> float:
    """Gain of errors in order of trust; each counts as `CAP_PX` at most."""
    return rank(np.minimum(errors, CAP_PX)).gain


def _bad_1_at(errors: FloatArray, pixels: int, density: float) -> float:
    """Share of errors above 1 px at a density; NaN if there are fewer pixels."""
    count = round(density * pixels)
    return mean_or_nan(errors[:count] > 1.0) if 0 < count <= errors.size else float("nan")


def level_trust(depth_maps: Sequence[DepthMap], levels: Sequence[float]) -> FloatArray:
    """Highest level at which a pixel still has a depth, (rows, cols); -1 where at none."""
    trust = np.full(depth_maps[0].depth_m.shape, -1.0)
    for depth_map, level in zip(depth_maps, levels, strict=True):
        trust[depth_map.valid] = level
    return trust


def summarise_stereo(rows: SweepTable, curves: SweepTable) -> list[dict[str, Any]]:
    """Summarise all scenes: one line for each light and method.

    A figure of a line is the mean over the scenes of the figure of the scene: every scene counts
    the same. At a fixed density it is NaN unless all scenes reach the density.
    """
    whole = rows.where(region="all")
    return [
        {
            **line,
            "regions": _regions(rows.where(light=line["light"], method=line["method"])),
            "curves": _curves(curves.where(light=line["light"], method=line["method"]), line),
        }
        for line in summarise(whole, ("light", "method"), _OF_METHOD)
    ]


def _regions(rows: SweepTable) -> list[dict[str, Any]]:
    """Summarise the regions of one method in one light."""
    judged = sum(rows.where(region="all").column("pixels"))
    share: Figure = lambda part: ratio(sum(part.column("pixels")), judged)  # noqa: E731
    return summarise(rows, ("region",), {"share": share, **_OF_REGION})


def _curves(curves: SweepTable, line: dict[str, Any]) -> list[dict[str, Any]]:
    """Mean over the scenes at each density that all scenes reach."""
    return [
        point
        for point in summarise(curves, ("order", "density"), _OF_POINT)
        if point["scenes"] == line["scenes"]
    ]


def _mean_of_all(column: str) -> Figure:
    """Mean of a column; NaN if a cell is NaN."""
    mean = mean_of(column)
    return lambda rows: math.nan if any(map(math.isnan, rows.column(column))) else mean(rows)


_OF_REGION: dict[str, Figure] = {
    name: mean_of(name)
    for name in (
        *("density", "median_px", "mae_px", "bad_05", "bad_1", "bad_2"),
        *("coverage_1", "coverage_2", "coverage_3"),
    )
}
"""One method in one region: the mean over the scenes that have the region."""

_OF_METHOD: dict[str, Figure] = {
    "scenes": len,
    **_OF_REGION,
    **{
        name: mean_of(name)
        for name in (
            *("sigma_gain", "confidence_gain"),
            *("found", "found_bad_1", "found_sigma_gain", "found_confidence_gain"),
        )
    },
    **{
        f"{prefix}at_{100 * density:.0f}": _mean_of_all(f"{prefix}at_{100 * density:.0f}")
        for prefix in ("", "sigma_")
        for density in DENSITIES
    },
    "time_s": median_of("time_s"),
}
"""One method in one light, over all scenes."""

_OF_POINT: dict[str, Figure] = {
    "scenes": len,
    "bad_1": mean_of("bad_1"),
    "mae_px": mean_of("mae_px"),
}
"""One point of a curve, over the scenes that reach its density."""
