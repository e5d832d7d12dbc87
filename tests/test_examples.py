"""Every example of a docstring runs, and the names that people use first have one."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import d3s

SOURCE = Path(d3s.__file__).parent
MODULES = [
    ".".join(("d3s", *path.relative_to(SOURCE).with_suffix("").parts))
    for path in sorted(SOURCE.rglob("*.py"))
    if path.name != "__init__.py" and "\n    >>> " in path.read_text()
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    result = doctest.testmod(import_module(module), optionflags=doctest.REPORT_NDIFF)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    "name",
    [
        "estimate",
        "Rig",
        "DepthMap",
        "simulate",
        "calibrate",
        "load_pair",
        "Plane",
        "TiltedPlane",
        "Layered",
        "Texture",
        "Photo",
        "Sensor",
        "JointOptions",
        "Optics",
    ],
)
def test_name_has_an_example(name):
    value = getattr(d3s, name)
    text = inspect.getdoc(value.__call__ if inspect.ismodule(value) else value)
    examples = text.partition("\nExamples\n--------\n")[2]
    assert "d3s." in examples
    assert len(doctest.DocTestParser().get_examples(examples)) > 1
