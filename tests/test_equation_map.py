"""The tests that docs/reproduction.md names fail if the function of their row is wrong.

The result of each function is changed by one per cent, and the tests of its row run with the
changed function. They must fail.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reproduction.md").read_text()

ROWS = [
    (function, test)
    for line in PAGE.splitlines()
    for function in re.findall(r"`(d3s\.[\w.]+)`", line)
    for test in re.findall(r"`(tests/[\w/.]+::\w+)`", line)
]

# Numbers of the paper's equations: 18 in the text, 11 in the supplement.
EQUATIONS = [*map(str, range(1, 19)), *(f"S{n}" for n in range(1, 12))]


def test_every_equation_has_its_function_and_its_test():
    rows = re.findall(r"^\| (S?\d+) \| .+ \| `d3s\.[^|]+ \| [^|]+::[^|]+ \|$", PAGE, re.MULTILINE)
    assert rows == EQUATIONS


def test_every_erratum_names_a_test_of_its_own():
    rows = re.findall(r"^\| E(\d+) \| .+ \| (e\d\d) \|$", PAGE, re.MULTILINE)
    assert rows == [(str(n), f"e{n:02d}") for n in range(1, len(rows) + 1)]
    tests = (ROOT / "tests" / "physics" / "test_errata.py").read_text()
    assert sorted(set(re.findall(r"^def test_(e\d\d)", tests, re.MULTILINE))) == [
        test for _, test in rows
    ]


def test_every_public_function_of_the_physics_is_used_by_some_test():
    """A formula that no test calls is not checked."""
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    used = set(re.findall(r"\w+", "\n".join(texts)))
    for path in (ROOT / "src" / "d3s" / "optics").glob("*.py"):
        public = set(re.findall(r"^def ([a-z]\w*)\(", path.read_text(), re.MULTILINE))
        assert not public - used, path.name


BENDER = """
import importlib, os, sys
import numpy as np


def bent(value):
    if isinstance(value, tuple):
        parts = [bent(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if hasattr(value, "__dataclass_fields__"):
        from dataclasses import replace
        return replace(value, rate=bent(value.rate))
    if np.asarray(value).dtype == bool:
        return ~np.asarray(value)
    return value * 1.01 + 1e-3


def pytest_collection_finish(session):
    *path, name = os.environ["D3S_BEND"].split(".")
    for length in range(len(path), 0, -1):
        try:
            owner = importlib.import_module(".".join(path[:length]))
            break
        except ModuleNotFoundError:
            continue
    for part in path[length:]:
        owner = getattr(owner, part)
    original = owner.__dict__[name]
    if isinstance(original, property):
        type.__setattr__(owner, name, property(lambda self: bent(original.fget(self))))
        return

    def wrapped(*args, **kwargs):
        return bent(original(*args, **kwargs))

    if isinstance(owner, type):
        type.__setattr__(owner, name, wrapped)
        return
    # Replace the function in every module that imported it, and in tables of functions of tests.
    for module in list(sys.modules.values()):
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if value is original:
                setattr(module, key, wrapped)
            elif isinstance(value, dict):
                for inner, entry in list(value.items()):
                    if isinstance(entry, tuple) and any(part is original for part in entry):
                        value[inner] = tuple(
                            wrapped if part is original else part for part in entry
                        )
"""


@pytest.mark.slow
@pytest.mark.parametrize(("function", "test"), ROWS, ids=lambda value: value.split(".")[-1])
def test_bent_function_fails_its_test(function, test, tmp_path):
    (tmp_path / "bender.py").write_text(BENDER)
    environment = {
        **os.environ,
        "D3S_BEND": function,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "bender", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, test], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1, f"{test} passes with a wrong {function}\n{result.stdout[-2000:]}"
    # The test must fail by an assertion, and not because the changed function raised an error.
    assert "AssertionError" in result.stdout
