"""docs/calibration.md: its options exist, and its limits are those of the verdict."""

import re

from typer.main import get_command

from d3s.calibrate.verdict import RULES
from d3s.cli import app
from pages import DOCS

PAGE = (DOCS / "calibration.md").read_text()


def test_options_of_the_page_exist():
    command = get_command(app).commands["calibrate"]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    named = set(re.findall(r"(--[a-z][a-z-]+)", PAGE)) - {"--"}
    assert named <= known


def test_limits_of_the_page_are_those_of_the_verdict():
    table = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|", PAGE, re.MULTILINE)
    assert table == [(name, f"{rule.good:g}", f"{rule.usable:.3g}") for name, rule in RULES.items()]
