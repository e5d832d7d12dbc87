"""Pages of the documentation: their Python runs; commands, names, paths and links exist."""

import functools
import importlib.util
import pkgutil
import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
import typer.main

import d3s
import stereo_cameras
from calibrations import calibration
from d3s import formats
from d3s.cli import app
from d3s.estimate import JointOptions
from d3s.estimate.diagnosis import Cause
from pages import DOCS, ROOT, blocks, commands, python_blocks

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
of_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def words_of(page: Path) -> str:
    return re.sub(r"^( *)```(?!\{eval).*?^\1```", "", page.read_text(), flags=re.M | re.S)


# Python -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    """Folder with all that the pages take for granted."""
    folder = tmp_path_factory.mktemp("pictures")
    cameras = stereo_cameras.RADTAN
    stereo_cameras.write_pictures(cameras, folder / "left.png", folder / "right.png")
    stereo_cameras.write_opencv_stereo(cameras, folder)
    layout = calibration(frame_rows_px=120, frame_cols_px=260)
    d3s.Rig.paper_prototype().replace(calibration=layout).save(folder / "rig.toml")
    noise = np.random.default_rng(0).integers(0, 65536, (122, 376), dtype=np.uint16)
    wall = cv2.GaussianBlur(noise, (0, 0), 2)  # at a disparity of 23 px, which is 1 m
    raw = np.hstack([wall[2:, 248:], wall[:120, 228:360]])
    for name in ("both.png", "raw.png"):
        cv2.imwrite(str(folder / name), raw)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        *("README", "first_depth", "estimator", "estimator_method", "how_good", "files"),
        pytest.param("dense", marks=pytest.mark.slow),
    ],
)
def test_python_of_a_page_runs(name, pictures, tmp_path, monkeypatch):
    shutil.copytree(pictures, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    page = ROOT / "README.md" if name == "README" else DOCS / f"{name}.md"
    for block in python_blocks(page):
        modules = re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)
        if all(importlib.util.find_spec(module) for module in modules):
            exec(compile(block, page.name, "exec"), scope)
    if name == "files":  # what others read is what was written
        np.testing.assert_array_equal(scope["depth_m"], scope["est"].depth_m)
        np.testing.assert_array_equal(scope["sigma_m"], scope["est"].sigma_m)
    assert "est" not in scope or scope["est"].density > 0


# Commands -----------------------------------------------------------------------------------------


@functools.cache
def known_options(*names: str) -> frozenset[str]:
    """Options of a command, of the program too; an unknown command is an error."""
    command = typer.main.get_command(app)
    found = {one for parameter in command.params for one in parameter.opts}
    for name in names:
        command = command.commands[name]
        for parameter in command.params:
            found |= {*parameter.opts, *parameter.secondary_opts}
    return frozenset(found)


@of_every_page
def test_commands_and_options_exist(page):
    groups = {"rig", "evaluate"}
    for _, *words in commands(page):
        names = [word for word in words if not word.startswith("-")]
        if not names or not re.fullmatch("[a-z]+", names[0]):
            continue  # `d3s --help`, `d3s COMMAND`
        depth = 2 if names[0] in groups and len(names) > 1 else 1
        options = {word for word in words if re.match(r"--?[a-z]", word)}
        assert options <= known_options(*names[:depth]), words


@of_every_page
def test_targets_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for name in re.findall(r"(?:^|`)make ([\w-]+)", page.read_text(), re.MULTILINE):
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


# Names, paths and links ---------------------------------------------------------------------------


def is_there(name: str) -> bool:
    """Whether a dotted name can be imported; a field of a record counts."""
    owner, _, field = name.rpartition(".")
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        try:
            return field in getattr(pkgutil.resolve_name(owner), "__annotations__", {})
        except (ImportError, AttributeError):
            return False
    return True


@of_every_page
def test_names_and_paths_exist(page):
    quoted = set(re.findall(r"`([^`\n]+)`", words_of(page)))
    names = {one for one in quoted if re.fullmatch(r"d3s(\.\w+)+", one) and one[4:] != "egg"}
    wrong = [one for one in sorted(names) if not is_there(one)]
    paths = {one for one in quoted if re.match(r"(src|tests|docs|benchmarks)/[\w/.]+(::|$)", one)}
    for path, _, test in (one.partition("::") for one in sorted(paths)):
        if not (ROOT / path).exists():
            wrong.append(path)
        elif test and f"def {test}(" not in (ROOT / path).read_text():
            wrong.append(f"{path}::{test}")
    assert not wrong


def headings(page: Path) -> set[str]:
    """Anchors of a page, as GitHub and MyST make them."""
    lines = re.findall(r"^#+ (.*)$", words_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


@of_every_page
def test_links_lead_somewhere(page):
    for path, anchor in re.findall(r"\]\(([\w/.]*)(?:#([\w-]+))?\)", words_of(page)):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in headings(target), f"{path}#{anchor}"


# Tables -------------------------------------------------------------------------------------------


def test_estimator_page_has_every_flag_cause_and_option():
    page = (DOCS / "estimator.md").read_text()
    rows = [f"| {int(flag)} | `{flag.name}` | {flag.__doc__} |" for flag in d3s.Flag]
    rows += [f"| {cause} |" for cause in Cause]
    rows += [f"| `{name}` |" for name in JointOptions.model_fields]
    assert [row for row in rows if row not in page] == []


def test_files_page_has_every_format():
    page = (DOCS / "files.md").read_text()
    rows = [one.name.replace(" or ", ", ") for one in formats.IMAGE_FORMATS]
    rows += [
        ", ".join(f"`{suffix}`" for suffix in one.suffixes) for one in formats.FORMATS if one.depth
    ]
    assert [row for row in rows if f"\n| {row} |" not in page] == []


def test_example_of_the_rig_page_is_a_rig(tmp_path):
    text, lenses = (text for language, text in blocks(DOCS / "rig.md") if language == "toml")
    (tmp_path / "rig.toml").write_text(f"{text}\n{lenses}")
    rig = d3s.Rig.load(tmp_path / "rig.toml")
    assert rig.calibration.lenses is not None
    rig.save(tmp_path / "again.toml")
    assert d3s.Rig.load(tmp_path / "again.toml") == rig
