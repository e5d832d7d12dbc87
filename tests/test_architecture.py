"""Data flows one way: the table of docs/architecture.md, held against imports and names."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "d3s"
FLOORS = ("lab", "camera")
ROW = re.compile(r"^\| `([\w.]+)` \|[^|]*\| ([^|]*) \|$", re.MULTILINE)
ROOTS = [SOURCE, *(SOURCE / floor for floor in FLOORS)]
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if path.parent not in ROOTS or path.stem != "__init__"
)


def _allowed() -> dict[str, set[str] | None]:
    """Packages that each package may import, by the table; None for everything.

    "the core" stands for all packages above the first of another floor, "lab" for all of the lab.
    """
    allowed: dict[str, set[str] | None] = {}
    core: set[str] = set()
    for package, cell in ROW.findall((ROOT / "docs" / "architecture.md").read_text()):
        names = set(re.findall(r"`([\w.]+)`", cell))
        if "the core" in cell:
            names |= core
        if cell == "everything":
            allowed[package] = None
        else:
            allowed[package] = names
        if not package.startswith(FLOORS):
            core.add(package)
    return allowed


ALLOWED = _allowed()
CORE = [
    path
    for path in MODULES
    if path.relative_to(SOURCE).parts[0] not in (*FLOORS, "cli", "__main__.py")
]


def _package(parts: tuple[str, ...]) -> str:
    """Package of the parts of a module below d3s: with its floor, unless it is the core's."""
    if not parts:
        return "d3s"
    return ".".join(parts[:2]) if parts[0] in FLOORS else parts[0]


def _package_of(path: Path) -> str:
    return _package(path.relative_to(SOURCE).with_suffix("").parts)


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
            is_root = module in ("d3s", *(f"d3s.{floor}" for floor in FLOORS))
            names = [f"{module}.{alias.name}" for alias in node.names] if is_root else [module]
        found |= {_package(tuple(n.split(".")[1:])) for n in names if n.split(".")[0] == "d3s"}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_follow_the_direction(path):
    package = _package_of(path)
    assert package in ALLOWED, f"{package} has no row in docs/architecture.md"
    allowed = ALLOWED[package]
    if allowed is not None:
        wrong = imported_packages(path.read_text()) - allowed - {package}
        assert not wrong, f"{package} may not import {sorted(wrong)}"


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_core_names_no_other_floor(path):
    """Also not in a string that is imported later: what it needs registers itself."""
    tree = ast.parse(path.read_text())
    documented = ast.Module, ast.ClassDef, ast.FunctionDef
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    named = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
        and re.search(r"\bd3s\.(lab|camera)\b", node.value)
    ]
    assert not named


def test_the_table_itself_has_one_direction():
    seen: set[str] = set()
    for package, imports in ALLOWED.items():
        if imports is not None:
            assert imports <= seen, f"{package} would import what stands below it"
        seen.add(package)


def test_every_row_is_a_package():
    assert set(ALLOWED) == {_package_of(path) for path in MODULES}
