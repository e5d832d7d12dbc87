"""Data flows one way: the table of docs/architecture.md, held against imports and module names."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "d3s"


def _names(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


ROW = re.compile(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|([^|]*)\|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "architecture.md").read_text())
ALLOWED = {
    package: _names(imports) if imports != "everything" else None for package, imports, _ in ROWS
}
LOADED_BY_NAME = {package: _names(loaded) for package, _, loaded in ROWS}
MODULE_NAME = re.compile(r"d3s(\.\w+)+\.?")
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__"
)


def _package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_packages(source: str) -> set[str]:
    """Packages of d3s that a module imports, wherever in the module it does so."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError("relative imports hide the direction: write them in full")
            module = node.module or ""
            names = (
                [f"{module}.{alias.name}" for alias in node.names] if module == "d3s" else [module]
            )
        for name in names:
            parts = name.split(".")
            if parts[0] == "d3s":
                found.add(parts[1] if len(parts) > 1 else "d3s")
    return found


def packages_named(source: str) -> set[str]:
    """Packages of d3s whose modules a module names in string literals, to load them later."""
    texts = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    names = [text.rstrip(".").split(".")[1:] for text in texts if MODULE_NAME.fullmatch(text)]
    return {parts[0] for parts in names if _is_module(parts)}


def _is_module(parts: list[str]) -> bool:
    path = SOURCE.joinpath(*parts)
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_loaded_by_name_are_declared(path):
    package, allowed = _package(path), ALLOWED[_package(path)]
    if allowed is not None:
        hidden = packages_named(path.read_text()) - allowed - LOADED_BY_NAME[package] - {package}
        assert not hidden, f"{package} loads {sorted(hidden)} by name, which the table does not say"


def test_every_declared_lazy_dependency_is_used():
    for package, declared in LOADED_BY_NAME.items():
        paths = [path for path in MODULES if _package(path) == package]
        used = set().union(*(packages_named(path.read_text()) for path in paths))
        assert declared <= used, f"{package} does not load {sorted(declared - used)} by name"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_follow_the_direction(path):
    package = _package(path)
    assert package in ALLOWED, f"{package} has no row in docs/architecture.md"
    allowed = ALLOWED[package]
    if allowed is not None:
        wrong = imported_packages(path.read_text()) - allowed - {package}
        assert not wrong, f"{package} may not import {sorted(wrong)}"


def test_the_table_itself_has_one_direction():
    seen: set[str] = set()
    for package, imports in ALLOWED.items():
        if imports is not None:
            assert imports <= seen, f"{package} would import what stands below it"
        seen.add(package)


def test_every_row_is_a_package():
    assert set(ALLOWED) == {_package(path) for path in MODULES}


def test_the_check_sees_imports():
    source = "import d3s.rig\nfrom d3s.optics import lens\ndef f():\n    from d3s import cli\n"
    assert imported_packages(source) == {"rig", "optics", "cli"}
    assert imported_packages("import d3s\nimport numpy") == {"d3s"}
    with pytest.raises(ValueError, match="relative"):
        imported_packages("from . import lens")


def test_the_check_sees_module_names_in_strings():
    source = 'a = {"bm": Method("d3s.peers.opencv", "estimate_bm")}\nb = f"d3s.rig.{name}"\n'
    assert packages_named(source) == {"peers", "rig"}
    assert packages_named('"""Uses d3s.peers.opencv."""\n"d3s.nowhere.at_all"\n"d3s"') == set()
