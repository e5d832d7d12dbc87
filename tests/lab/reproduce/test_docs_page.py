"""docs/reproduction.md and its results say what the code says."""

import re
import runpy
from pathlib import Path

import pytest

from d3s.lab.reproduce.not_reproduced import NOT_REPRODUCED
from d3s.lab.reproduce.registry import ITEMS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "reproduction.md").read_text()
RESULTS = (DOCS / "reproduction_results.md").read_text()
SCRIPT = runpy.run_path(str(DOCS / "reproduction_table.py"))


def test_every_item_has_its_row():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| `(\w+)` \|", PAGE, re.MULTILINE)
    told = {name: reference for name, reference, _ in rows}
    modules = {name: f"d3s.lab.reproduce.{module}" for name, _, module in rows}
    assert list(told) == [item.name for item in ITEMS]
    for item in ITEMS:
        # "Fig. 5" for all of its parts.
        assert told[item.name].strip() in item.reference
        assert modules[item.name] == item.run.__module__


def test_what_cannot_be_made_is_told():
    for one in NOT_REPRODUCED:
        assert f"| {one.reference} | {one.what} | {one.why} |" in PAGE


def test_the_table_goes_between_its_marks_and_replaces_an_earlier_one():
    rows = [
        {
            "item": "zici",
            "reference": "Fig. S1",
            "quick": "False",
            "what": "depth",
            "paper": "1",
            "ours": "2",
            "same_conditions": "True",
            "why": "so",
            "agrees": "",
        }
    ]
    table = SCRIPT["as_markdown"](rows)
    assert table.splitlines()[2] == "| Fig. S1 | depth | 1 | 2 | yes | – |"
    once = SCRIPT["with_table"](RESULTS, table)
    assert once.count(table) == 1
    assert SCRIPT["with_table"](once, table) == once
    with pytest.raises(SystemExit, match="must have"):
        SCRIPT["with_table"]("nothing", table)
    assert "| Fig. S1, quick |" in SCRIPT["as_markdown"]([rows[0] | {"quick": "True"}])


def test_rows_of_items_that_were_not_run_stay():
    heading = ["| in the paper | what |", "| --- | --- |"]
    table = [*heading, "| Fig. 1 | a |", "| Fig. 7, quick | b |", "| Fig. 7, quick | c |"]
    page = SCRIPT["with_table"](RESULTS, "\n".join([*table, "| Fig. S1 | d |"]))
    new = "\n".join([*heading, "| Fig. 7 | e |", "| Fig. S2 | f |"])
    found = SCRIPT["with_others"](page, new).splitlines()
    wanted = ["| Fig. 1 | a |", "| Fig. 7 | e |", "| Fig. S1 | d |", "| Fig. S2 | f |"]
    assert found == [*heading, *wanted]


def test_lenses_stand_side_by_side(tmp_path):
    cells = ("range", "mae_cm", "far_mae_cm", "share")
    names = ["method", *(f"{lens}_{cell}" for lens in ("perfect", "typical") for cell in cells)]
    values = ("bm", "0.25 to 1.97 m", 0.1234, 0.2, 1.0, "no range", 2.5, "", 0.456)
    path = tmp_path / "lenses.csv"
    path.write_text(",".join(names) + "\n" + ",".join(map(str, values)) + "\n")
    headings, _, line = SCRIPT["lens_table"](path).splitlines()
    assert line == "| `bm` | 0.25 to 1.97 m | 0.12 | 0.20 | 100 | no range | 2.50 | nan | 46 |"
    assert headings.count("|") == line.count("|")
