"""Docstrings: public names have one, its parameters are those of the code, its examples run."""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

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


class Function(NamedTuple):
    """A public function, or a method of a class, as the source has it."""

    where: str
    name: str  # of its class, if it is a method
    parameters: set[str]
    section: str  # what its docstring says of the parameters


def _functions() -> Iterator[Function]:
    for path in MODULES:
        tree = ast.parse(path.read_text())
        for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
            for node in owner.body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    section = (ast.get_docstring(node) or "").partition("Parameters\n----------\n")
                    yield Function(
                        f"{path.relative_to(SOURCE)}: {node.name}",
                        getattr(owner, "name", node.name),
                        {one.arg for one in every} - {"self", "cls"},
                        section[2],
                    )


def test_exported_functions_of_three_parameters_document_them():
    trees = [ast.parse(path.read_text()) for path in SOURCE.rglob("__init__.py")]
    exported = {
        name
        for node in (node for tree in trees for node in tree.body)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    }
    missing = [
        one.where
        for one in _functions()
        if not one.where.startswith("cli/")  # the docstring of a command is its help text
        and one.name in exported
        and len(one.parameters) >= 3
        and not one.section
    ]
    assert not missing, "\n".join(missing)


def test_documented_parameters_are_those_of_the_signature():
    wrong = []
    for one in (one for one in _functions() if one.section):
        section = re.split(r"\n\w+\n-{3,}\n", one.section)[0]
        lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
        told = {name.strip(" *`") for line in lines for name in line.split(":")[0].split(",")}
        wrong += [f"{one.where}: {name}" for name in sorted(one.parameters - told)]
    assert not wrong, "\n".join(wrong)
