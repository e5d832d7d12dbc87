"""d3s densify: files in, files out, and what is said."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from d3s.cli import app
from d3s.lab.dense import densify

RIG = d3s.Rig.paper_prototype()


@pytest.fixture(scope="module")
def found():
    scene = d3s.RandomScene(seed=4, surfaces="weak", nearest_m=0.5)
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=(120, 200))
    return d3s.estimate(pair.left, pair.right, RIG, options={"min_confidence": 0.0})


@pytest.fixture
def path(found, tmp_path):
    found.save(tmp_path / "depth.npz")
    return tmp_path / "depth.npz"


def run(*arguments):
    return CliRunner().invoke(app, ["densify", *map(str, arguments)])


def test_file_beside_the_file(path, found):
    result = run(path)
    assert result.exit_code == 0, result.output
    assert "measured" in result.output
    assert "filled" in result.output
    dense = d3s.DepthMap.load(path.parent / "depth_dense.npz")
    assert np.array_equal(dense.depth_m, densify(found).depth_m, equal_nan=True)


def test_all_closes_everything_in_another_folder(path, tmp_path):
    result = run(path, "--max-sigma", "all", "-o", tmp_path / "there", "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert row["measured"] + row["filled"] == pytest.approx(1)
    assert d3s.DepthMap.load(tmp_path / "there" / "depth_dense.npz").valid.all()


def test_nothing_is_replaced_unasked(path):
    assert run(path).exit_code == 0
    again = run(path)
    assert again.exit_code == 3
    assert "exists" in again.output
    assert run(path, "--force").exit_code == 0


def test_wrong_length_is_a_wrong_use(path):
    result = run(path, "--max-sigma", "much")
    assert result.exit_code == 2
    assert "much" in result.output


def test_marigold_without_weights_says_what_to_do(path, tmp_path):
    result = run(path, "--marigold", tmp_path)
    assert result.exit_code == 3
    assert "Download" in result.output
    assert not (tmp_path / "depth_dense.npz").exists()


def test_depth_dense_fills_what_densify_fills(tmp_path):
    scene = d3s.RandomScene(seed=6, nearest_m=0.5)
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=(120, 200))
    for name, view in (("left", pair.left), ("right", pair.right)):
        np.save(tmp_path / f"{name}.npy", view)
    views = [str(tmp_path / f"{name}.npy") for name in ("left", "right")]
    found = {}
    for name, more in (("usual", []), ("dense", ["--dense"]), ("all", ["--dense=all"])):
        out = tmp_path / name
        arguments = ["depth", *views, "--rig", "paper", "-o", str(out), "--format", "npz", *more]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        found[name] = d3s.DepthMap.load(next(out.glob("*.npz")))
    kept = found["usual"].valid
    for name in ("dense", "all"):
        assert np.array_equal(found[name].depth_m[kept], found["usual"].depth_m[kept])
        assert np.array_equal(found[name].filter(filled=False).valid, kept)
    assert found["usual"].density < found["dense"].density < found["all"].density == 1
