"""Lines are a budget: what each room of `src/d3s` has, beside what `tools/size.toml` allows it.

Prints a table of rooms and exits with 1 if one is above its budget; `make lint` runs it. A budget
is raised by the commit that needs it, which says what the lines are for.

    python tools/size.py            the table
    python tools/size.py --quiet    only what is above its budget
    python tools/size.py --set      write today's numbers as the budgets
"""

import ast
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "d3s"
BUDGETS = Path(__file__).with_suffix(".toml")
FLOORS = ("lab", "camera")
RECORD_BASES = {"NamedTuple", "Record", "TypedDict", "Options", "DepthOptions"}
LONG_SIGNATURE = 9  # parameters
COLUMNS = ("lines", "modules", "records", "constants", "lonely", "long")
HEADS = {
    "lines": "lines",
    "modules": "modules",
    "records": "records",
    "constants": "numbers in module constants",
    "lonely": "modules with one importer",
    "long": "functions with > 9 parameters",
}
Rooms = dict[str, Counter[str]]
HOUSE = ("class names", "file names", "test lines", "benchmark lines", "pages", "page words")


@dataclass
class Module:
    """What one file counts."""

    path: Path
    tree: ast.Module
    lines: int
    imports: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """Dotted name of the module."""
        parts = self.path.relative_to(SOURCE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """Room: the package below its floor; `base` for single modules of the core."""
        parts = self.path.relative_to(SOURCE).parts
        if len(parts) > 2 and parts[0] in FLOORS:
            return "/".join(parts[:2])
        return parts[0] if len(parts) > 1 else "base"


def read_modules(source: Path) -> list[Module]:
    """All modules below a folder, with the names that they import."""
    modules = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text()
        modules.append(Module(path, ast.parse(text), len(text.splitlines())))
    names = {module.name for module in modules}
    for module in modules:
        for imported in _imported(module.tree):
            parts = imported.split(".")
            while parts and ".".join(parts) not in names:
                parts.pop()
            if parts:
                module.imports.add(".".join(parts))
    return modules


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_record(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass, a named tuple, or one of our validated records."""
    bases = {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
    marks = {ast.unparse(mark).split("(")[0].split(".")[-1] for mark in node.decorator_list}
    return "dataclass" in marks or bool(bases & RECORD_BASES)


def count_constants(tree: ast.Module) -> int:
    """Numbers that were chosen, in assignments at the top of a module: all but 0, 1 and 2."""
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
    ]
    return sum(value not in (0, 1, 2) for value in _numbers(values))


def _numbers(nodes: Iterable[ast.AST]) -> Iterator[float]:
    """Numbers below nodes, but not those in calls."""
    for node in nodes:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node.value  # type: ignore[misc]
        elif not isinstance(node, ast.Call):
            yield from _numbers(ast.iter_child_nodes(node))


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Number of parameters of a function, without `self`."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def count(modules: list[Module]) -> Rooms:
    """Counts of each room, by the columns of the table."""
    importers = Counter(name for module in modules for name in module.imports - {module.name})
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for module in modules:
        room = rooms[module.room]
        nodes = list(ast.walk(module.tree))
        functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        room["lines"] += module.lines
        room["modules"] += 1
        room["records"] += sum(isinstance(n, ast.ClassDef) and is_record(n) for n in nodes)
        room["constants"] += count_constants(module.tree)
        room["lonely"] += module.path.stem != "__init__" and importers[module.name] == 1
        room["long"] += sum(parameters(node) > LONG_SIGNATURE for node in functions)
    return dict(rooms)


def count_house(modules: list[Module]) -> dict[str, int]:
    """Counts of the whole: names with several meanings, tests, benchmarks, pages."""
    classes = Counter(
        node.name
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    files = Counter(m.path.stem for m in modules if m.path.stem != "__init__")
    pages = [p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts]
    return {
        "class names": sum(n > 1 for n in classes.values()),
        "file names": sum(n > 1 for n in files.values()),
        "test lines": _lines(ROOT / "tests"),
        "benchmark lines": _lines(ROOT / "benchmarks"),
        "pages": len(pages),
        "page words": sum(len(page.read_text().split()) for page in pages),
    }


def _lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))


def main() -> int:
    """Print the table; returns 1 if a room is above its budget."""
    modules = read_modules(SOURCE)
    rooms, house = count(modules), count_house(modules)
    if "--set" in sys.argv[1:]:
        BUDGETS.write_text(as_toml(rooms, house))
        return 0
    budgets = tomllib.loads(BUDGETS.read_text())
    too_much = above(rooms, house, budgets)
    if "--quiet" not in sys.argv[1:]:
        print_table(rooms, house, budgets)
    for line in too_much:
        print(f"{line}. Remove some, or raise it in tools/size.toml and say what for.")
    return int(bool(too_much))


def above(rooms: Rooms, house: dict[str, int], budgets: dict[str, Any]) -> list[str]:
    """Sentences about what is above its budget; a room without a row has none."""
    sentences = []
    for room, counts in sorted(rooms.items()):
        most = budgets["rooms"].get(room, {})
        sentences += [
            f"{room}: {counts[name]} {HEADS[name]}, and its budget is {most.get(name, 0)}"
            for name in COLUMNS
            if counts[name] > most.get(name, 0)
        ]
    return sentences + [
        f"{name}: {house[name]}, and the budget is {budgets['house'][name]}"
        for name in HOUSE
        if house[name] > budgets["house"][name]
    ]


def print_table(rooms: Rooms, house: dict[str, int], budgets: dict[str, Any]) -> None:
    """Print counts and budgets of rooms, then of the house."""
    print(f"{'room':<18}" + "".join(f"{name:>16}" for name in COLUMNS))
    for room, counts in sorted(rooms.items()):
        most = budgets["rooms"].get(room, {})
        cells = (f"{counts[name]:>8} /{most.get(name, 0):>6}" for name in COLUMNS)
        print(f"{room:<18}" + "".join(cells))
    totals = [sum(counts[name] for counts in rooms.values()) for name in COLUMNS]
    print(f"{'all':<18}" + "".join(f"{total:>16}" for total in totals))
    for name in HOUSE:
        print(f"{name:<18}{house[name]:>8} /{budgets['house'][name]:>6}")


def as_toml(rooms: Rooms, house: dict[str, int]) -> str:
    """Numbers as the text of the file of budgets."""
    lines = ["# Budgets of rooms, which `make lint` holds: see tools/size.py.", "", "[rooms]"]
    for room in sorted(rooms):
        cells = ", ".join(f"{name} = {rooms[room][name]}" for name in COLUMNS)
        lines.append(f'"{room}" = {{ {cells} }}')
    lines += ["", "[house]", *(f'"{name}" = {house[name]}' for name in HOUSE)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
