"""`d3s doctor`: its results, remarks and exit codes."""

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


def test_this_machine_passes(health):
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


def test_all_results_are_printed(run, health):
    result = run(replace(health, cache_is_writable=True))
    assert result.exit_code == 0
    for word in ("Python", *PACKAGES, "memory", "cores", "vectors", "passed", " mm", "density"):
        assert word in result.stdout
    assert "All is well." in result.stdout


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


def test_remarks_have_a_remedy(run, health):
    poor = replace(health, cache_is_writable=False, packages={"numpy": None})
    shown = " ".join(run(poor).stdout.split())
    assert "Set NUMBA_CACHE_DIR" in shown
    assert "Not installed: numpy." in shown


def test_wrong_depth_fails(monkeypatch):
    """The self-test fails if the baseline is wrong by 2 %."""
    real = d3s.doctor.estimate

    def off(left, right, rig):
        optics = rig.optics.replace(baseline_m=1.02 * rig.optics.baseline_m)
        return real(left, right, rig.replace(optics=optics))

    monkeypatch.setattr(d3s.doctor, "estimate", off)
    assert not self_test().passed


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    assert d3s.doctor._is_writable(tmp_path / "new")
    assert not d3s.doctor._is_writable(tmp_path / "file" / "below")


def test_machine_without_a_writable_cache():
    """As in a container with a read-only installation and no home folder."""
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
