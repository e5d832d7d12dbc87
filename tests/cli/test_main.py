"""`d3s` itself: help, version, exit codes, and what it costs to start."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import d3s
from d3s.cli import app

COMMANDS = (
    *("demo", "depth", "info", "convert", "calibrate"),
    *("simulate", "evaluate", "compare", "reproduce", "doctor"),
)


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"d3s {d3s.__version__}\n"


def test_help_has_every_command_and_every_exit_code():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for command in COMMANDS:
        assert command in shown
    for code in ("0 done", "1 nothing usable", "2 wrong use", "3 bad input", "4 some of several"):
        assert code in " ".join(shown.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.stdout


def test_wrong_use():
    result = CliRunner().invoke(app, ["dmeo"])
    assert result.exit_code == 2
    assert "dmeo" in result.stderr


def test_help_imports_nothing_heavy():
    """Half a second is the limit; a time would depend on the machine, and imports do not."""
    code = (
        "import sys; import d3s.cli; "
        "print(*[m for m in 'numpy numba cv2 matplotlib scipy pydantic' .split() "
        "if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
