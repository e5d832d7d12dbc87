"""Tables of cameras with typical lenses, for the terminal and the page."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from calibration_field import CROP, FIELD, NINTHS, SIDES
from calibration_sets import LENS_DEPTHS_M
from lens_figures import (
    FIGURES,
    MIDDLE,
    OUTER,
    PERFECT,
    Figure,
    Results,
    accurate_range_m,
    consensus_cm,
    mean,
    over_bound,
    over_perfect,
    typed_sigma_m,
)
from sheets import Sheet

_NONE = "-"


def sheets(results: Results) -> dict[str, Sheet]:
    """Tables of the page, by the names of their markers."""
    if not results.cells:
        return {}
    return {
        "lens targets": _targets(results),
        "lens depths": _depths(results),
        "lens distances": _distances(results),
        "lens limits": _limits(results),
        "lens bound": _bound(results),
        "lens sigma": _sigma(results),
        "lens shares": _shares(results),
        "lens pixels": _pixels(results),
        "lens consensus": _consensus(results),
        "lens verdicts": _verdicts(results),
    }


def _number(value: float, digits: int) -> str:
    return _NONE if math.isnan(value) else f"{value:.{digits}f}"


def _targets(results: Results) -> Sheet:
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
    found = {name: figure.measure(results, name) for name in results.names(figure.kind)}
    values = {name: value for name, value in found.items() if value is not None}
    cells = [_NONE] * 3
    for name, value in values.items():
        cells[int(name[-1]) - 1] = _number(value, target.digits)
    if not values:
        return (target.what, target.asked, *cells, _NONE, "not measured")
    worst = target.of(list(values.values()))
    held = "yes" if target.held(worst) else "**no**"
    shown = f"{_number(worst, target.digits)}{target.unit}"
    return (target.what, target.asked, *cells, shown, held)


def _distances(results: Results) -> Sheet:
    """Error that distances typed with an error leave to a camera with perfect lenses."""
    lines = []
    for depth_m in LENS_DEPTHS_M:
        perfect_cm = mean(results, PERFECT, "mae_cm", depth_m, FIELD)
        cells = [f"{depth_m:.2f}", _number(perfect_cm, 3)]
        for zero_is_known in (True, False):
            # Mean absolute error of a normal distribution over its standard deviation: 0.8.
            alone_cm = 80 * typed_sigma_m(depth_m, zero_is_known=zero_is_known)
            both = math.hypot(perfect_cm, alone_cm) / perfect_cm
            cells += [_number(alone_cm, 3), _number(both, 2)]
        lines.append(tuple(cells))
    parts = [
        f"zero {word}: {what}"
        for word in ("known", "unknown")
        for what in ("MAE by distances (cm)", "times perfect")
    ]
    headings = ("depth (m)", "perfect: MAE (cm)", *parts)
    return Sheet("typed distances alone", headings, lines, words=())


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


def _limits(results: Results) -> Sheet:
    """Bound and error over those with perfect lenses by depth: means of the cameras."""
    lines = []
    for depth_m in LENS_DEPTHS_M:
        cells = [f"{depth_m:.2f}"]
        for kind, place in (("flat", FIELD), ("lens", MIDDLE)):
            for figure in ("bound_cm", "mae_cm"):
                ratios = [
                    over_perfect(results, name, depth_m, place, figure)
                    for name in results.names(kind)
                ]
                cells.append(_number(_finite(np.mean, ratios), 2))
        lines.append(tuple(cells))
    headings = ["depth (m)"]
    for words in ("without curvature, whole field", "typical, middle"):
        headings += [f"{words}: bound, times perfect", "error, times perfect"]
    return Sheet("joint: bound and error over those of perfect lenses", headings, lines, words=())


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


def _within(results: Results, kind: str, depths_m: Sequence[float]) -> list[list[float]]:
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
            within_1, within_3 = _within(results, kind, [depth_m])
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


def _shares(results: Results) -> Sheet:
    """Shares within 1 and 3 sigma, means of all ninths and cameras, by depth and of all depths."""
    lines = []
    for depths_m in (*([depth_m] for depth_m in LENS_DEPTHS_M), LENS_DEPTHS_M):
        cells = [f"{depths_m[0]:.2f}" if len(depths_m) == 1 else "all"]
        for kind in (PERFECT, "flat", "lens"):
            cells += [_number(_finite(np.mean, one), 1) for one in _within(results, kind, depths_m)]
        lines.append(tuple(cells))
    headings = ["depth (m)"]
    for words in ("perfect", "without curvature", "typical"):
        headings += [f"{words}: within 1 sigma (%)", "within 3 (%)"]
    return Sheet("joint: sigma, means of all ninths and cameras", headings, lines, words=())


def _pixels(results: Results) -> Sheet:
    """Share of 902 x 1802 pixels that have a depth, and mean absolute error of these."""
    lines = []
    for depth_m in LENS_DEPTHS_M:
        cells = [f"{depth_m:.2f}"]
        for kind in (PERFECT, "flat", "lens"):
            for figure, digits in (("share", 1), ("mae_cm", 2)):
                value = _of_sets(np.mean, results, kind, figure, depth_m, CROP)
                cells.append(_number(value, digits))
        lines.append(tuple(cells))
    headings = ["depth (m)"]
    for words in ("perfect", "without curvature", "typical"):
        headings += [f"{words}: with a depth (%)", "MAE (cm)"]
    return Sheet("joint: pixels of 902 x 1802 that have a depth", headings, lines, words=())


def _consensus(results: Results) -> Sheet:
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
        "set",
        "verdict",
        "measures that are not good",
        "view (px)",
        "time (s)",
        "memory (GB)",
    )
    return Sheet("verdicts", headings, lines, words=(0, 1, 2))


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
