"""Data flows one way: the table of docs/architecture.md, held against the imports."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "d3s"

ROW = re.compile(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", re.MULTILINE)
ALLOWED = {
    package: set(re.findall(r"`(\w+)`", imports)) if imports != "everything" else None
    for package, imports in ROW.findall((ROOT / "docs" / "architecture.md").read_text())
}
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
