"""Chart of the league: error of each method against its density."""

from typing import TYPE_CHECKING, Any

import numpy as np

from d3s.lab.evaluate.league import SHARES, League, Section
from d3s.lab.view.methods import Style, styles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_MOST_IN_A_LINE = 3


def plot_league(league: League) -> "Figure":
    """Plot MAE against density in each section; a mark is a method with its own filter."""
    from matplotlib.figure import Figure

    sections = league.sections()
    lines = 1 if len(sections) <= _MOST_IN_A_LINE else 2
    across = -(-len(sections) // lines)
    figure = Figure(figsize=(4.6 * across, 4.6 * lines), layout="constrained")
    for number, section in enumerate(sections):
        axes = figure.add_subplot(lines, across, number + 1)
        _draw(axes, section)
        if number % across == 0:
            axes.set_ylabel("mean absolute error (cm)")
    figure.legend(
        handles=_key(sections[0]),
        loc="outside lower center",
        ncols=3 * across,
        frameon=False,
        handlelength=3.2,
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
