"""Chart of a stereo data set: error over density, sigma, and the ranking by sigma."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from d3s.lab.evaluate.stereo import StereoResults
from d3s.lab.evaluate.stereo.evaluation import lines_of
from d3s.lab.view.methods import Style, styles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NORMAL = (0.683, 0.954, 0.997)  # shares within 1, 2 and 3 sigma of a normal distribution
_GREY = "#666666"
_OF_ORDER: dict[str, dict[str, Any]] = {
    "confidence": {"linestyle": "-", "label": "by confidence"},
    "sigma": {"linestyle": (0, (1, 1.5)), "label": "by sigma"},
    "oracle": {"linestyle": "-", "color": _GREY, "linewidth": 1.0, "label": "oracle"},
}

Line = Mapping[str, Any]
"""Line of a summary: one method in one light."""


def plot_stereo(results: StereoResults) -> "Figure":
    """Plot a row of three panels for each light.

    Share of errors above 1 px over density, with a mark where the own filter of the method ends;
    share of errors within 1, 2 and 3 sigma; and the mean error of the first method as its least
    trusted pixels are dropped, by confidence, by sigma and by an oracle.
    """
    from matplotlib.figure import Figure

    summary, lights = results.summary(), [one.name for one in results.lights]
    figure = Figure(figsize=(13.5, 4.3 * len(lights)), layout="constrained")
    rows = figure.subplots(len(lights), 3, squeeze=False)
    for panels, light in zip(rows, lights, strict=True):
        lines = lines_of(summary, light)
        styles = styles_of(one["method"] for one in lines)
        _draw_errors(panels[0], lines, styles)
        _draw_coverage(panels[1], lines, styles)
        _draw_ranking(panels[2], lines[0], styles)
        panels[0].set_title(f"error over density, {light}")
        for axes in panels:
            axes.grid(which="major", color="#dddddd", linewidth=0.7)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
    scenes = len(results.found.scenes)
    figure.suptitle(f"Stereo data set, mean over {scenes} scenes", fontsize="medium")
    return figure


def _points(line: Line, order: str, figure: str) -> tuple[list[float], list[float]]:
    """Densities in percent, and a figure at each."""
    points = [one for one in line["curves"] if one["order"] == order]
    return [100 * one["density"] for one in points], [one[figure] for one in points]


def _draw_errors(axes: "Axes", lines: Sequence[Line], styles: Mapping[str, Style]) -> None:
    for line in lines:
        style = styles[line["method"]]
        density, bad_1 = _points(line, "confidence", "bad_1")
        axes.plot(density, 100 * np.array(bad_1), **style.of_line, label=line["method"])
        edge = style.colour if style.is_hollow else "white"
        mark = style.of_marks(9.0) | {"markeredgecolor": edge, "zorder": 4}
        axes.plot(100 * line["density"], 100 * line["bad_1"], **mark)
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


def _draw_coverage(axes: "Axes", lines: Sequence[Line], styles: Mapping[str, Style]) -> None:
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


def _draw_ranking(axes: "Axes", line: Line, styles: Mapping[str, Style]) -> None:
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
