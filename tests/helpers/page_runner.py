"""Runner of the commands and Python blocks of a page, and simulated pictures to run them on."""

import glob
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer.main
from typer.testing import CliRunner

import d3s
from calibrations import calibration
from d3s.cli import app
from d3s.files import write_image
from d3s.rig import Rig
from pages import ROOT, Block, blocks, inline_commands, shell_lines

sys.path.insert(0, str(ROOT / "tests" / "cli"))

import boards

MOTORCYCLE = Rig.from_pinhole(
    focal_length_px=994.978, baseline_m=0.193001, disparity_offset_px=-31.086
)
BOARD = 5  # number of the board capture used as a frame of the camera


class PageRunner:
    """Runs every shell and Python block of a page in order, or of its part between two texts.

    Commands that serve a page, or want a camera, are left out.
    """

    def __init__(
        self, page: Path, smaller: Mapping[str, str], after: str = "", before: str = "\0"
    ) -> None:
        self.page = page
        self.smaller = smaller  # replacements in shell blocks that shorten the run
        self.scope: dict[str, Any] = {}  # variables of the Python blocks
        self.output: dict[str, str] = {}  # by command
        for block in blocks(page, after, before):
            self._run_block(block)

    def _run_block(self, block: Block) -> None:
        if block.language == "python":
            exec(compile(block.code, self.page.name, "exec"), self.scope)
        elif block.language == "shell":
            code = block.code
            for text, smaller in self.smaller.items():
                code = code.replace(text, smaller)
            for command in shell_lines(code):
                self._run_command(command)

    def _run_command(self, words: list[str]) -> None:
        if words[0] == "make":
            assert is_target(words[1])
        elif words[0] != "source":
            assert words[0] == "d3s", words
            if words[1] in ("align", "live", "view"):
                return
            arguments = [one for word in words[1:] for one in expand_glob(word)]
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, f"{' '.join(words)}\n{done.output}"
            self.output[" ".join(words)] = done.output


def expand_glob(word: str) -> list[str]:
    """Sorted paths that match a word with `*`; other words unchanged."""
    return sorted(glob.glob(word)) if "*" in word else [word]  # noqa: PTH207 - as a shell does


def is_target(name: str) -> bool:
    """Whether the Makefile has a target of this name."""
    makefile = (ROOT / "Makefile").read_text()
    return re.search(rf"^{name}:", makefile, re.MULTILINE) is not None


def write_stereo_pair(left: Path, right: Path, seed: int = 3) -> None:
    """Write a simulated pair of the Motorcycle camera."""
    scene = d3s.RandomScene(seed=seed, nearest_m=2.0, farthest_m=4.5)
    pair = d3s.simulate(scene, MOTORCYCLE, noise=0.005, shape=(120, 240))
    write_image(left, pair.left)
    write_image(right, pair.right)


def calibrated_rig() -> Rig:
    """Rig of the camera of the boards, with its true calibration."""
    frame = boards.frame(BOARD)
    left, right = frame.mounts
    true = calibration(
        anchor_left_px=frame.anchor_left_px,
        anchor_right_px=frame.anchor_right_px,
        crop_rows_px=181,
        crop_cols_px=281,
        rectify_scale=left.scale / right.scale,
        rectify_angle_rad=left.roll_rad - right.roll_rad,
        baseline_angle_rad=left.roll_rad,
    )
    return boards.designed().replace(calibration=true)


def write_raw_frames(folder: Path, count: int) -> None:
    """Write raw frames of one board into a new folder."""
    folder.mkdir()
    for number in range(count):
        write_image(folder / f"wall_{number}.png", boards.frame(BOARD).image)


def check_commands(page: Path) -> None:
    """Assert that every command and option named on a page exists."""
    commands = inline_commands(page, "d3s")
    for block in blocks(page):
        if block.language == "shell":
            commands += [words for words in shell_lines(block.code) if words[0] == "d3s"]
    for words in commands:
        check_command(words)


def check_command(words: list[str]) -> None:
    """Assert that the options of a command exist."""
    command = typer.main.get_command(app)
    options = {name for one in command.params for name in one.opts}
    for word in words[1:]:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
            options |= {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        elif re.match(r"--?[a-z]", word):
            assert word in options, words
