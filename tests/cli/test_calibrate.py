"""`d3s calibrate`, as a user runs it."""

import json
import math
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from d3s.calibrate.calibration_report import Report
from d3s.cli import app
from d3s.errors import CalibrationError, OutputError
from d3s.files import read_image, write_image
from d3s.rig import Rig

sys.path.insert(0, str(Path(__file__).parent))

import boards


@pytest.fixture(scope="session")
def captures(tmp_path_factory) -> Path:
    """Ten boards, one that is overexposed, and an image that is not in the table."""
    folder = tmp_path_factory.mktemp("calibrate") / "captures"
    boards.write_captures(folder)
    white = np.minimum(3 * boards.frame(9).image, 1)
    write_image(folder / "white.png", white)
    write_image(folder / "stray.png", white)
    with (folder / "distances.csv").open("a") as table:
        table.write("white.png,0.6\n")
    boards.designed().save(folder.parent / "design.toml")
    return folder


class Calibrated(NamedTuple):
    """Output of a run."""

    folder: Path
    stdout: str


@pytest.fixture(scope="session")
def calibrated(captures, tmp_path_factory) -> Calibrated:
    """One whole run, shared by several tests."""
    folder = tmp_path_factory.mktemp("calibrated")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        result = run(captures)
    assert result.exit_code == 0, result.output
    return Calibrated(folder, result.stdout)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def run(captures: Path, *options: str):
    design = ("--rig", str(captures.parent / "design.toml"))
    words = ["calibrate", str(captures), "-o", "rig.toml", "--report", "cal.html"]
    return CliRunner().invoke(app, [*words, *design, *options])


def written() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def test_from_captures_to_a_camera(captures, calibrated):
    assert sorted(path.name for path in calibrated.folder.iterdir()) == [
        "cal.html",
        "cal.json",
        "rig.toml",
    ]
    rig = Rig.load(calibrated.folder / "rig.toml")
    truth = boards.frame(0).truth()
    found = rig.calibration
    assert found.anchor_left_px == pytest.approx(truth["anchor_left_px"], abs=0.1)
    assert found.anchor_right_px == pytest.approx(truth["anchor_right_px"], abs=0.1)
    assert found.rectify_scale == pytest.approx(float(truth["rectify_scale"]), abs=1e-4)
    assert found.rectify_angle_rad == pytest.approx(math.radians(0.7), abs=1e-4)
    assert found.baseline_angle_rad == pytest.approx(math.radians(0.4), abs=5e-4)
    designed = 12.1e-3 * 3.84e-3 / 9e-6 * 1.002
    assert rig.optics.focal_length_px * rig.optics.baseline_m == pytest.approx(designed, rel=1e-3)
    left, right = rig.split(read_image(captures / "board_5.png"))
    assert left.shape == right.shape == (found.crop_rows_px, found.crop_cols_px)
    assert np.isfinite(left).all()
    assert np.isfinite(right).all()
    assert len(found.provenance.input_sha256) == 11
    assert found.provenance.residuals["joint_mae_m"] < 1e-3


def test_files_are_replaced_only_with_force(captures):
    Path("cal.json").write_text("mine")
    result = run(captures)
    assert result.exit_code == 3
    assert result.stderr == (
        "d3s: cal.json exists. Choose another name, or allow it to be replaced with --force.\n"
    )
    assert written() == ["cal.json"]


def test_invalid_paths_are_refused_before_the_work(captures):
    result = run(captures, "--force", "-o", "missing/rig.toml")
    assert result.exit_code == 3
    assert result.stderr == (
        "d3s: missing/rig.toml cannot be written: missing is no folder. Make it.\n"
    )
    Path("rig.toml").mkdir()
    assert "it is a folder" in run(captures, "--force").stderr
    assert written() == ["rig.toml"]


def unboxed(text: str) -> str:
    """Error of wrong use on one line, without its box."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--report", "cal.pdf"), "must end in .html"),
        (("-o", "cal.html"), "is the name of the report too"),
        (("--left-lens", "top"), "'top' is not one of"),
        (("-o", ""), "it is empty"),
        (("-o", ".", "--force"), "must name a file"),
        (("-o", "..", "--force"), "must name a file"),
    ],
)
def test_wrong_use(captures, options, words):
    result = run(captures, *options)
    assert result.exit_code == 2
    assert words in unboxed(result.stderr)
    assert written() == []


def test_inputs_are_not_replaced(folder):
    table = folder / "distances.csv"
    before = table.read_text()
    for name in (table, folder / "board_2.png", folder.parent / "design.toml"):
        result = run(folder, "--force", "-o", str(name))
        assert result.exit_code == 2
        assert "is what the calibration is made from" in unboxed(result.stderr)
    assert table.read_text() == before


def test_rig_is_written_if_the_report_cannot_be(captures, monkeypatch, calibrated):
    def full(*_, **__):
        raise OutputError("cal.html cannot be written: no space left.")

    rig = Rig.load(calibrated.folder / "rig.toml")
    monkeypatch.setattr("d3s.batch.calibrations.calibrate", lambda *_, **__: (rig, None))
    monkeypatch.setattr("d3s.lab.view.calibration.write_report", full)
    result = run(captures)
    assert result.exit_code == 3
    assert "no space left. The rig is in rig.toml.\n" in result.stderr
    assert Rig.load("rig.toml") == rig


def test_invalid_name_is_refused_before_the_work(folder):
    (folder / "board_3.png").write_text("not an image")  # which is not read
    for name in ("x" * 500, "x" * 101, "two\nlines"):
        words = refused(folder, "--name", name)
        assert "d3s: name=" in words
        assert "board_3.png" not in words


def test_nothing_fitted_leaves_a_report_and_no_rig(captures, monkeypatch):
    found = Report(
        name="mine",
        version="0",
        created="2025-01-31T12:00:00+00:00",
        names=("a.png", "b.png"),
        distances_m=np.array([0.5, 1.0]),
        shape=(10, 20),
        not_read={},
        remarks=("The test came to nothing.",),
        problem="there is no texture.",
    )

    def fail(*_, **__):
        raise CalibrationError("there is no texture.", found)

    monkeypatch.setattr("d3s.batch.calibrations.calibrate", fail)
    result = run(captures, "--json")
    assert result.exit_code == 1
    assert result.stderr == (
        "d3s: there is no texture. No rig was written. cal.html shows what was found.\n"
    )
    assert written() == ["cal.html", "cal.json"]
    assert json.loads(result.stdout)["verdict"]["grade"] == "none"
    assert "there is no texture." in Path("cal.html").read_text()

    Path("rig.toml").write_text("of last week")
    result = run(captures, "--force")
    assert result.exit_code == 1
    assert "Note: The test came to nothing.\n" in result.stdout
    assert "No rig was written. rig.toml is that of an earlier calibration." in result.stderr
    assert Path("rig.toml").read_text() == "of last week"


# Bad input: the error says what is wrong and where, and nothing is written ------------------------


def refused(captures: Path, *options: str) -> str:
    result = run(captures, *options)
    assert result.exit_code == 3, result.output
    assert written() == []
    assert result.stderr.startswith("Calibrating from") or result.stderr.startswith("d3s: ")
    return result.stderr


@pytest.fixture(scope="session")
def six(tmp_path_factory) -> Path:
    """Six captures and a design, to be copied."""
    folder = tmp_path_factory.mktemp("six")
    boards.write_captures(folder / "captures", range(6))
    boards.designed().save(folder / "design.toml")
    return folder


@pytest.fixture
def folder(six, tmp_path_factory) -> Path:
    """Folder of captures that a test may change."""
    copy = tmp_path_factory.mktemp("spoilt")
    shutil.copytree(six, copy, dirs_exist_ok=True)
    return copy / "captures"


def distances(count: int = 6) -> dict[str, float]:
    return {f"board_{number}.png": boards.DISTANCES_M[number] for number in range(count)}


def spoilt(number: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    """Change of one frame of a folder."""

    def apply(folder: Path) -> None:
        image = change(boards.frame(number).image)
        write_image(folder / f"board_{number}.png", image, overwrite=True)

    return apply


def typed(change: Callable[[dict[str, float]], dict[str, float]]) -> Callable[[Path], None]:
    """Change of the distances of a folder."""
    return lambda folder: boards.write_distances(folder, change(distances()))


def _without_one_distance(folder: Path) -> None:
    text = (folder / "distances.csv").read_text()
    (folder / "distances.csv").write_text(re.sub(r"(board_2.png),.*", r"\1,", text))


def _mixed(given: dict[str, float]) -> dict[str, float]:
    return dict(zip(given, (boards.DISTANCES_M[n] for n in (0, 3, 1, 4, 2, 5)), strict=True))


def _overexposed(image: np.ndarray) -> np.ndarray:
    return np.minimum(3 * image, 1)


def _both(folder: Path) -> None:
    for number in (1, 2):
        spoilt(number, _overexposed)(folder)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda folder: boards.write_distances(folder, distances(4)),
            ("distances.csv: names 4 frames: a calibration needs at least 5",),
        ),
        (lambda folder: (folder / "distances.csv").unlink(), ("distances.csv",)),
        (_without_one_distance, ("line 4",)),
        (typed(_mixed), ("increas",)),
        (typed(lambda given: {name: 1e3 * one for name, one in given.items()}), ("millimetres",)),
        (spoilt(3, lambda image: image[:, 10:]), ("board_3.png has 850 x 460 pixels",)),
        (
            lambda folder: (folder / "board_3.png").write_text("not an image"),
            ("board_3.png", "does not begin like an image"),
        ),
        (_both, ("board_1.png is overexposed", "board_2.png is overexposed")),
    ],
)
def test_bad_captures_are_named(folder, spoil, said):
    spoil(folder)
    words = refused(folder)
    for one in said:
        assert one in words
