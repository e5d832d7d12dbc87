"""`d3s align`: exit codes, tables, JSON, captures."""

import json

import pytest
from typer.testing import CliRunner

from align_frames import RIG, misassembled, plain, wall
from d3s.cli import app
from d3s.files import write_image


def run(*words, **more):
    return CliRunner().invoke(app, ["align", *map(str, words)], **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("align")
    RIG.save(place / "design.toml")
    write_image(place / "off.png", misassembled("stone", -1))
    write_image(place / "plain.png", plain())
    (place / "two").mkdir()
    for name in ("a", "b"):
        write_image(place / "two" / f"{name}.png", wall(seed=ord(name)))
    return place


def test_table_says_what_to_turn(folder):
    done = run(folder / "off.png", "--rig", folder / "design.toml", "--distance", "42cm", "--text")
    assert done.exit_code == 1, done.output
    words = " ".join(done.output.split())
    for part in ("rows", "raise the right lens", "turn it", "Centre the plate", "at 0.42 m"):
        assert part in words, part


def test_plain_wall_cannot_be_known(folder):
    done = run(folder / "plain.png", "--rig", folder / "design.toml", "--text")
    assert done.exit_code == 6, done.output
    assert "no texture" in " ".join(done.output.split())


def test_json_has_a_line_for_each_frame(folder):
    done = run(folder / "two", "--rig", folder / "design.toml", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == ["a.png", "b.png"]
    assert lines[0]["matches"] > 50
    assert lines[0]["steps"][0]["name"] == "light"


def test_wrong_use_is_named(folder):
    assert run(folder / "nothing.png").exit_code == 3
    done = run(folder / "off.png", "--distances", "0.3,0.4", "--text")
    assert done.exit_code == 2
    assert "--captures" in done.output
    done = run(folder / "off.png", "--distances", "near", "--captures", folder / "c", "--text")
    assert done.exit_code == 2


def test_files_are_no_camera_to_capture_from(folder, tmp_path):
    done = run(
        folder / "off.png", "--rig", folder / "design.toml", "--captures", tmp_path / "new",
        "--text", input="0.4\nend\n",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "camera that runs" in done.output
    assert "5 more frames are needed" in done.output
