"""`d3s doctor`: its results, remarks and exit codes."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
import d3s.cli.installation
from calibrations import calibration
from d3s.cli import app
from d3s.cli.installation import EXTRAS, PACKAGES, SelfTest, examine, self_test
from d3s.errors import MissingPackageError, install_command
from d3s.files import write_image
from pages import ROOT


@pytest.fixture(scope="module")
def health():
    return examine()


@pytest.fixture
def run(monkeypatch):
    def invoke(health, *arguments):
        monkeypatch.setattr(d3s.cli.installation, "examine", lambda rig: health)
        return CliRunner().invoke(app, ["doctor", *arguments])

    return invoke


def test_this_machine_passes(health):
    test = health.self_test
    assert test.passed
    assert 0 < test.error_m < d3s.cli.installation.LARGEST_ERROR_M
    assert d3s.cli.installation.LEAST_DENSITY < test.density <= 1
    assert test.time_s > 0
    assert health.packages["numpy"] == np.__version__
    assert set(health.packages) == set(PACKAGES)
    assert set(health.extras) == set(EXTRAS)
    assert health.cores >= 1
    assert health.threads >= 1


def test_json(run, health):
    values = json.loads(run(health, "--json").stdout)
    assert values["self_test"]["passed"] is True
    assert values["packages"]["numba"]
    assert values["cache_is_writable"] is health.cache_is_writable


@pytest.mark.parametrize(("error_m", "density"), [(0.02, 0.95), (1e-4, 0.1), (float("nan"), 0.0)])
def test_failed_self_test_is_exit_code_1(run, health, error_m, density):
    wrong = SelfTest(error_m=error_m, density=density, time_s=0.1, compile_time_s=0.0)
    assert not wrong.passed
    result = run(replace(health, self_test=wrong))
    assert result.exit_code == 1
    assert "FAILED" in result.stdout
    assert "at most 1 mm" in " ".join(result.stdout.split())
    as_json = run(replace(health, self_test=wrong), "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["self_test"]["passed"] is False
    assert run(replace(health, self_test=wrong), "--quiet").exit_code == 1


def test_wrong_depth_fails(monkeypatch):
    """The self-test fails if the baseline is wrong by 2 %."""
    real = d3s.cli.installation.estimate_quietly

    def off(left, right, rig):
        optics = rig.optics.replace(baseline_m=1.02 * rig.optics.baseline_m)
        return real(left, right, rig.replace(optics=optics))

    monkeypatch.setattr(d3s.cli.installation, "estimate_quietly", off)
    assert not self_test().passed


def test_every_extra_has_its_purpose(run, health, monkeypatch):
    with (ROOT / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {"all"}
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(replace(health, extras={**health.extras, "live": False})).stdout
    assert re.search(r"live +│ d3s live, view, align: pages in the browser +│ no ", shown)
    assert f"To add an extra: {install_command('NAME')}" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (None, "pip install 'd3s[live]'"),  # from an index
        ({"url": "file:///home/me/d3s", "dir_info": {}}, "pip install '.[live]' in /home/me/d3s"),
        (
            {"url": "file:///home/me/d3s", "dir_info": {"editable": True}},
            "pip install -e '.[live]' in /home/me/d3s",
        ),
        (
            {"url": "file:///tmp/d3s.whl", "archive_info": {}},
            "pip install 'd3s[live] @ file:///tmp/d3s.whl'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_d3s_came(monkeypatch, address, said):
    text = None if address is None else json.dumps(address)
    there = SimpleNamespace(read_text=lambda _: text)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: there)
    assert str(MissingPackageError("pages need aiohttp", "live")) == f"pages need aiohttp: {said}."


def test_compilation_cannot_be_disabled():
    done = subprocess.run(
        [sys.executable, "-m", "d3s", "doctor"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("d3s: NUMBA_DISABLE_JIT is set")
    assert done.stderr.rstrip().endswith("Unset NUMBA_DISABLE_JIT.")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_nothing_is_compiled_after_the_warm_up(tmp_path):
    """Depth of a pinhole pair, of the prototype and of raw frames, from 16-bit files."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "loops")}
    frame = np.random.default_rng(0).uniform(size=(120, 260)).astype(np.float32)
    write_image(tmp_path / "raw.png", frame)
    rig = d3s.Rig.paper_prototype()
    rig.replace(calibration=calibration(frame_rows_px=120, frame_cols_px=260)).save(
        tmp_path / "rig.toml"
    )
    pair = d3s.simulate(d3s.Plane(depth_m=1.0), rig, noise=0.01, shape=(120, 300))
    write_image(tmp_path / "left.png", pair.left)
    write_image(tmp_path / "right.png", pair.right)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "d3s", *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stderr

    assert "is compiling" in run("doctor", "--warm")
    views = ("depth", "left.png", "right.png")
    pinhole = ("--focal-length", "500px", "--baseline", "50mm")
    for number, command in enumerate(
        [
            (*views, "--rig", "paper"),
            (*views, "--rig", "paper", "-m", "consensus"),
            (*views, *pinhole),
            ("depth", "raw.png", "--rig", "rig.toml"),
        ]
    ):
        assert "is compiling" not in run(*command, "-o", f"out{number}"), command
