"""Summary of a stereo data set: the mean over its scenes, by light and method."""

import math
from typing import Any

from d3s.lab.evaluate.metrics import ratio
from d3s.lab.evaluate.table import Figure, SweepTable, mean_of, median_of, summarise


def summarise_stereo(rows: SweepTable, curves: SweepTable) -> list[dict[str, Any]]:
    """Summarise all scenes: one line for each light and method.

    A figure of a line is the mean over the scenes of the figure of the scene: every scene counts
    the same. At a fixed density it is NaN unless all scenes reach the density.

    Parameters
    ----------
    rows, curves
        As `StereoResults` has them.
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


_OWN = (
    "density",
    "median_px",
    "mae_px",
    "bad_05",
    "bad_1",
    "bad_2",
    "coverage_1",
    "coverage_2",
    "coverage_3",
)
_GAINS = (
    "sigma_gain",
    "confidence_gain",
    "found",
    "found_bad_1",
    "found_sigma_gain",
    "found_confidence_gain",
)
_AT = ("at_50", "at_70", "at_80", "sigma_at_50", "sigma_at_70", "sigma_at_80")

_OF_REGION: dict[str, Figure] = {name: mean_of(name) for name in _OWN}
"""One method in one region: the mean over the scenes that have the region."""

_OF_METHOD: dict[str, Figure] = {
    "scenes": len,
    **_OF_REGION,
    **{name: mean_of(name) for name in _GAINS},
    **{name: _mean_of_all(name) for name in _AT},
    "time_s": median_of("time_s"),
}
"""One method in one light, over all scenes."""

_OF_POINT: dict[str, Figure] = {
    "scenes": len,
    "bad_1": mean_of("bad_1"),
    "mae_px": mean_of("mae_px"),
}
"""One point of a curve, over the scenes that reach its density."""
