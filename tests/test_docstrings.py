"""Docstrings: parameters of exported functions, first lines, and lists of modules."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import d3s

SOURCE = Path(d3s.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


class Function(NamedTuple):
    """A public function or method with its parameters, without `self` and `cls`."""

    where: str
    owner: str  # class of a method; empty for a function
    parameters: list[str]
    docstring: str


def _functions(path: Path) -> Iterator[Function]:
    tree = ast.parse(path.read_text())
    for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
        if isinstance(owner, ast.ClassDef) and owner.name.startswith("_"):
            continue
        for node in owner.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            arguments = node.args
            names = [
                one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            ]
            if isinstance(owner, ast.ClassDef):
                names = [name for name in names if name not in ("self", "cls")]
            where = f"{path.relative_to(SOURCE)}: {node.name}"
            name = owner.name if isinstance(owner, ast.ClassDef) else ""
            yield Function(where, name, names, ast.get_docstring(node) or "")


def _exported() -> set[str]:
    """Names that packages list in `__all__`: what users call, and what the pages show."""
    names: set[str] = set()
    for path in SOURCE.rglob("__init__.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names |= set(ast.literal_eval(node.value))
    return names


def test_exported_functions_of_three_parameters_document_them():
    exported = _exported()
    missing = [
        one.where
        for path in MODULES
        for one in _functions(path)
        if "cli" not in path.parts  # the docstring of a command is its help text
        and (one.owner or one.where.rpartition(" ")[2]) in exported
        and len(one.parameters) >= 3
        and "Parameters\n-----" not in one.docstring
    ]
    assert not missing, "\n".join(missing)


def _documented(docstring: str) -> set[str]:
    """Names in the Parameters section of a docstring."""
    names: list[list[str]] = []
    for line in docstring.split("Parameters\n----------\n", 1)[1].splitlines():
        if line and set(line) == {"-"}:  # the line below the title of the next section
            names.pop()
            break
        if line and not line.startswith(" "):
            names.append([name.strip(" *`") for name in line.split(":")[0].split(",")])
    return {name for several in names for name in several}


def test_documented_parameters_are_those_of_the_signature():
    wrong = []
    for path in MODULES:
        for one in _functions(path):
            if "Parameters\n-----" in one.docstring:
                missing = set(one.parameters) - _documented(one.docstring)
                wrong += [f"{one.where}: {name} is not documented" for name in sorted(missing)]
    assert not wrong, "\n".join(wrong)


def test_first_lines_name_the_thing():
    wrong = []
    for path in MODULES:
        tree = ast.parse(path.read_text())
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        for node in (node for node in ast.walk(tree) if isinstance(node, kinds)):
            first = (ast.get_docstring(node) or "").split("\n")[0]
            if first.split(" ")[0] in ("What", "Whatever", "Who", "How"):
                wrong.append(f"{path.relative_to(SOURCE)}: {first}")
    assert not wrong, "\n".join(wrong)


def test_packages_begin_with_a_paragraph_and_list_their_modules():
    for init in sorted(SOURCE.rglob("__init__.py")):
        if init.parent == SOURCE:
            continue
        docstring = ast.get_docstring(ast.parse(init.read_text())) or ""
        assert len(docstring.split()) >= 6, init
        modules = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        missing = {module for module in modules if module not in docstring}
        assert not missing, f"{init.relative_to(SOURCE)} does not list {sorted(missing)}"
