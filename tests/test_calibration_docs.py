"""docs/calibration.md and calibration_results.md: options, limits and tables are the real ones."""

import json
import re
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from d3s.calibrate.verdict import RULES
from d3s.cli import app

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "calibration.md").read_text()
RESULTS_PAGE = (ROOT / "docs" / "calibration_results.md").read_text()
sys.path.insert(0, str(ROOT / "benchmarks"))

import calibration  # noqa: E402


def results(**figures: float) -> dict:
    """Results of two sets; the second has these figures."""
    good = {key: target.limit * 0.5 for key, target in calibration.TARGETS.items()}
    good |= {
        key: target.limit * 1.5
        for key, target in calibration.TARGETS.items()
        if target.sense == ">="
    }
    sets = {"one": good, "two": good | figures}
    return {"sets": {name: {"figures": one, "walls": []} for name, one in sets.items()}}


def line(told: dict, key: str) -> tuple[str, ...]:
    number = list(calibration.TARGETS).index(key)
    return calibration.sheets(told)["figures"].lines[number]


def test_tables_of_the_page_are_those_of_the_results():
    if not calibration.RESULTS.exists():
        pytest.skip("nothing was measured yet")
    told = json.loads(calibration.RESULTS.read_text())
    assert list(told["sets"]) == list(calibration.REPORT_SETS)
    assert calibration.with_sheets(RESULTS_PAGE, calibration.sheets(told)) == RESULTS_PAGE


@pytest.mark.parametrize("key", calibration.TARGETS)
def test_missed_figure_is_not_held(key):
    target = calibration.TARGETS[key]
    worse = target.limit * (0.99 if target.sense == ">=" else 1.01)
    if target.over_sets == "mean":
        worse *= 2
    assert line(results(), key)[-1] == "yes"
    assert line(results(**{key: worse}), key)[-1] == "**no**"
    assert line(results(**{key: float("nan")}), key)[-1] == "**no**"


def test_options_of_the_page_exist():
    command = get_command(app).commands["calibrate"]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    named = set(re.findall(r"(--[a-z][a-z-]+)", PAGE)) - {"--"}
    assert named <= known
    assert {"--report", "--left-lens", "--design", "--fit-ruler", "--force", "--json"} <= named


def test_limits_of_the_page_are_those_of_the_verdict():
    table = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|", PAGE, re.MULTILINE)
    assert table == [(name, f"{rule.good:g}", f"{rule.usable:.3g}") for name, rule in RULES.items()]


def test_make_target_of_the_results_exists_and_writes_them():
    makefile = (ROOT / "Makefile").read_text()
    (recipe,) = re.findall(r"^calibration:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert "--page docs/calibration_results.md" in recipe
    assert "`make calibration`" in RESULTS_PAGE
