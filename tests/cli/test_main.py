"""`d3s` without a command: help, version, exit codes and imports."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from d3s.cli import app, main
from d3s.files import write_image

COMMANDS = (
    *("demo", "depth", "info", "convert", "calibrate"),
    *("simulate", "evaluate", "compare", "reproduce", "doctor"),
)


def test_python_m_d3s():
    result = subprocess.run(
        [sys.executable, "-m", "d3s", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"d3s {d3s.__version__}\n"


def test_help_has_every_command_and_every_exit_code():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for command in COMMANDS:
        assert command in shown
    for code in ("0 done", "1 nothing usable", "2 wrong use", "3 bad input", "4 some of several"):
        assert code in " ".join(shown.split())


def test_help_fills_the_lines_of_a_narrow_terminal():
    shown = CliRunner().invoke(app, ["align", "--help"], env={"COLUMNS": "80"}).stdout
    assert "turn; --text shows the same in the terminal." in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.stdout


def test_wrong_use():
    result = CliRunner().invoke(app, ["dmeo"])
    assert result.exit_code == 2
    assert "dmeo" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["depth", "a.png", "b.png", "--rig", ""], "--rig"),
        (["depth", "a.png", "b.png", "-o", ""], "-o"),
        (["depth", "a.png", "b.png", "--format="], "--format"),
        (["convert", "", "x.ply"], "the argument after convert"),
        (["evaluate", "planes", "--output", ""], "--output"),
    ],
)
def test_empty_arguments_are_named(arguments, name):
    """An empty path would mean the current folder."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    text = " ".join(result.stderr.replace("│", " ").split())
    assert f"{name}: it is empty. Is it a variable of the shell that has no value?" in text


def started(*arguments: str, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.Popen:
    code = "from d3s.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [("depth", "--help"), ("info", "{rig}")])
def test_full_output_is_reported_in_one_line(tmp_path, arguments):
    d3s.Rig.paper_prototype().save(tmp_path / "rig.toml")
    given = [one.format(rig=tmp_path / "rig.toml") for one in arguments]
    with Path("/dev/full").open("w") as full, started(*given, stdout=full) as child:
        text = child.stderr.read()
    assert child.returncode == 3
    assert text.startswith("d3s: cannot print: No space left on device.")
    assert text.count("\n") == 1


def test_closed_output_is_no_error():
    with started("depth", "--help") as child:
        child.stdout.close()
        assert child.stderr.read() == ""


@pytest.mark.parametrize("during", ["from d3s.cli import main; main()", "import d3s.__main__"])
def test_ctrl_c_during_the_imports_ends_in_silence(during):
    code = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the shell thinks of it
class Interrupting:
    def find_spec(name, *_):
        if name == "d3s.cli.output":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting)
{during}
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (child.returncode, child.stdout, child.stderr) == (130, b"", b"")


def test_ctrl_c_before_a_command_begins(monkeypatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
    monkeypatch.setattr("d3s.cli.app", interrupted)
    with pytest.raises(SystemExit) as found:
        main()
    assert found.value.code == 130


def test_ascii_terminal_gets_escapes_and_no_traceback():
    code = (
        "from rich.console import Console; import d3s.cli; "
        "d3s.cli._escape_what_cannot_be_printed(); Console().print('5 \u00b5m')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    assert done.stdout.startswith(b"5 \\xb5m")


def test_a_depth_map_loads_few_modules(tmp_path):
    code = """
import sys
from d3s.cli import main
try:
    main()
finally:
    print(sum(name.partition(".")[0] == "d3s" for name in sys.modules))
"""
    view = np.random.default_rng(0).random((60, 160), np.float32)
    write_image(tmp_path / "left.png", view)
    write_image(tmp_path / "right.png", np.roll(view, -30, axis=1))
    given = ["depth", "left.png", "right.png", "--rig", "paper", "-o", "out"]
    command = [sys.executable, "-c", code, *given]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert int(result.stdout.split()[-1]) <= 130
