"""The page on files tells the truth: its code runs, and its tables are those of the code."""

import importlib.util
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from calibrations import calibration
from d3s import formats
from d3s.cli import app
from d3s.errors import InputError
from d3s.files import read_image
from d3s.files.codecs import CODECS
from d3s.files.depth_files import read_depth
from pages import DOCS, python_blocks

PAGE = (DOCS / "files.md").read_text()
BLOCKS = python_blocks(DOCS / "files.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All that the page takes for granted."""
    place = tmp_path_factory.mktemp("page")
    layout = calibration(frame_rows_px=120, frame_cols_px=260)
    rig = d3s.Rig.paper_prototype().replace(calibration=layout)
    rig.save(place / "rig.toml")
    frame = np.random.default_rng(0).integers(0, 65536, (120, 260), dtype=np.uint16)
    smooth = cv2.GaussianBlur(frame, (0, 0), 2)
    for name in ("left.png", "right.png", "both.png", "raw.png"):
        cv2.imwrite(str(place / name), smooth)
    return place


@pytest.fixture(scope="module")
def names(folder):
    """The variables that the page has at its end."""
    scope: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in BLOCKS:
            modules = re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)
            if all(importlib.util.find_spec(module) for module in modules):
                exec(compile(block, "files.md", "exec"), scope)
    return scope


def test_code_of_the_page_runs(folder, names):
    est = names["est"]
    np.testing.assert_array_equal(d3s.DepthMap.load(folder / "scene.npz").depth_m, est.depth_m)
    np.testing.assert_array_equal(names["depth_m"], est.depth_m)
    np.testing.assert_array_equal(names["sigma_m"], est.sigma_m)
    assert names["K"][0, 0] == names["focal_length_px"] == 6050
    assert names["unit_m"] == 0.001
    assert names["options"] == est.options.model_dump(mode="json")
    assert (folder / "scene.camera.json").exists()
    np.testing.assert_array_equal(names["ros_depth_m"], est.depth_m)
    assert len(BLOCKS) == 9


@pytest.mark.parametrize(
    "table", [formats.overview_table, formats.image_table, formats.depth_table]
)
def test_tables_of_the_page_are_made_from_the_table_of_formats(table):
    assert f"\n\n{table()}\n\n" in PAGE, f"put the output of d3s.formats.{table.__name__}() there"


def test_table_of_formats_has_every_reader_and_writer():
    assert set(CODECS) == {one.name for one in formats.FORMATS}
    for one in formats.FORMATS:
        codec = CODECS[one.name]
        assert bool(one.image) is (codec.read_image is not None)
        assert bool(one.image_out) is (codec.encode_image is not None)
        assert one.reads_depth is (codec.read_depth is not None)
        assert one.is_points is (codec.encode_points is not None)
        if one is not formats.NPZ:  # which an estimate writes
            assert bool(one.depth) is (codec.encode_depth is not None)


def test_no_two_formats_begin_or_end_alike():
    suffixes = [suffix for one in formats.FORMATS for suffix in one.suffixes]
    magics = [magic for one in formats.FORMATS for magic in one.magics]
    assert len(set(suffixes)) == len(suffixes)
    assert not [
        (one, other)
        for one in magics
        for other in magics
        if one is not other and one.startswith(other)
    ]
    assert all(one.description for one in formats.FORMATS)


def test_errors_and_docstrings_name_every_format(tmp_path):
    (tmp_path / "a").write_text("words")
    with pytest.raises(InputError, match=re.escape(formats.image_names())):
        read_image(tmp_path / "a")
    with pytest.raises(InputError, match=re.escape(formats.depth_names())):
        read_depth(tmp_path / "a")
    for function, names in (
        (read_image, formats.image_names()),
        (d3s.load_pair, formats.image_names()),
        (read_depth, formats.depth_names()),
    ):
        told = " ".join(function.__doc__.split())
        assert names.replace(" or ", " and ") in told


def test_commands_of_the_page_run(folder, names, monkeypatch):
    monkeypatch.chdir(folder)
    cv2.imwrite("theirs.png", np.full((5, 5), 1500, np.uint16))
    (folder / "out").mkdir()
    names["est"].save("out/a_depth.npz")
    commands = re.findall(r"^    d3s (convert .*)$", PAGE, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        words = [
            name
            for word in command.split()
            for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        done = CliRunner().invoke(app, [*words, "--force"])
        assert done.exit_code == 0, done.output
    assert len(read_depth("theirs.ply").z_m) == 25
    assert (folder / "clouds" / "a_depth.ply").exists()
    assert (folder / "scene_preview.png").exists()
