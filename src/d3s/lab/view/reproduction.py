"""Figures of the reproduction without sweeps: Figs. 1b, 3b, 6, S1, S3, S6, Table S1, Eq. S11."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from d3s.calibrate.baselines import ChosenBaselines
from d3s.calibrate.tuning import Tuning
from d3s.lab.view.methods import OURS, PAPER
from d3s.lab.view.plots import new_axes, new_figure, note
from d3s.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

PROTOTYPE, OTHERS, QUIET = "#222222", "#666666", "#999999"
_COLOURS = "viridis_r"  # of inverse depth
Side = Literal["ne", "nw", "se", "sw"]


class Point(NamedTuple):
    """Point of a chart of depth against size, and the side of its label."""

    name: str
    size_mm: float
    depth_m: float
    colour: str
    marker: str = "o"
    side: Side = "ne"


_BESIDE = 1.09  # factor in size between neighbouring bars of one camera


class Range(NamedTuple):
    """Working range, drawn as a bar; `is_open` if only its far end is known."""

    name: str
    size_mm: float
    nearest_m: float
    farthest_m: float
    colour: str
    is_open: bool = False


def plot_working_ranges(ranges: Sequence[Range], commercial_mm: float) -> "Figure":
    """Plot working ranges against the larger of baseline and focal length.

    Bars of one size are side by side around that size.
    """
    figure, axes = new_axes(10.0, 4.2)
    axes.axvspan(commercial_mm, 170, color="0.93", zorder=0)
    words = "commercial stereo cameras:\nbaseline from 5 cm"
    axes.text(commercial_mm * 1.04, 0.06, words, fontsize="small")
    for one, place_mm in zip(ranges, _places_mm(ranges), strict=True):
        ends = (one.farthest_m, one.farthest_m) if one.is_open else (one.nearest_m, one.farthest_m)
        bar: dict[str, Any] = {
            "linewidth": 5,
            "solid_capstyle": "butt",
            "marker": "v" if one.is_open else None,
        }
        axes.plot([place_mm] * 2, ends, color=one.colour, markersize=6, **bar)
        place = (place_mm, one.farthest_m)
        note(axes, one.name, place, (0, 6), rotation=90, ha="center", color=one.colour)
    axes.set(
        xlabel="larger of baseline and focal length (mm)",
        ylabel="depth with MAE below 1 cm (m)",
        xscale="log",
        xlim=(3.2, 170),
        ylim=(0, 8.0),
    )
    axes.minorticks_off()
    axes.set_xticks((5, 10, 20, 50, 100), ("5", "10", "20", "50", "100"))
    axes.grid(alpha=0.25)
    return figure


def _places_mm(ranges: Sequence[Range]) -> list[float]:
    """Horizontal position of each bar: at its size, or around it if there are several bars."""
    places_mm = []
    for one in ranges:
        same = [it for it in ranges if it.size_mm == one.size_mm and it.is_open == one.is_open]
        step = 0.0 if one.is_open else same.index(one) - 0.5 * (len(same) - 1)
        places_mm.append(one.size_mm * _BESIDE**step)
    return places_mm


def plot_systems(
    by_baseline: Sequence[Point],
    by_focal_length: Sequence[Point],
    errors_px: Mapping[str, tuple[float, float]],
) -> "Figure":
    """Plot farthest depth against baseline and focal length, and disparity errors."""
    figure = new_figure(11.0, 3.9)
    first, second, third = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    draw_points(first, by_baseline)
    draw_points(second, by_focal_length)
    first.set(xlabel="baseline (mm)", ylabel="farthest depth with MAE < 1 cm (m)")
    second.set(xlabel="focal length (mm)")
    _draw_pairs(third, errors_px)
    return figure


def draw_points(axes: "Axes", points: Sequence[Point]) -> None:
    """Plot depth over size on logarithmic axes, with the line through the systems of others."""
    for point in points:
        axes.plot(point.size_mm, point.depth_m, point.marker, color=point.colour, markersize=6)
        is_left, is_above = "w" in point.side, "n" in point.side
        offset = (-5 if is_left else 5, 3 if is_above else -3)
        sides = {"ha": "right" if is_left else "left", "va": "bottom" if is_above else "top"}
        note(axes, point.name, (point.size_mm, point.depth_m), offset, color=point.colour, **sides)
    others = [point for point in points if point.colour == OTHERS]
    if len(others) > 1:
        slope, offset = np.polyfit(
            np.log([one.size_mm for one in others]), np.log([one.depth_m for one in others]), 1
        )
        ends = np.array([1.5, 150.0])
        label = f"through those of others: size^{slope:.2f}"
        axes.plot(ends, np.exp(offset) * ends**slope, "--", color=QUIET, linewidth=1, label=label)
        axes.legend(loc="upper left", fontsize="x-small", frameon=False)
    axes.set(xscale="log", yscale="log", xlim=(1.4, 170), ylim=(0.25, 9))
    sizes_mm, depths_m = (2, 5, 10, 20, 50, 100), (0.3, 0.5, 1, 2, 5)
    axes.minorticks_off()
    axes.set_xticks(sizes_mm, [f"{one:g}" for one in sizes_mm])
    axes.set_yticks(depths_m, [f"{one:g}" for one in depths_m])
    axes.grid(alpha=0.25, which="both")


def _draw_pairs(axes: "Axes", errors_px: Mapping[str, tuple[float, float]]) -> None:
    place = np.arange(len(errors_px))
    printed, computed = np.array(list(errors_px.values())).T
    axes.barh(place - 0.2, printed, 0.38, color=PAPER, label="printed")
    axes.barh(place + 0.2, computed, 0.38, color=OURS, label="from the other columns")
    for row, values in enumerate(zip(printed, computed, strict=True)):
        for step, value in zip((-0.2, 0.2), values, strict=True):
            axes.text(1.05 * value, row + step, f"{value:.3g}", va="center", fontsize="x-small")
    axes.set_yticks(place, list(errors_px), fontsize="x-small")
    axes.set(xscale="log", xlim=(0.05, 20), xlabel="disparity error at the farthest depth (px)")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    axes.legend(fontsize="x-small", frameon=False, loc="lower right")


def plot_psfs(
    rows: Mapping[str, Sequence[FloatArray]],
    depths_m: Sequence[float],
    curves_px: Mapping[str, tuple[FloatArray, FloatArray]],
) -> "Figure":
    """Plot spots over depth, a row for each lens and kind, and their sizes as curves.

    Each spot is scaled to its own brightest pixel, and its square root is drawn, so that faint
    light is visible.
    """
    figure = new_figure(11.0, 7.6)
    parts = figure.subfigures(2, 1, squeeze=False, height_ratios=(1.7, 1))
    grid = parts[0, 0].subplots(len(rows), len(depths_m))
    for axes, depth_m in zip(grid[0], depths_m, strict=True):
        axes.set_title(f"{depth_m:.1f} m", fontsize="small")
    for line, (name, spots) in zip(grid, rows.items(), strict=True):
        for axes, spot in zip(line, spots, strict=True):
            axes.imshow(np.sqrt(np.maximum(spot, 0.0)), cmap="inferno", vmin=0.0)
            axes.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, fontsize="small")
    axes = parts[1, 0].subplots()
    for (name, (along_m, size_px)), colour in zip(
        curves_px.items(), (PAPER, OURS, PAPER, OURS), strict=False
    ):
        style = "--" if "diffraction" in name else "-"
        axes.plot(along_m, size_px, style, color=colour, label=name)
    axes.set(xlabel="depth (m)", ylabel="radius of 84 % of the light (px)", ylim=(0, None))
    axes.legend(fontsize="small", frameon=False)
    axes.grid(alpha=0.25)
    return figure


def plot_cases(
    true_m: FloatArray, found_m: Mapping[str, tuple[FloatArray, FloatArray | None]]
) -> "Figure":
    """Plot estimated against true depth, (depths,), a panel for each case.

    Depths of a case are those by the derived equation, and by the printed one if it differs,
    (depths, pixels). Lines are medians over the pixels, bands contain 90 % of them.
    """
    figure = new_figure(11.0, 5.2)
    grid = figure.subplots(2, 4, sharex=True, sharey=True).ravel()
    for axes in grid[len(found_m) :]:
        axes.axis("off")
    for axes, (name, (derived_m, printed_m)) in zip(grid, found_m.items(), strict=False):
        axes.plot(true_m, true_m, color=QUIET, linewidth=4, alpha=0.4)
        if printed_m is not None:
            _draw_band(axes, true_m, printed_m, PAPER, "as printed")
        _draw_band(axes, true_m, derived_m, OURS, "as derived")
        axes.set_title(name, fontsize="small")
        axes.set(xlim=(true_m[0], true_m[-1]), ylim=(0, 1.3 * true_m[-1]))
        axes.grid(alpha=0.25)
        if printed_m is not None:
            axes.legend(fontsize="x-small", frameon=False, loc="upper left")
    figure.supxlabel("true depth (m)", fontsize="small")
    figure.supylabel("depth found (m)", fontsize="small")
    return figure


def _draw_band(
    axes: "Axes", true_m: FloatArray, found_m: FloatArray, colour: str, name: str
) -> None:
    low, middle, high = np.nanpercentile(found_m, (5, 50, 95), axis=1)
    axes.fill_between(true_m, low, high, color=colour, alpha=0.25, linewidth=0)
    axes.plot(true_m, middle, color=colour, label=name)


class Predictions(NamedTuple):
    """Predicted depths at one pixel over virtual baseline and shift."""

    baselines_m: FloatArray  # (baselines,), at which the candidates are tried
    candidates_m: FloatArray  # (candidates,)
    shifts_px: FloatArray  # (candidates, baselines)
    depths_m: FloatArray  # (candidates, baselines)
    field_baselines_m: FloatArray  # (field baselines,), grid over the whole plane
    field_shifts_px: FloatArray  # (field shifts,)
    field_m: FloatArray  # (field shifts, field baselines)
    true_m: float


def plot_plane(predictions: Predictions) -> "Figure":
    """Plot predicted depth over the plane of virtual baseline and shift, and along some lines.

    Colours are linear in inverse depth, so that negative predictions, which are beyond infinity,
    have the colour of the farthest depth.
    """
    from matplotlib.colors import Normalize

    true_m = predictions.true_m
    norm = Normalize(1.0 / (_FARTHEST * true_m), 1.0 / (_NEAREST * true_m))
    figure = new_figure(11.0, 4.4)
    first, second, third = figure.subplots(1, 3, width_ratios=(1, 1.15, 1))
    _draw_lines(first, predictions, norm)
    _draw_field(second, predictions, norm)
    _draw_cuts(third, predictions)
    return figure


_NEAREST, _FARTHEST = 0.7, 1.75
"""Ends of the colours of depth in true depths: equal differences of inverse depth."""


def _draw_lines(axes: "Axes", p: Predictions, norm: "Normalize") -> None:
    """Plot the predictions of every candidate on its line, as the paper draws them."""
    from matplotlib import colormaps

    along_mm = 1e3 * p.baselines_m
    points: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.5, "s": 42, "zorder": 2}
    for candidate_m, shifts_px, depths_m in zip(
        p.candidates_m, p.shifts_px, p.depths_m, strict=True
    ):
        width = 4.0 if np.isclose(candidate_m, p.true_m) else 1.5
        colour = colormaps[_COLOURS](norm(1.0 / candidate_m))
        axes.plot(along_mm, shifts_px, color=colour, linewidth=width, zorder=1)
        axes.scatter(along_mm, shifts_px, c=1.0 / depths_m, cmap=_COLOURS, norm=norm, **points)
    axes.set(xlabel="virtual baseline (mm)", ylabel="shift of the right view (px)")
    axes.set_title("lines: candidates; points: predictions", fontsize="small")


def _draw_field(axes: "Axes", p: Predictions, norm: "Normalize") -> None:
    style: dict[str, Any] = {
        "cmap": _COLOURS,
        "norm": norm,
        "shading": "nearest",
        "rasterized": True,
    }
    mesh = axes.pcolormesh(1e3 * p.field_baselines_m, p.field_shifts_px, 1.0 / p.field_m, **style)
    for candidate_m, shifts_px in zip(p.candidates_m, p.shifts_px, strict=True):
        is_true = np.isclose(candidate_m, p.true_m)
        colour, width = ("white", 2.5) if is_true else ("0.75", 0.8)
        axes.plot(1e3 * p.baselines_m, shifts_px, color=colour, linewidth=width)
    axes.set(
        xlabel="virtual baseline (mm)",
        xlim=(1e3 * p.field_baselines_m[0], 1e3 * p.field_baselines_m[-1]),
        ylim=(p.field_shifts_px[0], p.field_shifts_px[-1]),
    )
    axes.set_title("every prediction; white: the true depth", fontsize="small")
    bar = axes.figure.colorbar(mesh, ax=axes, label="depth (m)", extend="both")
    ticks_m = p.true_m * np.array([0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7])
    bar.set_ticks((1.0 / ticks_m).tolist(), labels=[f"{z:.2g}" for z in ticks_m])


def _draw_cuts(axes: "Axes", p: Predictions) -> None:
    """Plot predictions along the true line and two others."""
    right = int(np.abs(p.candidates_m - p.true_m).argmin())
    names = (-1, "nearer", PAPER), (0, "true", "black"), (1, "farther", OURS)
    for step, name, colour in names:
        number = right + step
        label = f"{name}: {p.candidates_m[number]:.2f} m"
        axes.plot(1e3 * p.baselines_m, p.depths_m[number], "o-", color=colour, label=label)
        axes.axhline(p.candidates_m[number], color=colour, linestyle=":", linewidth=1.5)
    axes.set(xlabel="virtual baseline (mm)", ylabel="predicted depth (m)")
    axes.set_title("along three lines; dotted: the candidate", fontsize="small")
    axes.legend(fontsize="x-small", frameon=False)
    axes.grid(alpha=0.25)


def plot_confidence(
    candidates_m: FloatArray, both: FloatArray, depth_only: FloatArray, true_m: float
) -> "Figure":
    """Plot the confidence over candidates at one pixel, with and without inverse depth."""
    figure = new_figure(10.0, 3.6)
    axes_of = figure.subplots(1, 2, sharey=True)
    names = "in depth and inverse depth (Eq. 14)", "in depth alone (Eq. S5)"
    for axes, name, values, colour in zip(
        axes_of, names, (both, depth_only), (OURS, PAPER), strict=True
    ):
        best = int(values.argmax())
        axes.plot(candidates_m, values, color=colour, linewidth=1.2)
        axes.axvline(true_m, color=QUIET, linestyle="--", label=f"true depth, {true_m:.2f} m")
        label = f"chosen, {candidates_m[best]:.2f} m"
        axes.plot(candidates_m[best], values[best], "v", color="black", label=label)
        axes.set(xlabel="candidate depth (m)", title=name, ylim=(0, 1.08))
        # Below the axes, where no curve can pass.
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2}
        axes.legend(fontsize="small", frameon=False, **below)
        axes.grid(alpha=0.25)
    axes_of[0].set_ylabel("confidence")
    return figure


def plot_tuning(tuning: Tuning, region_m: tuple[float, float], stereo_m_px: FloatArray) -> "Figure":
    """Plot scale and offset over the virtual baseline with their cubics, and the error left."""
    figure = new_figure(10.0, 4.0)
    first, third = figure.subplots(1, 2, width_ratios=(1.3, 1))
    second = first.twinx()
    along_mm = 1e3 * tuning.virtual_baselines_m
    fine_m = np.linspace(tuning.virtual_baselines_m[0], tuning.virtual_baselines_m[-1], 200)
    for axes, values, sd, cubic, colour, name in (
        (first, tuning.a_m_px, tuning.a_sd_m_px, tuning.a_cubic, PAPER, "a"),
        (second, 100 * tuning.b_m, 100 * tuning.b_sd_m, tuning.b_cubic, OURS, "b"),
    ):
        unit = 1.0 if name == "a" else 100.0
        curve = unit * np.polynomial.polynomial.polyval(fine_m, cubic.coefficients)
        axes.errorbar(along_mm, values, sd, fmt="o", color=colour, markersize=4, linewidth=0.8)
        axes.plot(1e3 * fine_m, curve, color=colour, label=f"{name}: cubic, R² = {cubic.r2:.5f}")
        axes.tick_params(axis="y", colors=colour)
    label = "a of stereo without blur"
    first.plot(along_mm, stereo_m_px, ":", color=QUIET, label=label)
    first.set_ylabel("a (m px)", color=PAPER)
    second.set_ylabel("b (cm)", color=OURS)
    lines = [one for axes in (first, second) for one in axes.get_legend_handles_labels()[0]]
    first.legend(handles=lines, fontsize="small", frameon=False, loc="lower center")
    third.plot(along_mm, 100 * tuning.mae_m, "o-", color="black", markersize=4)
    third.set(ylabel="MAE at the true shift (cm)", ylim=(0, None))
    for axes in (first, third):
        axes.axvspan(1e3 * region_m[0], 1e3 * region_m[1], color="0.85", zorder=0)
        axes.set_xlabel("virtual baseline (mm)")
        axes.grid(alpha=0.25)
    return figure


def plot_baselines(chosen: ChosenBaselines, printed_m: Sequence[float]) -> "Figure":
    """Plot the cost of sets of virtual baselines: the best by size, and all of the chosen size."""
    figure = new_figure(10.0, 4.2)
    first, second = figure.subplots(1, 2, width_ratios=(1, 1.25))
    counts = np.arange(1, len(chosen.best_of_count) + 1)
    first.plot(counts, [1e3 * one.cost_m for one in chosen.best_of_count], "o-", color=OURS)
    for count, one in zip(counts, chosen.best_of_count, strict=True):
        text = f"{100 * one.density:.1f} %"
        note(first, text, (float(count), 1e3 * one.cost_m), (0, -14), ha="center")
    first.set(xlabel="how many virtual baselines", ylabel="cost of the best set (mm)")
    highest_mm = 1.25e3 * max(one.cost_m for one in chosen.best_of_count)
    first.set(xticks=counts, xlim=(0.5, counts[-1] + 0.5), ylim=(0, highest_mm))
    first.set_title("numbers: share of windows with a depth", fontsize="small")
    first.grid(alpha=0.25)
    sampled_mm = 1e3 * chosen.sampled_m
    mesh = second.pcolormesh(
        sampled_mm, sampled_mm, 1e3 * chosen.surface_m.T, cmap="magma_r", rasterized=True
    )
    figure.colorbar(mesh, ax=second, label="cost (mm)")
    ends = chosen.chosen.virtual_baselines_m
    for name, (low, high), colour, marker in (
        ("chosen here", (ends[0], ends[-1]), OURS, "o"),
        ("the paper's", (printed_m[0], printed_m[-1]), PAPER, "*"),
    ):
        second.plot(1e3 * low, 1e3 * high, marker, color=colour, markersize=11, label=name)
    second.set(xlabel="shortest of the set (mm)", ylabel="longest of the set (mm)")
    second.legend(fontsize="small", frameon=False, loc="lower right")
    return figure
