"""benchmarks/speed.py measures every figure, and no missed target counts as met."""

import json
import math
import re
import sys
from dataclasses import replace

import pytest

import d3s
from pages import ROOT, python_blocks

sys.path.insert(0, str(ROOT / "benchmarks"))

import fresh
import measures
import speed
import workloads
from figures import TARGETS, Row, shown_time
from sheets import Sheet, with_parts, write_parts
from speed_page import chart, parts, sheets
from timing import Work, best_seconds, race

GUIDE = ROOT / "docs" / "speed.md"
RESULTS_PAGE = ROOT / "docs" / "speed_results.md"
ASKED = [key for key, target in TARGETS.items() if target.sense is not None]
TINY = replace(
    workloads.QUICK,
    frame=(100, 240),
    tile=(50, 120),
    numbers=(32, 48),
    counts=(4, 8),
    joint_oracle=(60, 160),
    consensus_oracle=(40, 160),
    rounds=1,
    budget_s=0.0,
)


# Rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ASKED)
def test_missed_target_is_not_held(key):
    target = TARGETS[key]
    worse = -1e-6 if target.sense == ">=" else 1e-6
    missed = Row(key=key, measured=target.limit + worse)
    assert missed.held is False
    assert missed.as_json()["held"] is False
    assert "yes" not in missed.cells()
    assert Row(key=key, measured=target.limit - worse).held is True
    assert Row(key=key, measured=target.limit).held is (target.sense != "<")


@pytest.mark.parametrize("key", ASKED)
def test_nan_meets_no_target(key):
    assert Row(key=key, measured=math.nan).held is False
    assert Row(key=key, measured=None).held is None
    assert "yes" not in Row(key=key, measured=None).cells()


def test_held_is_computed_again_not_read():
    table = Row(key="sgbm", measured=1.0).as_json() | {"held": True}
    assert Row.from_json(table).held is False


def test_targets_by_hand():
    asked = {key: TARGETS[key].asked for key in ASKED}
    assert asked == {
        "sgbm": ">= 3 x",
        "joint_oracle": ">= 50 x",
        "consensus_oracle": ">= 50 x",
        "joint_same": ">= 99.9 %",
        "joint_rest": "<= 1 steps",
        "consensus_same": ">= 99.9 %",
        "consensus_rest": "<= 1 steps",
        "memory": "< 400 MB",
        "pixels": "<= 15 %",
        "candidates": "< 1",
        "threads": ">= 1.7 x",
        "warm_call": "< 1.5 s",
        "import": "< 0.3 s",
        "first_ever": "< 30 s",
        "first_ever_line": ">= 1",
        "half_frame": "<= 0.55",
        "half_options": "<= 0.5",
    }


def test_times_have_three_digits():
    times = (0.00123, 0.0456, 0.789, 1.234, 12.34, 123.4, None)
    words = ["1.23 ms", "45.6 ms", "789 ms", "1.23 s", "12.3 s", "123 s", ""]
    assert [shown_time(one) for one in times] == words


# Timing -------------------------------------------------------------------------------------------


def test_contenders_take_turns():
    order: list[str] = []
    works = {
        name: Work(lambda name=name: order.append(name), lambda: order.append("set"))
        for name in "ab"
    }
    best = race(works, rounds=2)
    assert order == ["set", "a", "set", "b"] * 3  # the first round is to warm up
    assert list(best) == ["a", "b"]
    assert all(0 <= seconds < 1 for seconds in best.values())
    assert len(best_seconds(list, dict, repeats=2)) == 2


def test_slow_contenders_have_fewer_turns():
    count: list[int] = []
    race({"one": Work(lambda: count.append(1))}, rounds=50, least=3, budget_s=0.0, warm=False)
    assert len(count) == 3


# All of it, in small ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results() -> dict:
    """A run on tiny frames; what needs new processes, and compiles, has figures that miss."""
    patch = pytest.MonkeyPatch()
    calls = fresh.FirstCalls(ever_s=99.0, said=(), warm_s=9.0, import_s=9.0)
    memory = fresh.Memory(peak=999_000_000, peak_by_rusage=999_000_000, kept=1)
    patch.setattr(fresh, "first_calls", lambda *_: calls)
    patch.setattr(fresh, "memory", lambda *_: memory)
    with patch.context():
        given = speed.rounded(speed.measured(TINY))
    patch.undo()
    return json.loads(json.dumps(given))


def test_json_has_every_row(results):
    assert [row["key"] for row in results["rows"]] == list(TARGETS)
    for row in results["rows"]:
        assert row["held"] == Row.from_json(row).held, row
    missed = {row["key"] for row in results["rows"] if row["held"] is False}
    assert missed >= {"memory", "warm_call", "import", "first_ever", "first_ever_line"}
    assert results["commit"]
    assert results["machine"]["limits"]["copy_gb_s"]["all"] > 0


def test_tiny_frame_agrees_with_the_oracle(results):
    assert results["agreement"]["joint"]["same"] >= 0.99


def test_stages_add_up(results):
    stages = results["stages"]
    assert {"search", "rest"} <= set(stages["stages_s"])
    assert sum(stages["stages_s"].values()) == pytest.approx(stages["whole_s"], rel=1e-3)


def test_everything_can_be_shown(results, capsys):
    speed.show(results, speed.wide_console())
    shown = capsys.readouterr().out
    assert all(sheet.title.split(",")[0] in shown for sheet in sheets(results).values())
    assert "left[a:b]" in shown  # brackets are not taken for colours
    assert "`" not in shown
    assert len(chart(results).axes) == 2


def test_page_takes_no_quick_results(results):
    with pytest.raises(SystemExit, match="--quick"):
        parts(results | {"effort": "quick"})


def test_results_go_to_json_page_and_chart(results, tmp_path, capsys):
    (tmp_path / "speed.json").write_text(json.dumps(results | {"effort": "default"}))
    pages = [tmp_path / page.name for page in (GUIDE, RESULTS_PAGE)]
    for page in pages:
        page.write_text((GUIDE.parent / page.name).read_text())
    words = ["--read", "--page", *map(str, pages)]
    for name, suffix in (("json", "json"), ("chart", "png")):
        words += [f"--{name}", str(tmp_path / f"speed.{suffix}")]
    speed.main(words)
    texts = [page.read_text() for page in pages]
    assert " 100 x 240 pixels" in texts[0]
    assert "| 100 x 240 " in texts[1]
    assert (tmp_path / "speed.png").stat().st_size > 1000
    speed.main(words)
    assert [page.read_text() for page in pages] == texts
    assert "measured in" in capsys.readouterr().out


@pytest.mark.slow
def test_new_processes_are_measured():
    pair = workloads.simulated(workloads.SCENE, (200, 300))
    rows, details = measures.in_new_processes(pair, TINY)
    figures = {row.key: row.measured for row in rows}
    assert figures["first_ever"] > figures["warm_call"] > figures["import"] > 0
    assert 0 < figures["memory"] < 1000
    assert set(details) == {"memory", "first_calls"}


# The page -----------------------------------------------------------------------------------------


def test_tables_go_between_the_marks():
    page = "a\n<!-- speed: x -->\nold\n<!-- end of x -->\nb"
    changed = with_parts(page, {"x": "new"})
    assert changed == "a\n<!-- speed: x -->\n\nnew\n\n<!-- end of x -->\nb"
    assert with_parts(changed, {"x": "new"}) == changed
    with pytest.raises(SystemExit):
        with_parts(page, {"y": "new"})


def test_each_table_goes_to_the_page_that_has_its_marks(tmp_path):
    for name in "ab":
        marks = f"<!-- speed: {name} -->\n<!-- end of {name} -->"
        (tmp_path / f"{name}.md").write_text(marks)
    pages = [tmp_path / "a.md", tmp_path / "b.md"]
    write_parts(pages, {"a": "one", "b": "two"})
    assert "one" in pages[0].read_text()
    assert "two" in pages[1].read_text()
    before = [page.read_text() for page in pages]
    with pytest.raises(SystemExit, match="c"):
        write_parts(pages, {"a": "new", "c": "three"})
    assert [page.read_text() for page in pages] == before


def test_markdown_is_even():
    text = Sheet("t", ("what", "n"), [("`a`", "1"), ("longer", "22")]).as_markdown()
    assert text.splitlines() == [
        "| what   |   n |",
        "|--------|----:|",
        "| `a`    |   1 |",
        "| longer |  22 |",
    ]


def test_numbers_of_the_pages_are_those_of_the_results(tmp_path):
    copies = [tmp_path / page.name for page in (GUIDE, RESULTS_PAGE)]
    for copy, page in zip(copies, (GUIDE, RESULTS_PAGE), strict=True):
        copy.write_text(page.read_text())
    write_parts(copies, parts(json.loads(speed.RESULTS.read_text())))
    assert [copy.read_text() for copy in copies] == [GUIDE.read_text(), RESULTS_PAGE.read_text()]


def test_reach_of_a_region_is_that_of_the_method():
    optics = d3s.Rig.paper_prototype().optics
    reach, shift = map(int, re.search(r"reach, shift = (\d+), (\d+)", GUIDE.read_text()).groups())
    # Half the largest window on cells of two pixels, and three sigma of the Gaussian before it.
    assert reach == 29 + 3
    assert shift == pytest.approx(float(optics.disparity_px(0.25)), abs=2)
    assert reach % 2 == shift % 2 == 0


def test_python_of_the_page_runs():
    names: dict[str, object] = {}
    for code in python_blocks(GUIDE):
        exec(compile(code, "speed.md", "exec"), names)
    assert set(names["est"].timings_s) >= {"search"}
    assert names["depth_m"].shape == (80, 150)
