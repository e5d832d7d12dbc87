"""Pages of the documentation against the code: tables, names, paths and links."""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

import d3s
from d3s.rig import Calibration, LensMaps, Optics, Provenance, RawCamera, Rig, Stereo
from pages import DOCS, ROOT, table_rows

sys.path.insert(0, str(DOCS))

from written_signatures import written_signature

# Numbers of the paper's equations: 18 in the text, 11 in the supplement.
EQUATIONS = [str(n) for n in range(1, 19)] + [f"S{n}" for n in range(1, 12)]


def _functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _resolve(name: str) -> object:
    """Object of a dotted name, through modules and classes; of a field, its annotation."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            fields = getattr(found, "__annotations__", {})
            found = fields[attribute] if attribute in fields else getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


EQUATION_PAGE = (DOCS / "reproduction.md").read_text()


def test_every_equation_has_its_row():
    rows = {
        row[0]: row
        for row in table_rows(DOCS / "reproduction.md")
        if re.fullmatch(r"S?\d+", row[0])
    }
    assert list(rows) == EQUATIONS
    for number, row in rows.items():
        assert row[2].startswith("`d3s."), number
        assert "::" in row[3], number


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(d3s\.[\w.]+)`", EQUATION_PAGE))))
def test_functions_of_the_equation_map_exist(name):
    assert _resolve(name) is not None


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w/.]+::\w+)`", EQUATION_PAGE))))
def test_tests_of_the_equation_map_exist(name):
    path, function = name.split("::")
    assert function in _functions_of(ROOT / path)


def _names_used(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_every_public_function_of_the_physics_is_used_by_some_test():
    """A formula that no test calls is not checked."""
    used = set().union(*(_names_used(path) for path in (ROOT / "tests").rglob("test_*.py")))
    for path in sorted((ROOT / "src/d3s/optics").glob("*.py")):
        module = importlib.import_module(f"d3s.optics.{path.stem}".removesuffix(".__init__"))
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                assert name in used, f"{module.__name__}.{name}"


def test_every_erratum_names_a_test_of_its_own():
    known = _functions_of(ROOT / "tests/physics/test_errata.py")
    tested = sorted({name[5:8] for name in known if name.startswith("test_")})
    rows = [row for row in table_rows(DOCS / "reproduction.md") if re.fullmatch(r"E\d+", row[0])]
    assert [row[0] for row in rows] == [f"E{n}" for n in range(1, len(rows) + 1)]
    assert [row[-1].strip("`") for row in rows] == [f"e{n:02d}" for n in range(1, len(rows) + 1)]
    assert tested == [row[-1].strip("`") for row in rows]
    assert f"[{len(rows)} errata]" in (ROOT / "README.md").read_text()
    assert f"{len(rows)} errata" in (ROOT / "CHANGELOG.md").read_text()


RECORDS = {
    "optics": Optics,
    "calibration": Calibration,
    "calibration.lenses": LensMaps,
    "calibration.provenance": Provenance,
    "stereo": Stereo,
    "stereo.left": RawCamera,
}


def _rule(field: FieldInfo) -> str:
    """Limits of a field in words, if it has simple ones."""
    signs = {"gt": "> {:g}", "ge": ">= {:g}", "lt": "< {:g}", "le": "<= {:g}"}
    return ", ".join(
        words.format(getattr(limit, name))
        for limit in field.metadata
        for name, words in signs.items()
        if getattr(limit, name, None) is not None
    )


def test_page_of_the_rig_file_has_every_field_with_its_rule():
    rows = {(row[0], row[1]): row[2:] for row in table_rows(DOCS / "rig.md") if len(row) == 4}
    expected = {
        (f"`{table}`", f"`{name}`"): [_rule(field), field.description]
        for table, record in RECORDS.items()
        for name, field in record.model_fields.items()
        if name not in ("lenses", "provenance", "left", "right")
    }
    missing = {place: cells for place, cells in expected.items() if rows.get(place) != cells}
    assert not missing, "\n".join(f"| {' | '.join((*p, *c))} |" for p, c in missing.items())
    assert set(rows) - set(expected) == {("table", "key"), ("---", "---")} & set(rows)


def test_example_of_the_rig_page_is_a_rig(tmp_path):
    text, lenses = re.findall(r"```toml\n(.*?)```", (DOCS / "rig.md").read_text(), re.DOTALL)
    text = text.replace("[calibration.provenance]\n", f"{lenses}\n[calibration.provenance]\n", 1)
    (tmp_path / "rig.toml").write_text(text)
    rig = Rig.load(tmp_path / "rig.toml")
    assert rig.calibration is not None
    rig.save(tmp_path / "again.toml")
    saved = (tmp_path / "again.toml").read_text()
    assert re.sub(r"^#.*\n", "", saved, flags=re.MULTILINE).strip() == text.strip()


@pytest.mark.parametrize("page", ["glossary.md", "architecture.md"])
def test_names_and_paths_of_a_page_exist(page):
    """`d3s.name` in backticks can be imported, and every path in backticks exists."""
    quoted = set(re.findall(r"`([^`\n]+)`", (DOCS / page).read_text()))
    names = {one for one in quoted if re.fullmatch(r"d3s(\.\w+)+", one)}
    paths = {one for one in quoted if re.match(r"(src|tests|docs|benchmarks)/", one)}
    wrong = [one for one in sorted(names) if not _is_there(one)]
    wrong += [one for one in sorted(paths) if not (ROOT / one.partition("::")[0]).exists()]
    assert not wrong


def _is_there(name: str) -> bool:
    try:
        _resolve(name)
    except (ModuleNotFoundError, AttributeError):
        return False
    return True


def test_signatures_show_types_as_written():
    def written(what: str, obj: object) -> str:
        text, returns = written_signature(None, what, "", obj, None, "()", None)
        return f"{text} -> {returns}"

    methods = importlib.import_module("d3s.estimate.methods")
    assert "rig: ~d3s.rig.rig.Rig" in written("function", methods.estimate)
    assert written("function", methods.estimate).endswith("-> ~d3s.estimate.depth_map.DepthMap")
    fields = written("class", d3s.DepthMap)
    assert "depth_m: Image," in fields
    assert "ndarray" not in fields
    assert "timings_s: dict[str, float] = dict()" in fields
    load = written("method", d3s.DepthMap.load)
    assert load == "(path: str | os.PathLike[str]) -> ~d3s.estimate.depth_map.DepthMap"


def test_links_between_pages_lead_somewhere():
    pages = [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for page in pages:
        for link in re.findall(r"\]\(([\w/.]+\.md)\)", page.read_text()):
            assert (page.parent / link).is_file(), f"{page.name}: {link}"


def test_numbers_of_the_conventions_page():
    optics = Rig.paper_prototype().optics
    page = (DOCS / "conventions.md").read_text()
    expected = {
        "`baseline_m`": f"{1e3 * optics.baseline_m:.2f} mm",
        "`sensor_distance_m`": f"{1e3 * optics.sensor_distance_m:.1f} mm",
        "`optical_power_right_dpt`": (
            f"{optics.optical_power_left_dpt}, {optics.optical_power_right_dpt} 1/m"
        ),
        "`aperture_radius_m`": f"{1e3 * optics.aperture_radius_m:.0f} mm",
        "`pixel_pitch_m`": f"{1e6 * optics.pixel_pitch_m:.0f} µm",
        "`aperture_gaussian_width`": f"{optics.aperture_gaussian_width}",
        "`disparity_offset_px`": f"{optics.disparity_offset_px:.0f}",
        "`alpha_px2_m`": f"{optics.alpha_px2_m:.3f} px² m",
        "`kappa_dpt`": f"{optics.kappa_dpt:.3f} 1/m",
    }
    for name, value in expected.items():
        assert re.search(rf"{re.escape(name)} \| {re.escape(value)} \|", page), (name, value)
