"""Figures of the reproduction without sweeps: Figs. 1b, 6, S6 and Table S1."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from d3s.lab.view.methods import OURS, PAPER
from d3s.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROTOTYPE, OTHERS, QUIET = "#222222", "#666666", "#999999"
DEPTH_COLOURS = "viridis"
Side = Literal["ne", "nw", "se", "sw"]


class Point(NamedTuple):
    """Point of a chart of depth against size, and the side of its label."""

    name: str
    size_mm: float
    depth_m: float
    colour: str
    marker: str = "o"
    side: Side = "ne"


def new_figure(width_in: float, height_in: float) -> "Figure":
    """Return a new empty figure."""
    from matplotlib.figure import Figure  # not pyplot: no global state, no screen

    return Figure(figsize=(width_in, height_in), layout="constrained")


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
    figure = new_figure(10.0, 4.2)
    axes = figure.subplots()
    axes.axvspan(commercial_mm, 170, color="0.93", zorder=0)
    axes.text(
        commercial_mm * 1.04,
        0.06,
        "commercial stereo cameras:\nbaseline from 5 cm",
        fontsize="small",
    )
    for one, place_mm in zip(ranges, _places_mm(ranges), strict=True):
        ends = (one.farthest_m, one.farthest_m) if one.is_open else (one.nearest_m, one.farthest_m)
        axes.plot(
            [place_mm] * 2,
            ends,
            color=one.colour,
            linewidth=5,
            solid_capstyle="butt",
            marker="v" if one.is_open else None,
            markersize=6,
        )
        axes.annotate(
            one.name,
            (place_mm, one.farthest_m),
            xytext=(0, 6),
            textcoords="offset points",
            rotation=90,
            ha="center",
            fontsize="x-small",
            color=one.colour,
        )
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
        axes.annotate(
            point.name,
            (point.size_mm, point.depth_m),
            xytext=(-5 if is_left else 5, 3 if is_above else -3),
            ha="right" if is_left else "left",
            va="bottom" if is_above else "top",
            textcoords="offset points",
            fontsize="x-small",
            color=point.colour,
        )
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
    _plain_numbers(axes)
    axes.grid(alpha=0.25, which="both")


def _plain_numbers(axes: "Axes") -> None:
    """Label logarithmic axes with plain numbers."""
    sizes_mm, depths_m = (2, 5, 10, 20, 50, 100), (0.3, 0.5, 1, 2, 5)
    axes.minorticks_off()
    axes.set_xticks(sizes_mm, [f"{one:g}" for one in sizes_mm])
    axes.set_yticks(depths_m, [f"{one:g}" for one in depths_m])


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
    """Plot estimated against true depth, a panel for each case.

    Parameters
    ----------
    true_m
        True depths, (depths,).
    found_m
        Depths by the derived equation, and by the printed one if it differs, (depths, pixels), for
        each case. Lines are medians over the pixels, bands contain 90 % of them.
    """
    cols = 4
    figure = new_figure(11.0, 5.2)
    grid = figure.subplots(2, cols, sharex=True, sharey=True).ravel()
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
