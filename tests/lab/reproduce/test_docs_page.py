"""docs/reproduction.md has a row for every item."""

import re

from d3s.lab.reproduce.run import ITEMS
from pages import DOCS

PAGE = (DOCS / "reproduction.md").read_text()


def test_every_item_has_its_row():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| `(\w+)` \|", PAGE, re.MULTILINE)
    told = {name: reference for name, reference, _ in rows}
    modules = {name: f"d3s.lab.reproduce.{module}" for name, _, module in rows}
    assert list(told) == [item.name for item in ITEMS]
    for item in ITEMS:
        # "Fig. 5" for all of its parts.
        assert told[item.name].strip() in item.reference
        assert modules[item.name] == item.run.__module__
