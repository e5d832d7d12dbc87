"""Docstrings: public names have one, its parameters are those of the code, its examples run."""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import d3s

SOURCE = Path(d3s.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
WITH_EXAMPLES = [
    ".".join(("d3s", *path.relative_to(SOURCE).with_suffix("").parts))
    for path in MODULES
    if path.name != "__init__.py" and "\n    >>> " in path.read_text()
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    result = doctest.testmod(import_module(module), optionflags=doctest.REPORT_NDIFF)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", sorted(set(d3s.__all__) - {"__version__"}))
def test_public_names_have_docstrings(name):
    value = getattr(d3s, name)
    text = inspect.getdoc(value.__call__ if inspect.ismodule(value) else value) or ""
    assert text
    needed = ("estimate", "Rig", "DepthMap", "simulate", "calibrate", "load_pair", "Texture")
    assert name not in needed or "\nExamples\n--------\n" in text


def _functions() -> Iterator[tuple[str, str, set[str], str]]:
    """Public functions: file, name or that of the class, parameters, and their section."""
    for path in MODULES:
        tree = ast.parse(path.read_text())
        for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
            for node in owner.body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    names = {one.arg for one in every} - {"self", "cls"}
                    text = (ast.get_docstring(node) or "").partition("Parameters\n----------\n")[2]
                    file = str(path.relative_to(SOURCE))
                    yield f"{file}: {node.name}", getattr(owner, "name", node.name), names, text


def test_public_functions_of_three_parameters_document_them():
    missing = [
        where
        for where, name, parameters, section in _functions()
        if not where.startswith("cli/")  # the docstring of a command is its help text
        and (name in d3s.__all__ and len(parameters) >= 3 and not section)
    ]
    assert not missing, "\n".join(missing)


def test_documented_parameters_are_those_of_the_signature():
    wrong = []
    for where, _, parameters, text in _functions():
        section = re.split(r"\n\w+\n-{3,}\n", text)[0]
        lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
        told = {name.strip(" *`") for line in lines for name in line.split(":")[0].split(",")}
        wrong += [f"{where}: {name}" for name in sorted(parameters - told) if section]
    assert not wrong, "\n".join(wrong)
