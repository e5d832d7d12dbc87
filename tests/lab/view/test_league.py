"""The chart of the league: what is drawn, and that it can be."""

import math

import pytest

from d3s.lab.evaluate import Program
from d3s.lab.evaluate.contender import as_contenders
from d3s.lab.evaluate.league import OF_TRUST, STEPS, WEAK, League
from d3s.lab.evaluate.table import SweepTable
from d3s.lab.view.methods import plot_league
from d3s.rig import Rig

GROUPS = ("planes", "scenes", WEAK)


def made(names):
    def row(group, number, name):
        mae_m = 0.001 * (number + 1)
        return {
            "group": group, "pair": "0", "depth_m": 1.0 if group == "planes" else math.nan,
            "method": name, "megapixels": 1.0, "time_s": 1.0, "pixels": 100, "textured": 100,
            "full_retained": 80, "full_mae_m": mae_m, "full_median_m": 0.001,
            "own_retained": 80, "own_mae_m": mae_m, "own_median_m": 0.001,
            **dict.fromkeys(OF_TRUST, 0.5), "beside": 1,
            "steps": {
                "retained": [min(step + 1, 80) for step in range(STEPS)],
                "mae_m": [mae_m] * STEPS, "median_m": [mae_m] * STEPS, "trust": [1.0] * STEPS,
            },
        }  # fmt: skip

    rows = [row(group, i, one) for group in GROUPS for i, one in enumerate(names)]
    return League(
        program=Program.quick(),
        rig=Rig.paper_prototype(),
        contenders=as_contenders(names),
        rows=SweepTable(rows),
    )


def test_a_panel_each_section_and_a_mark_each_method():
    figure = plot_league(made(("joint", "bm", "bm:block_size_px=15")))
    assert [axes.get_title() for axes in figure.axes] == [
        "planes (1 pairs)",
        "planes beyond 0.9 m (1 pairs)",
        "scenes (1 pairs)",
        "weak scenes (1 pairs)",
    ]
    marks = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    names = ["joint", "bm", "bm:block_size_px=15"]
    (key,) = figure.legends
    assert [text.get_text() for text in key.get_texts()] == names
    assert [line.get_color() for line in key.get_lines()] == [line.get_color() for line in marks]
    assert marks[1].get_xdata() == pytest.approx(80)
    assert marks[1].get_ydata() == pytest.approx(0.2)
    assert len({line.get_color() for line in marks}) == 3
    figure.draw_without_rendering()
