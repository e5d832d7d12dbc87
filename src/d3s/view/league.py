"""The league as a chart: how wrong each method is, by how much of the frame it answers for."""

from typing import TYPE_CHECKING

import numpy as np

from d3s.evaluate.league import SHARES, League, Section, Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Ours stand out; the others can be told apart also without colours, by their marks.
_STYLES = {
    "joint": ("#c8442d", "o"),
    "consensus": ("#e0a12b", "s"),
    "sgbm": ("#1f6f8b", "v"),
    "bm": ("#55a7c7", "^"),
    "sift": ("#8c6bb1", "*"),
    "phase": ("#4d8c57", "D"),
    "guo2017": ("#a65628", "P"),
    "li2010": ("#3a3a3a", "X"),
    "takeda2013": ("#7f7f7f", "p"),
}
_MORE = ("#393b79", "#637939", "#843c39", "#7b4173")
_MARKS = "hd<>"


def plot_league(league: League) -> "Figure":
    """MAE against density in each section; a mark is a method as it comes."""
    from matplotlib.figure import Figure

    sections = league.sections()
    figure = Figure(figsize=(4.6 * len(sections), 4.6), layout="constrained")
    every = figure.subplots(1, len(sections), squeeze=False)[0]
    for axes, section in zip(every, sections, strict=True):
        _draw(axes, section)
    every[0].set_ylabel("mean absolute error (cm)")
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3 * len(sections), frameon=False
    )
    figure.suptitle(
        "Error against density, simulated: lower is better, farther right is more of the frame",
        fontsize="medium",
    )
    return figure


def _draw(axes: "Axes", section: Section) -> None:
    shares = 100 * np.array(SHARES)
    for number, one in enumerate(section.standings):
        colour, mark = _style(one, number)
        is_ours = one.method == "joint"
        axes.plot(
            shares,
            100 * np.array(one.curve_m),
            color=colour,
            linewidth=2.4 if is_ours else 1.3,
            zorder=3 if is_ours else 2,
        )
        axes.plot(
            100 * one.own.density,
            100 * one.own.mae_m,
            mark,
            color=colour,
            markeredgecolor="white",
            markersize=13 if mark == "*" else 9,
            linestyle="none",
            zorder=4,
            label=one.method,
        )
    if np.isfinite(section.common_density):
        axes.axvline(100 * section.common_density, color="#999999", linestyle=":", linewidth=1.2)
        axes.annotate(
            f"common: {100 * section.common_density:.0f} %",
            (100 * section.common_density, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -4),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize="small",
            color="#666666",
        )
    axes.set(
        title=f"{section.name} ({section.pairs} pairs)",
        xlabel="pixels that have a depth (%)",
        yscale="log",
        xlim=(-2, 103),
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(which="major", color="#dddddd", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)


def _style(one: Standing, number: int) -> tuple[str, str]:
    known = _STYLES.get(one.method)
    return known or (_MORE[number % len(_MORE)], _MARKS[number % len(_MARKS)])
