"""Charts of methods, of the league and of a stereo data set, with one style for each method.

A method has the same colour, marker and line style in every chart. The line style alone tells
groups of methods apart, in print and for colour-blind readers: solid for our method and the
paper's, dashed for stereo, dash-dotted for other methods with defocus. Within a group, colours
differ for every kind of colour blindness. A method that is not listed here gets a spare style.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from d3s.lab.evaluate.league import SHARES, League, Section
from d3s.lab.evaluate.stereo import StereoResults
from d3s.lab.evaluate.stereo.evaluation import lines_of
from d3s.lab.view.plots import new_figure, note, show_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

OURS, PAPER = "#c8442d", "#1f6fb4"
"""Colours of our method and of the paper's method."""

LineStyle = str | tuple[int, tuple[float, ...]]
"""LineStyle style as matplotlib takes it."""

_DASHED: LineStyle = (0, (5, 2))
_DASH_DOTTED: LineStyle = (0, (6, 1.5, 1.5, 1.5))
_DOTTED: LineStyle = (0, (1, 1.5))


class Style(NamedTuple):
    """Colour, marker and line style of a method."""

    colour: str
    marker: str = "o"
    line: LineStyle = "-"
    width: float = 1.4
    is_hollow: bool = False  # white markers, for a variant of a method

    @property
    def face(self) -> str:
        """Fill colour of markers and bars."""
        return "white" if self.is_hollow else self.colour

    @property
    def of_line(self) -> dict[str, Any]:
        """Keyword arguments of a matplotlib line; wider lines are drawn on top."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": self.width,
            "zorder": 2 + self.width / 10,
        }

    def of_marks(self, size: float = 6.0) -> dict[str, Any]:
        """Keyword arguments of matplotlib markers without a line; size in points."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "markerfacecolor": self.face,
            "markersize": 1.4 * size if self.marker == "*" else size,  # a star looks smaller
            "linestyle": "none",
        }


_STYLES = {
    "joint": Style(OURS, "o", width=2.6),
    "consensus": Style(PAPER, "s", width=2.0),
    "consensus, Eq. 10": Style(PAPER, "s", _DASHED, width=2.0, is_hollow=True),
    "sgbm": Style("#1a1a1a", "v", _DASHED),
    "bm": Style("#a3a3a3", "^", _DASHED),
    "phase": Style("#0c7a50", "D", _DASHED),
    "sift": Style("#5b3a1e", "*", _DOTTED),
    "guo2017": Style("#e69f00", "P", _DASH_DOTTED),
    "li2010": Style("#c2558f", "X", _DASH_DOTTED),
    "takeda2013": Style("#56b4e9", "p", _DASH_DOTTED),
}
# Spare styles: for methods that are not listed, and for a second variant of a method.
_MORE = tuple(
    Style(colour, marker, line)
    for line in ("-", _DOTTED)
    for colour, marker in (("#393b79", "h"), ("#637939", "d"), ("#843c39", "<"), ("#7b4173", ">"))
)


def styles_of(names: Iterable[str]) -> dict[str, Style]:
    """Return styles of all methods in a chart, by name.

    A name may have options or a remark after the method: "bm:block_size_px=15", "consensus, tuned".
    """
    more = cycle(_MORE)
    styles: dict[str, Style] = {}
    for name in names:
        method = name.partition(":")[0].partition(",")[0]
        style = _STYLES.get(name) or _STYLES.get(method)
        styles[name] = next(more) if style is None or style in styles.values() else style
    return styles


_MOST_IN_A_LINE = 3


def plot_league(league: League) -> "Figure":
    """Plot MAE against density in each section; a mark is a method with its own filter."""
    sections = league.sections()
    lines = 1 if len(sections) <= _MOST_IN_A_LINE else 2
    across = -(-len(sections) // lines)
    figure = new_figure(4.6 * across, 4.6 * lines)
    for number, section in enumerate(sections):
        axes = figure.add_subplot(lines, across, number + 1)
        _draw(axes, section)
        if number % across == 0:
            axes.set_ylabel("mean absolute error (cm)")
    key, cols = _key(sections[0]), 3 * across
    figure.legend(
        handles=key, loc="outside lower center", ncols=cols, frameon=False, handlelength=3.2
    )
    lens = ", typical lenses" * (league.program.lens == "typical")
    figure.suptitle(
        f"Error against density, simulated{lens}: lower is better, farther right is more of the "
        "frame",
        fontsize="medium",
    )
    return figure


def _key(section: Section) -> "list[Line2D]":
    """Legend entries: line and mark of each method, with its name."""
    from matplotlib.lines import Line2D

    styles = styles_of(one.method for one in section.standings)
    return [
        Line2D([], [], **(_mark(style) | style.of_line), label=name)
        for name, style in styles.items()
    ]


def _mark(style: Style) -> dict[str, Any]:
    """Style of a mark that stands out from lines and other marks."""
    edge = style.colour if style.is_hollow else "white"
    return style.of_marks(9.0) | {"markeredgecolor": edge, "zorder": 4}


def _draw(axes: "Axes", section: Section) -> None:
    shares = 100 * np.array(SHARES)
    styles = styles_of(one.method for one in section.standings)
    for one in section.standings:
        style = styles[one.method]
        axes.plot(shares, 100 * np.array(one.curve_m), **style.of_line)
        axes.plot(100 * one.own["density"], 100 * one.own["mae_m"], **_mark(style))
    if np.isfinite(section.common_density):
        axes.axvline(100 * section.common_density, color="#999999", linestyle=":", linewidth=1.2)
        look: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "fontsize": "small",
            "color": _GREY,
        }
        text, at = f"common: {100 * section.common_density:.0f} %", 100 * section.common_density
        note(axes, text, (at, 1.0), (-4, -4), ha="right", va="top", **look)
    axes.set(
        title=f"{section.name} ({section.pairs} pairs)",
        xlabel="pixels that have a depth (%)",
        yscale="log",
        xlim=(-2, 103),
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    show_grid(axes)


_NORMAL = (0.683, 0.954, 0.997)  # shares within 1, 2 and 3 sigma of a normal distribution
_GREY = "#666666"
_OF_ORDER: dict[str, dict[str, Any]] = {
    "confidence": {"linestyle": "-", "label": "by confidence"},
    "sigma": {"linestyle": (0, (1, 1.5)), "label": "by sigma"},
    "oracle": {"linestyle": "-", "color": _GREY, "linewidth": 1.0, "label": "oracle"},
}

SummaryLine = Mapping[str, Any]
"""SummaryLine of a summary: one method in one light."""


def plot_stereo(results: StereoResults) -> "Figure":
    """Plot a row of three panels for each light.

    Share of errors above 1 px over density, with a mark where the own filter of the method ends;
    share of errors within 1, 2 and 3 sigma; and the mean error of the first method as its least
    trusted pixels are dropped, by confidence, by sigma and by an oracle.
    """
    summary, lights = results.summary(), [one.name for one in results.lights]
    figure = new_figure(13.5, 4.3 * len(lights))
    rows = figure.subplots(len(lights), 3, squeeze=False)
    for panels, light in zip(rows, lights, strict=True):
        lines = lines_of(summary, light)
        styles = styles_of(one["method"] for one in lines)
        _draw_errors(panels[0], lines, styles)
        _draw_coverage(panels[1], lines, styles)
        _draw_ranking(panels[2], lines[0], styles)
        panels[0].set_title(f"error over density, {light}")
        for axes in panels:
            show_grid(axes)
    scenes = len(results.found.scenes)
    figure.suptitle(f"Stereo data set, mean over {scenes} scenes", fontsize="medium")
    return figure


def _points(line: SummaryLine, order: str, figure: str) -> tuple[list[float], list[float]]:
    """Densities in percent, and a figure at each."""
    points = [one for one in line["curves"] if one["order"] == order]
    return [100 * one["density"] for one in points], [one[figure] for one in points]


def _draw_errors(axes: "Axes", lines: Sequence[SummaryLine], styles: Mapping[str, Style]) -> None:
    for line in lines:
        style = styles[line["method"]]
        density, bad_1 = _points(line, "confidence", "bad_1")
        axes.plot(density, 100 * np.array(bad_1), **style.of_line, label=line["method"])
        axes.plot(100 * line["density"], 100 * line["bad_1"], **_mark(style))
    axes.set(
        xlabel="judged pixels that are kept (%)",
        ylabel="of these, off by more than 1 px (%)",
        yscale="log",
        xlim=(0, 101),
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(_labels_of_minor_ticks)
    axes.legend(frameon=False, fontsize="small")


def _labels_of_minor_ticks(value: float, _: float) -> str:
    """Label at 2 and 5 times a power of ten."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""


def _draw_coverage(axes: "Axes", lines: Sequence[SummaryLine], styles: Mapping[str, Style]) -> None:
    at = np.arange(1, 4)
    width = 0.8 / max(len(lines), 1)
    for number, line in enumerate(lines):
        style = styles[line["method"]]
        shares = [100 * line[f"coverage_{factor}"] for factor in at]
        left = at - 0.4 + width * (number + 0.5)
        axes.bar(left, shares, 0.9 * width, color=style.face, edgecolor=style.colour)
    for x, share in zip(at, _NORMAL, strict=True):
        axes.plot((x - 0.45, x + 0.45), (100 * share, 100 * share), color="black", linewidth=1.2)
    axes.set(
        title="errors within sigma; line: of a true sigma",
        xlabel="multiple of sigma",
        ylabel="retained pixels (%)",
        ylim=(0, 105),
        xticks=at,
    )


def _draw_ranking(axes: "Axes", line: SummaryLine, styles: Mapping[str, Style]) -> None:
    style = styles[line["method"]]
    for order, how in _OF_ORDER.items():
        density, mae_px = _points(line, order, "mae_px")
        drawn: dict[str, Any] = {"color": style.colour, "linewidth": 1.8, **how}
        axes.plot(density, mae_px, **drawn)
    axes.set(
        title=f"{line['method']}: its least trusted pixels dropped",
        xlabel="judged pixels that are kept (%)",
        ylabel="mean absolute error (px)",
        xlim=(0, 101),
        ylim=(0, None),
    )
    axes.legend(frameon=False, fontsize="small")
