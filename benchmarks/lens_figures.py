"""Figures asked of cameras with typical lenses, and those measured."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calibration import Target
from calibration_field import FIELD, NINTHS, SIDES, Cell
from calibration_sets import LENS_DEPTHS_M
from sheets import Sheet

PERFECT = "report1"
"""Set with perfect lenses that the others are compared with."""
MIDDLE = "middle"
OUTER = tuple(place for place in NINTHS if place != MIDDLE)
FARTHEST_M = max(LENS_DEPTHS_M)
ACCURATE_CM = 1.0
# Shares of errors within 1 and 3 sigma that a true sigma has, in per cent.
WITHIN_1, LEAST_WITHIN_3 = (58.0, 78.0), 95.0


class Figure(NamedTuple):
    """A target, the sets that it is asked of, and its measurement."""

    target: Target
    kind: str  # the first letters of the names of the sets
    measure: Callable[["Results", str], float]
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
    """Mean of a figure of `Cell` over the textures of a set that have one; NaN if none has."""
    cells = results.textures.get((name, method, depth_m, place), [])
    values = [getattr(cell, figure) for cell in cells]
    values = [value for value in values if not math.isnan(value)]
    return float(np.mean(values)) if values else math.nan


def over_perfect(results: Results, name: str, depth_m: float, place: str) -> float:
    """Mean absolute error over that with perfect lenses."""
    if PERFECT not in results.cells:
        return math.nan
    own, perfect = (mean(results, one, "mae_cm", depth_m, place) for one in (name, PERFECT))
    return own / perfect


def over_bound(results: Results, name: str, depth_m: float, place: str) -> float:
    """Mean absolute error over that at the bound, of textured pixels; NaN without any."""
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
    Figure(Target("time for 50 raw frames", "<", 240, " s", 0), PERFECT, _usage("time_s")),
    Figure(Target("peak memory", "<", 2, " GB", 2), PERFECT, _usage("memory_gb")),
)


# Tables -------------------------------------------------------------------------------------------

_NONE = "-"


def sheets(results: Results) -> list[Sheet]:
    """All tables, what is asked first."""
    if not results.cells:
        return []
    makers = (targets, _depths, _bound, _sigma, _consensus_sheet, _verdicts)
    return [make(results) for make in makers]


def _number(value: float, digits: int) -> str:
    return _NONE if math.isnan(value) else f"{value:.{digits}f}"


def targets(results: Results) -> Sheet:
    """What is asked, by camera; only lines whose sets were measured."""
    lines = [
        _target_line(results, figure)
        for figure in FIGURES
        if results.names(figure.kind) and (PERFECT in results.cells or not figure.compared)
    ]
    headings = ("what", "asked", "camera 1", "camera 2", "camera 3", "worst", "held?")
    return Sheet("typical lenses: what is asked and what was measured", headings, lines)


def _target_line(results: Results, figure: Figure) -> tuple[str, ...]:
    target = figure.target
    values = {name: figure.measure(results, name) for name in results.names(figure.kind)}
    cells = [_NONE] * 3
    for name, value in values.items():
        cells[int(name[-1]) - 1] = _number(value, target.digits)
    worst = target.of(list(values.values()))
    held = "yes" if target.held(worst) else "**no**"
    shown = f"{_number(worst, target.digits)}{target.unit}"
    return (target.what, target.asked, *cells, shown, held)


def _depths(results: Results) -> Sheet:
    """Error and density of `joint` by depth: means of textures and cameras, and worst cameras."""
    lines = []
    for depth_m in LENS_DEPTHS_M:
        cells = [f"{depth_m:.2f}"]
        for kind, place, ratio in (
            (PERFECT, FIELD, False),
            ("flat", FIELD, True),
            (PERFECT, MIDDLE, False),
            ("lens", MIDDLE, True),
            ("lens", FIELD, False),
        ):
            cells += _depth_cells(results, kind, depth_m, place, with_ratio=ratio)
        lines.append(tuple(cells))
    headings = ["depth (m)"]
    for words, has_ratio in (
        ("perfect, whole field", False),
        ("without curvature, whole field", True),
        ("perfect, middle", False),
        ("typical, middle", True),
        ("typical, whole field", False),
    ):
        headings.append(f"{words}: MAE (cm)")
        headings += ["times perfect", "density (%)"] if has_ratio else ["density (%)"]
    return Sheet("joint by depth", headings, lines, words=())


def _depth_cells(
    results: Results, kind: str, depth_m: float, place: str, *, with_ratio: bool
) -> list[str]:
    names = results.names(kind)
    cells = [_number(_of_sets(np.mean, results, kind, "mae_cm", depth_m, place), 3)]
    if with_ratio:
        times = [over_perfect(results, name, depth_m, place) for name in names]
        cells.append(_number(_finite(np.max, times), 2))
    return [*cells, _number(_of_sets(np.min, results, kind, "density", depth_m, place), 1)]


def _of_sets(
    function: Callable[..., float],
    results: Results,
    kind: str,
    figure: str,
    depth_m: float,
    place: str,
) -> float:
    """Mean or least value of a figure of `joint` over the sets of a kind; NaN without any."""
    values = [mean(results, name, figure, depth_m, place) for name in results.names(kind)]
    return _finite(function, values)


def _bound(results: Results) -> Sheet:
    """Error over that at the bound by ninth, means of the cameras, and median and worst of all."""
    return _by_ninth(results, lambda *where: over_bound(results, *where), 2, np.nanmax, OUTER)


def _by_ninth(
    results: Results,
    measure: Callable[[str, float, str], float],
    digits: int,
    worst: Callable[..., float],
    judged: Sequence[str] = NINTHS,
) -> Sheet:
    lines = []
    for depth_m in LENS_DEPTHS_M:
        found = {
            place: [measure(name, depth_m, place) for name in results.names("lens")]
            for place in NINTHS
        }
        cells = [_number(_finite(np.mean, found[place]), digits) for place in NINTHS]
        pooled = [value for place in judged for value in found[place]]
        cells += [_number(_finite(one, pooled), digits) for one in (np.median, worst)]
        lines.append((f"{depth_m:.2f}", *cells))
    headings = ("depth (m)", *NINTHS, "median, outer", "worst, outer")
    return Sheet("joint: error over the bound by ninth", headings, lines, words=())


def _finite(function: Callable[..., float], values: Iterable[float]) -> float:
    some = [value for value in values if not math.isnan(value)]
    return float(function(some)) if some else math.nan


def _shares_within(results: Results, kind: str, depths_m: Sequence[float]) -> list[list[float]]:
    """Shares within 1 sigma, and those within 3, of all ninths of cameras of a kind at depths."""
    return [
        [
            mean(results, name, figure, depth_m, place)
            for name in results.names(kind)
            for depth_m in depths_m
            for place in NINTHS
        ]
        for figure in ("within_1", "within_3")
    ]


def _sigma(results: Results) -> Sheet:
    """Shares within 1 and 3 sigma, and mean errors, over the ninths by depth."""
    lines = []
    for depth_m in LENS_DEPTHS_M:
        cells = [f"{depth_m:.2f}"]
        for kind in (PERFECT, "flat", "lens"):
            within_1, within_3 = _shares_within(results, kind, [depth_m])
            bias = [
                abs(mean(results, name, "bias_cm", depth_m, place))
                for name in results.names(kind)
                for place in NINTHS
            ]
            least, most = _finite(np.min, within_1), _finite(np.max, within_1)
            cells.append(f"{_number(least, 0)} to {_number(most, 0)}" if within_1 else _NONE)
            cells.append(_number(_finite(np.min, within_3), 0))
            cells.append(_number(_finite(np.max, bias), 2))
        lines.append(tuple(cells))
    headings = ["depth (m)"]
    for words in ("perfect", "without curvature", "typical"):
        headings += [f"{words}: within 1 sigma (%)", "within 3 (%)", "mean error (cm)"]
    return Sheet("joint: sigma and mean error of the ninths", headings, lines, words=())


def _consensus_sheet(results: Results) -> Sheet:
    """Errors of `consensus` on the middle rows by depth, and the ranges below 1 cm."""
    columns = [
        (name, place)
        for name in results.cells
        for place in ((SIDES, MIDDLE) if name.startswith("lens") else (SIDES,))
    ]
    errors = [consensus_cm(results, name, place) for name, place in columns]
    lines = [
        (f"{depth_m:.2f}", *(_number(one[number], 2) for one in errors))
        for number, depth_m in enumerate(LENS_DEPTHS_M)
    ]
    ranges = [accurate_range_m(one) for one in errors]
    lines.append(
        (
            "< 1 cm",
            *(_NONE if math.isnan(far) else f"{near:.2f} to {far:.2f}" for near, far in ranges),
        )
    )
    headings = [f"{name}, middle" if place == MIDDLE else name for name, place in columns]
    return Sheet(
        "consensus, C > 0.8: MAE (cm) on the middle rows", ("depth (m)", *headings), lines, words=()
    )


def _verdicts(results: Results) -> Sheet:
    """Verdict of each set with the measures that are not good, its time and memory."""
    lines = []
    for name, one in results.sets.items():
        usage = one["figures"]
        rows, cols = one["view_px"]
        verdict = one["verdict"]
        beyond = [
            f"{measure['title']} {measure['value']}{_unit(measure['unit'])}"
            for measure in verdict["measures"]
            if measure["grade"] != "good"
        ]
        cells = (f"{rows} x {cols}", f"{usage['time_s']:.0f}", f"{usage['memory_gb']:.2f}")
        lines.append((name, verdict["grade"], ", ".join(beyond) or "none", *cells))
    headings = (
        *("set", "verdict", "measures that are not good"),
        *("view (px)", "time (s)", "memory (GB)"),
    )
    return Sheet("verdicts", headings, lines, words=(0, 1, 2))


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
