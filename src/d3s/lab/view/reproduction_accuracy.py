"""Figures of the reproduction with measured errors: Figs. 5, 7 and S5."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from d3s.estimate.plot.panels import Values, depth_norm, set_depth_ticks, show_depth, show_grey
from d3s.lab.view.methods import OURS, PAPER, Style, styles_of
from d3s.lab.view.plots import new_axes, new_figure
from d3s.lab.view.reproduction import QUIET
from d3s.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACCURATE_CM = 1.0
_LEAST_CM, _MOST_CM = 0.008, 80.0
_TICKS_CM = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)


class Curve(NamedTuple):
    """Mean absolute error over depth; NaN where nothing was retained."""

    name: str
    depth_m: FloatArray
    mae_m: FloatArray
    style: Style


class Reach(NamedTuple):
    """Working range of a method, with its label."""

    name: str
    range_m: tuple[float, float] | None
    words: str
    style: Style


def plot_thresholds(
    curves: Sequence[Curve],
    thresholds: Sequence[float],
    ranges_m: Sequence[tuple[float, float] | None],
    density: Sequence[float],
    paper: tuple[float, tuple[float, float]],
) -> "Figure":
    """Plot error over depth for some thresholds, and working range and density over all."""
    figure = new_figure(11.0, 4.2)
    errors, reach = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_errors(errors, curves)
    errors.plot(paper[1], (_ACCURATE_CM,) * 2, color=PAPER, linewidth=7, alpha=0.3)
    place = (float(np.mean(paper[1])), 1.1 * _ACCURATE_CM)
    style: dict[str, Any] = {"fontsize": "x-small", "color": PAPER}
    errors.annotate(f"paper's prototype at {paper[0]:g}", place, ha="center", va="bottom", **style)
    errors.set_title("a  Error at several thresholds of confidence", loc="left", fontsize="medium")
    errors.legend(title="threshold", fontsize="x-small", title_fontsize="x-small", frameon=False)
    _draw_reach(reach, thresholds, ranges_m, density, paper)
    reach.set_title("b  Working range and density", loc="left", fontsize="medium")
    return figure


def shade(share: float) -> str:
    """Grey for a share from 0 (light) to 1 (dark)."""
    return f"{0.75 * (1 - share):.2f}"


def plot_methods(curves: Sequence[Curve], reaches: Sequence[Reach]) -> "Figure":
    """Plot errors of all methods over depth, and their working ranges."""
    figure = new_figure(11.0, 4.8)
    errors, ranges = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_errors(errors, curves)
    errors.set_title("c  Error of all methods", loc="left", fontsize="medium")
    errors.legend(fontsize="x-small", frameon=False, ncols=3, loc="upper left")
    _draw_ranges(ranges, reaches)
    ranges.set_title("Depths with a mean error below 1 cm", loc="left", fontsize="medium")
    return figure


def draw_errors(axes: "Axes", curves: Sequence[Curve]) -> None:
    """Plot mean absolute error over depth on a logarithmic axis, with the limit of the range."""
    for one in curves:
        axes.plot(one.depth_m, 100 * one.mae_m, **one.style.of_line, label=one.name)
    axes.axhline(_ACCURATE_CM, color="black", linewidth=0.8, linestyle=":")
    axes.set(yscale="log", ylim=(_LEAST_CM, _MOST_CM), xlabel="true depth (m)")
    axes.set_ylabel("mean absolute error (cm)")
    axes.set_yticks(_TICKS_CM, [f"{tick:g}" for tick in _TICKS_CM])
    axes.minorticks_off()
    axes.grid(alpha=0.25)


def _draw_reach(
    axes: "Axes",
    thresholds: Sequence[float],
    ranges_m: Sequence[tuple[float, float] | None],
    density: Sequence[float],
    paper: tuple[float, tuple[float, float]],
) -> None:
    ends = np.array([ends or (np.nan, np.nan) for ends in ranges_m])
    axes.fill_between(thresholds, ends[:, 0], ends[:, 1], color=PAPER, alpha=0.2, linewidth=0)
    for end in ends.T:
        axes.plot(thresholds, end, ".-", color=PAPER)
    axes.plot((paper[0],) * 2, paper[1], "_-", color="black", markersize=9)
    axes.annotate("paper ", (paper[0], np.mean(paper[1])), ha="right", fontsize="x-small")
    axes.set(xlabel="threshold of confidence", ylim=(0, 2.1), xlim=(0, 1))
    axes.set_ylabel("depths with MAE < 1 cm (m)", color=PAPER)
    shares = axes.twinx()
    shares.plot(thresholds, 100 * np.asarray(density), ".--", color=OURS)
    shares.set(ylim=(0, 105))
    shares.set_ylabel("pixels with a depth (%)", color=OURS)
    axes.grid(alpha=0.25)


def _draw_ranges(axes: "Axes", reaches: Sequence[Reach]) -> None:
    for place, one in enumerate(reaches):
        if one.range_m is not None:
            near_m, far_m = one.range_m
            line = one.style.line if one.style.is_hollow else "-"
            look: dict[str, Any] = {
                "color": one.style.face,
                "edgecolor": one.style.colour,
                "linestyle": line,
            }
            axes.barh(place, max(far_m - near_m, 0.01), left=near_m, height=0.6, **look)
        where = 0.27 if one.range_m is None else one.range_m[1] + 0.03
        axes.text(where, place, one.words, va="center", fontsize="x-small")
    axes.set_yticks(range(len(reaches)), [one.name for one in reaches], fontsize="small")
    axes.set(xlabel="true depth (m)", xlim=(0.2, 2.9), xticks=np.arange(0.25, 2.1, 0.25))
    axes.set_ylim(len(reaches) - 0.4, -0.6)  # the first bar on top
    axes.grid(alpha=0.25, axis="x")


TRUE_DEPTH = "True depth"
"""Title of the panel whose depths set the colour scale of all others."""


class SceneStrip(NamedTuple):
    """One scene: the left view, and depth maps by title, each with a text for its corner."""

    name: str
    left: Values
    maps: Mapping[str, tuple[Values, str]]  # `TRUE_DEPTH` among them


def plot_scenes(strips: Sequence[SceneStrip]) -> "Figure":
    """Plot a row for each scene: the left view, and its depth maps on one colour scale."""
    rows, cols = strips[0].left.shape
    across = 1 + len(strips[0].maps)
    width_in = 12.0
    figure = new_figure(width_in, (width_in / across * rows / cols + 0.08) * len(strips) + 1.0)
    figure.set_layout_engine("constrained", h_pad=0.04, w_pad=0.02, hspace=0, wspace=0)
    grid = figure.subplots(len(strips), across, squeeze=False)
    norm = depth_norm(np.concatenate([one.maps[TRUE_DEPTH][0].ravel() for one in strips]))
    for number, (strip, line) in enumerate(zip(strips, grid, strict=True)):
        show_grey(line[0], strip.left, "Left view" if number == 0 else "")
        line[0].set_ylabel(strip.name, fontsize="small")
        for axes, (title, (depth_m, said)) in zip(line[1:], strip.maps.items(), strict=True):
            shown = show_depth(axes, depth_m, norm, title if number == 0 else "")
            _write_in(axes, said)
    bar = figure.colorbar(shown, ax=grid, location="bottom", aspect=60, shrink=0.6)
    set_depth_ticks(bar)
    bar.set_label("depth (m); grey where there is none", fontsize="small")
    return figure


def _write_in(axes: "Axes", said: str) -> None:
    """Write text into the corner of a panel, legible on any colour."""
    if said:
        box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5}
        axes.text(
            0.02, 0.03, said, transform=axes.transAxes, fontsize="x-small", va="bottom", bbox=box
        )


def plot_scene_errors(scenes: Sequence[str], mae_m: Mapping[str, Sequence[float]]) -> "Figure":
    """Plot the mean absolute error of each method on each scene."""
    figure, axes = new_axes(11.0, 3.8)
    place = np.arange(len(scenes))
    styles = styles_of(mae_m)
    for number, (name, errors_m) in enumerate(mae_m.items()):
        shift = 0.7 * ((number + 0.5) / len(mae_m) - 0.5)
        axes.plot(place + shift, 100 * np.asarray(errors_m), **styles[name].of_marks(), label=name)
    axes.axhline(_ACCURATE_CM, color="black", linewidth=0.8, linestyle=":")
    for edge in place[:-1] + 0.5:
        axes.axvline(edge, color=QUIET, linewidth=0.5, alpha=0.5)
    axes.set_xticks(place, scenes, fontsize="small")
    axes.set(yscale="log", ylabel="mean absolute error (cm)", xlim=(-0.5, len(scenes) - 0.5))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.25, axis="y")
    axes.legend(fontsize="x-small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


class ErrorPanel(NamedTuple):
    """One panel of lines: points (x, y) by method."""

    title: str
    across: str  # label of the x axis
    up: str  # label of the y axis
    lines: Mapping[str, Sequence[tuple[float, float]]]
    is_log: bool = False


def plot_panels(panels: Sequence[ErrorPanel]) -> "Figure":
    """Plot panels, three in a line, with one legend."""
    figure = new_figure(12.0, 3.6 * -(-len(panels) // 3) + 0.6)
    styles = styles_of(dict.fromkeys(name for one in panels for name in one.lines))
    known = {}
    for axes, panel in zip(figure.subplots(-(-len(panels) // 3), 3).flat, panels, strict=True):
        for name, points in panel.lines.items():
            style = styles[name]
            marks = {"marker": style.marker, "markerfacecolor": style.face, "markersize": 5}
            across_up = zip(*points, strict=True)
            (known[name],) = axes.plot(*across_up, **style.of_line, **marks, label=name)
        axes.set_title(panel.title, loc="left", fontsize="medium")
        axes.set(xlabel=panel.across, ylabel=panel.up)
        if panel.is_log:
            axes.axhline(_ACCURATE_CM, color="black", linewidth=0.8, linestyle=":")
            axes.set(yscale="log", ylim=(0.04, 8))
            axes.set_yticks(_TICKS_CM[2:-2], [f"{tick:g}" for tick in _TICKS_CM[2:-2]])
            axes.minorticks_off()
        else:
            axes.set_ylim(-3, 103)
        axes.grid(alpha=0.25)
    figure.legend(handles=list(known.values()), loc="outside lower center", ncols=6, frameon=False)
    return figure
