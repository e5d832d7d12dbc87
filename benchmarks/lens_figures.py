"""Figures asked of cameras with typical lenses, and those measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calibration import Target
from calibration_field import FIELD, NINTHS, SIDES, Cell
from calibration_sets import LENS_DEPTHS_M, LENS_DISTANCES_M, TYPED_SIGMA_M

PERFECT = "report1"
"""Set with perfect lenses that the others are compared with."""
MIDDLE = "middle"
OUTER = tuple(place for place in NINTHS if place != MIDDLE)
FARTHEST_M = max(LENS_DEPTHS_M)
ACCURATE_CM = 1.0
# Shares of errors within 1 and 3 sigma that a true sigma has, in per cent.
WITHIN_1, LEAST_WITHIN_3 = (58.0, 78.0), 95.0
# Mean absolute errors of `report1` in cm, means of the textures at `LENS_DEPTHS_M`, before rigs had
# maps of lenses: those of benchmarks/results/calibration.json at commit 797718f.
BEFORE_CM = {
    "joint": (0.02408, 0.02777, 0.01795, 0.0301, 0.1109, 0.2803),
    "consensus": (0.08386, 0.09463, 0.129, 0.1694, 0.4157, 1.328),
}
# Depths that the candidates of the consensus were spread over then: that of 0.81 m as its focus
# distance. Candidates are 0.8 cm apart at 1.4 m, so that their places matter; today's default range
# moves the error by up to 20 %, of a rig of that commit too.
BEFORE_RANGE_M = (0.24054, 2.4981)


class Figure(NamedTuple):
    """A target, the sets that it is asked of, and its measurement."""

    target: Target
    kind: str  # the first letters of the names of the sets
    measure: Callable[["Results", str], float | None]  # None if it was not measured
    compared: bool = False  # with perfect lenses


@dataclass(frozen=True)
class Results:
    """Everything that was measured."""

    sets: Mapping[str, Mapping[str, Any]]  # as in the JSON file
    cells: Mapping[str, Sequence[Cell]]

    @cached_property
    def textures(self) -> Mapping[tuple[str, str, float, str], list[Cell]]:
        """Cells of all textures by set, method, depth and place."""
        found: dict[tuple[str, str, float, str], list[Cell]] = {}
        for name, some in self.cells.items():
            for cell in some:
                found.setdefault((name, cell.method, cell.depth_m, cell.place), []).append(cell)
        return found

    def names(self, kind: str) -> list[str]:
        """Sets of a kind that were measured."""
        return [name for name in self.cells if name.startswith(kind)]


def mean(
    results: Results,
    name: str,
    figure: str,
    depth_m: float,
    place: str,
    method: str = "joint",
) -> float:
    """Mean of a figure over the textures that have one; NaN if none has.

    Parameters
    ----------
    results
        Everything that was measured.
    name
        Set.
    figure
        Name of a field of `Cell`.
    depth_m, place, method
        Walls, part of the field, and method.
    """
    cells = results.textures.get((name, method, depth_m, place), [])
    values = [getattr(cell, figure) for cell in cells]
    values = [value for value in values if not math.isnan(value)]
    return float(np.mean(values)) if values else math.nan


def over_perfect(
    results: Results, name: str, depth_m: float, place: str, figure: str = "mae_cm"
) -> float:
    """Mean absolute error, or another figure, over that with perfect lenses.

    Parameters
    ----------
    results
        Everything that was measured.
    name
        Set.
    depth_m
        Depth of the walls.
    place
        Part of the field.
    figure
        Name of a field of `Cell`.
    """
    if PERFECT not in results.cells:
        return math.nan
    own, perfect = (mean(results, one, figure, depth_m, place) for one in (name, PERFECT))
    return own / perfect


def typed_sigma_m(depth_m: float, *, zero_is_known: bool) -> float:
    """Standard deviation of a depth by distances typed with an error, the relative ones exact.

    Depths of the boards are known up to a common scale, which the distances give, and with them
    the zero of the ruler, if it is not known: least squares with one or two unknowns.

    Parameters
    ----------
    depth_m
        Depth of a wall.
    zero_is_known
        Whether distances are known to be from the lens.
    """
    scale = np.array(LENS_DISTANCES_M)
    rows = np.stack([scale, -np.ones_like(scale)], axis=1)[:, : 1 if zero_is_known else 2]
    covariance = TYPED_SIGMA_M**2 * np.linalg.inv(rows.T @ rows)
    return depth_m * float(np.sqrt(covariance[0, 0]))


def over_bound(results: Results, name: str, depth_m: float, place: str) -> float:
    """Mean absolute error over that at the bound, of textured pixels; NaN without any.

    Parameters
    ----------
    results
        Everything that was measured.
    name
        Set.
    depth_m
        Depth of the walls.
    place
        Part of the field.
    """
    own, bound = (
        mean(results, name, figure, depth_m, place) for figure in ("textured_mae_cm", "bound_cm")
    )
    return own / bound


def every(
    function: Callable[[Results, str, float, str], float], places: Sequence[str]
) -> Callable[[Results, str], list[float]]:
    """Values of a function at all depths and some places."""
    return lambda results, name: [
        function(results, name, depth_m, place) for depth_m in LENS_DEPTHS_M for place in places
    ]


def _largest(values: Callable[[Results, str], list[float]]) -> Callable[[Results, str], float]:
    return lambda results, name: float(np.nanmax(values(results, name)))


def _worst_texture(
    figure: str, places: Sequence[str], worst: Callable[[list[float]], float]
) -> Callable[[Results, str], float]:
    """Worst value of a texture, over depths and places."""
    return lambda results, name: float(
        worst(
            [
                getattr(cell, figure)
                for cell in results.cells[name]
                if cell.method == "joint" and cell.place in places
            ]
        )
    )


def sigma_cells(results: Results, name: str) -> list[tuple[float, float]]:
    """Shares within 1 and 3 sigma in each ninth at each depth, means of the textures."""
    return [
        (
            mean(results, name, "within_1", depth_m, place),
            mean(results, name, "within_3", depth_m, place),
        )
        for depth_m in LENS_DEPTHS_M
        for place in NINTHS
    ]


def _within(column: int, worst: Callable[..., Any]) -> Callable[[Results, str], float]:
    return lambda results, name: float(worst([cell[column] for cell in sigma_cells(results, name)]))


def sigma_held(results: Results, name: str) -> float:
    """Share of the ninths and depths whose sigma is true, in per cent."""
    held = [
        WITHIN_1[0] <= one <= WITHIN_1[1] and three >= LEAST_WITHIN_3
        for one, three in sigma_cells(results, name)
    ]
    return 100 * float(np.mean(held))


def _bias(results: Results, name: str) -> float:
    """Largest mean error of a ninth at the farthest depth."""
    return max(abs(mean(results, name, "bias_cm", FARTHEST_M, place)) for place in NINTHS)


def consensus_cm(results: Results, name: str, place: str = SIDES) -> list[float]:
    """Mean absolute errors of `consensus` at all depths, means of the textures."""
    return [mean(results, name, "mae_cm", depth_m, place, "consensus") for depth_m in LENS_DEPTHS_M]


def accurate_range_m(errors_cm: Sequence[float]) -> tuple[float, float]:
    """Longest range of depths with an error below 1 cm, linear between the walls; NaN if none."""
    depths = np.linspace(LENS_DEPTHS_M[0], FARTHEST_M, 1651)
    below = np.interp(depths, LENS_DEPTHS_M, np.nan_to_num(errors_cm, nan=np.inf)) < ACCURATE_CM
    edges = np.flatnonzero(np.diff([False, *below, False]))
    runs = [(depths[first], depths[last - 1]) for first, last in edges.reshape(-1, 2)]
    return max(runs, key=lambda run: run[1] - run[0], default=(math.nan, math.nan))


def _consensus(end: int) -> Callable[[Results, str], float]:
    return lambda results, name: float(accurate_range_m(consensus_cm(results, name))[end])


def _over_before(method: str) -> Callable[[Results, str], float | None]:
    """Largest error over that before rigs had maps of lenses."""

    def measure(results: Results, name: str) -> float | None:
        rows = results.sets[name].get("rows")
        return None if rows is None else float(np.max(np.divide(rows[method], BEFORE_CM[method])))

    return measure


def _usage(name: str) -> Callable[[Results, str], float]:
    return lambda results, one: float(results.sets[one]["figures"][name])


_FLAT, _LENS = "without curvature, ", "typical, "
_SIGMA = (
    (
        Target("errors within 1 sigma, least share of a ninth", ">=", 58, " %", 0),
        _within(0, np.min),
    ),
    (Target("errors within 1 sigma, largest share", "<=", 78, " %", 0), _within(0, np.max)),
    (Target("errors within 3 sigma, least share", ">=", 95, " %", 0), _within(1, np.min)),
    (Target("ninths and depths whose sigma is true", ">=", 100, " %", 0), sigma_held),
    (Target("largest mean error of a ninth at 1.9 m", "<", 0.4, " cm", 2), _bias),
)


def _about(words: str, target: Target) -> Target:
    return target._replace(what=words + target.what)


FIGURES = (
    Figure(
        Target(_FLAT + "`joint`: largest MAE over that of perfect lenses", "<=", 1.5, "", 2),
        "flat",
        _largest(every(over_perfect, (FIELD,))),
        compared=True,
    ),
    Figure(
        Target(_FLAT + "`joint`: largest MAE of a texture", "<", 1, " cm", 2),
        "flat",
        _worst_texture("mae_cm", (FIELD,), np.max),
    ),
    Figure(
        Target(_FLAT + "`joint`: smallest density", ">=", 85, " %", 1),
        "flat",
        _worst_texture("density", (FIELD,), np.min),
    ),
    *(Figure(_about(_FLAT, target), "flat", measure) for target, measure in _SIGMA),
    Figure(
        Target(
            _LENS + "`joint`, middle: largest MAE over that of perfect lenses", "<=", 1.5, "", 2
        ),
        "lens",
        _largest(every(over_perfect, (MIDDLE,))),
        compared=True,
    ),
    Figure(
        Target(_LENS + "`joint`, middle: smallest density", ">=", 85, " %", 1),
        "lens",
        _worst_texture("density", (MIDDLE,), np.min),
    ),
    Figure(
        Target(_LENS + "`joint`, other ninths: largest MAE over the bound", "<=", 1.5, "", 2),
        "lens",
        _largest(every(over_bound, OUTER)),
    ),
    *(Figure(_about(_LENS, target), "lens", measure) for target, measure in _SIGMA),
    Figure(
        Target(_LENS + "`consensus`: mean of textures < 1 cm from", "<=", 0.30, " m", 2),
        "lens",
        _consensus(0),
    ),
    Figure(
        Target(_LENS + "`consensus`: mean of textures < 1 cm up to", ">=", 1.5, " m", 2),
        "lens",
        _consensus(1),
    ),
    Figure(
        Target("perfect, `joint`: largest MAE over that before", "<=", 1.05, "", 3),
        PERFECT,
        _over_before("joint"),
    ),
    Figure(
        Target("perfect, `consensus`: largest MAE over that before", "<=", 1.05, "", 3),
        PERFECT,
        _over_before("consensus"),
    ),
    Figure(Target("time for 50 raw frames", "<", 240, " s", 0), PERFECT, _usage("time_s")),
    Figure(Target("peak memory", "<", 2, " GB", 2), PERFECT, _usage("memory_gb")),
)
