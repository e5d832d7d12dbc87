"""The budgets of rooms, counted on a small tree."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import size

PARTS = '''"""A room."""
from dataclasses import dataclass
from d3s.optics import lens

LIMIT, STEPS = 0.5, (1, 7)


@dataclass
class Part:
    """A record."""


def long(a, b, c, d, e, f, g, h, i, j):
    """Ten parameters."""
'''


def test_counts_of_a_room(tmp_path, monkeypatch):
    source = tmp_path / "d3s"
    for name, text in {
        "optics/__init__.py": "",
        "optics/lens.py": "",
        "lab/twin/part.py": PARTS,
    }.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(size, "SOURCE", source)
    rooms = size.count(size.read_modules(source))
    assert rooms["lab/twin"] == {
        "lines": len(PARTS.splitlines()),
        "modules": 1,
        "records": 1,
        "constants": 2,
        "lonely": 0,
        "long": 1,
    }
    assert rooms["optics"]["lonely"] == 1
    budgets = {"rooms": {"lab/twin": dict(rooms["lab/twin"]) | {"long": 0}}, "house": {}}
    monkeypatch.setattr(size, "HOUSE", ())
    over = size.above({"lab/twin": rooms["lab/twin"]}, {}, budgets)
    assert over == ["lab/twin: 1 functions with > 9 parameters, and its budget is 0"]
