"""docs/align.md: its code runs, and its limits are those of the code."""

import numpy as np
import pytest

import d3s
from align_frames import LAYOUT, RIG
from d3s.camera.align import focus, gain, geometry, light, measure
from d3s.camera.align.quantities import KINDS
from d3s.camera.align.steps import PLAN
from pages import DOCS, python_blocks, table_rows

PAGE = DOCS / "align.md"


def test_code_of_the_page_says_what_its_comment_says():
    (code,) = python_blocks(PAGE)
    comment = code.split("# ")[-1].strip()
    # The same with small frames.
    code = code.replace("d3s.Rig.paper_prototype()", "RIG")
    code = code.replace("noise=0.01)", "noise=0.01, layout=LAYOUT)")
    printed = []
    exec(code, {"RIG": RIG, "LAYOUT": LAYOUT, "print": printed.append})
    (said,) = printed
    words, angle = said.rstrip("°").rsplit(" ", 1)
    asked, expected = comment.rstrip("°").rsplit(" ", 1)
    assert words == asked
    assert float(angle) == pytest.approx(float(expected), abs=0.02)


def test_limits_of_the_page():
    text = PAGE.read_text()
    low, high = light.WHITE - light.WHITE_LIMIT, light.WHITE + light.WHITE_LIMIT
    for words in (
        f"{100 * low:.0f} to {100 * high:.0f} % of full scale",
        f"at most {100 * light.CLIPPED_LIMIT:g} % of the pixels",
        f"{100 * light.PARTITION_SHARE:g} % of the width",
        f"| {geometry.ROWS_PX:g} px |",
        f"| {np.degrees(geometry.ROLL_RAD):g}° |",
        f"| {100 * geometry.SCALE:g} % |",
        f"| {np.degrees(geometry.TURN_RAD):g}° |",
        f"| {100 * gain.GAIN_LIMIT:g} % |",
        f"| {100 * light.FIELDS_LIMIT:g} % |",
    ):
        assert words in text, words
    assert focus.FOCUS_SHARE == 0.25
    assert callable(measure)


def test_every_step_and_quantity_is_on_the_page():
    text = PAGE.read_text()
    for number, plan in enumerate(PLAN, 1):
        assert f"| {number}. {plan.title} |" in text
    for kind in KINDS.values():
        assert f"| {kind.title.split(', left lens')[0].split(', right')[0]} |" in text, kind.title


def test_table_of_results_is_there():
    rows = table_rows(PAGE)
    alone = [row for row in rows if row[0] in ("roll", "rows", "focus", "partition", "gain")]
    assert [row[-1] for row in alone if " of " in row[-1]] == ["5 of 5"] * 5
    assert len([row for row in rows if row[0] == "all at once"]) == 5


def test_wall_of_the_page_is_half_of_the_focus_distance():
    half_m = 0.5 / d3s.Rig.paper_prototype().optics.kappa_dpt
    assert f"{half_m:.2f} m for the prototype" in PAGE.read_text()
    assert half_m == pytest.approx(0.42, abs=0.005)
