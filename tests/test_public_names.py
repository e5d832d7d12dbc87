"""Public names of `d3s`, their help, and the cost of the import."""

import subprocess
import sys

import pytest

import d3s


def test_every_public_name_is_there():
    for name in d3s.__all__:
        assert getattr(d3s, name) is not None
    assert set(d3s.__all__) == set(dir(d3s))
    assert d3s.Rig.paper_prototype().name == "paper prototype"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Rigg'"):
        d3s.Rigg  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import d3s", "numpy pydantic scipy matplotlib typer"),
        ("import d3s; d3s.Rig.paper_prototype()", "scipy matplotlib typer sympy"),
        ("import d3s.cli", "numpy scipy matplotlib pydantic"),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement, heavy):
    code = f"{statement}; import sys; print(*[m for m in '{heavy}'.split() if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
