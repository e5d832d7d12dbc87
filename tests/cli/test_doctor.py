"""`d3s doctor`: what it finds, and when it is not content."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s.doctor
from d3s.cli import app
from d3s.doctor import EXTRAS, PACKAGES, SelfTest, examine, self_test


@pytest.fixture(scope="module")
def health():
    return examine()


@pytest.fixture
def run(monkeypatch):
    def invoke(health, *arguments):
        monkeypatch.setattr(d3s.doctor, "examine", lambda: health)
        return CliRunner().invoke(app, ["doctor", *arguments])

    return invoke


def test_a_good_machine_passes(health):
    test = health.self_test
    assert test.passed
    assert 0 < test.error_m < d3s.doctor.LARGEST_ERROR_M
    assert d3s.doctor.LEAST_DENSITY < test.density <= 1
    assert test.time_s > 0
    assert health.packages["numpy"] == np.__version__
    assert set(health.packages) == set(PACKAGES)
    assert set(health.extras) == set(EXTRAS)
    assert health.cores >= 1
    assert health.threads >= 1


def test_it_prints_all_of_it(run, health):
    result = run(replace(health, cache_is_writable=True))
    assert result.exit_code == 0
    for word in ("Python", *PACKAGES, "memory", "cores", "vectors", "passed", " mm", "density"):
        assert word in result.stdout
    assert "All is well." in result.stdout


def test_json(run, health):
    told = json.loads(run(health, "--json").stdout)
    assert told["self_test"]["passed"] is True
    assert told["packages"]["numba"]
    assert told["cache_is_writable"] is health.cache_is_writable


@pytest.mark.parametrize(("error_m", "density"), [(0.02, 0.95), (1e-4, 0.1), (float("nan"), 0.0)])
def test_a_self_test_that_fails_is_exit_code_1(run, health, error_m, density):
    wrong = SelfTest(error_m=error_m, density=density, time_s=0.1, compile_time_s=0.0)
    assert not wrong.passed
    result = run(replace(health, self_test=wrong))
    assert result.exit_code == 1
    assert "FAILED" in result.stdout
    assert "at most 1 mm" in " ".join(result.stdout.split())
    told = run(replace(health, self_test=wrong), "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["self_test"]["passed"] is False
    assert run(replace(health, self_test=wrong), "--quiet").exit_code == 1


def test_what_is_missing_or_closed_is_said_with_a_remedy(run, health):
    poor = replace(health, cache_is_writable=False, packages={"numpy": None})
    shown = " ".join(run(poor).stdout.split())
    assert "Set NUMBA_CACHE_DIR" in shown
    assert "Not installed: numpy." in shown


def test_a_wrong_depth_is_noticed(monkeypatch):
    """The test can fail: with a camera whose baseline is 2 % off."""
    real = d3s.doctor.estimate

    def off(left, right, rig):
        optics = rig.optics.replace(baseline_m=1.02 * rig.optics.baseline_m)
        return real(left, right, rig.replace(optics=optics))

    monkeypatch.setattr(d3s.doctor, "estimate", off)
    assert not self_test().passed


def test_a_folder_that_cannot_be_written_is_found(tmp_path):
    (tmp_path / "file").touch()
    assert d3s.doctor._is_writable(tmp_path / "new")
    assert not d3s.doctor._is_writable(tmp_path / "file" / "below")


def test_a_machine_where_nothing_can_be_kept():
    """As in a container with an installation that is not ours, and nobody's home."""
    code = (
        "from numba.core.caching import CompileResultCacheImpl as Kept; "
        "Kept._locator_classes = []; "
        "from d3s.runtime.compile import compiled; from d3s.doctor import _cache_folder; "
        "print(compiled(lambda x: x + 1)(1), _cache_folder().name)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == ["2", "__pycache__"], result.stderr
