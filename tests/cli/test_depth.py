"""`d3s depth`, as a new user would run it, rightly and wrongly."""

import json

import cv2
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from calibrations import calibration
from d3s import DepthMap, Rig
from d3s.batch.frame_maker import FrameMaker
from d3s.cli import app
from d3s.files import read_image, write_image
from pairs import DEPTH_M, PINHOLE, views, write_views

QUICK = (*PINHOLE, "--method", "bm", "--format", "npz")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["depth", *map(str, arguments)])


def words(result: Result) -> str:
    """What went to stderr, on one line: a terminal breaks lines and draws boxes."""
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture
def pair(tmp_path):
    paths = tmp_path / "left.png", tmp_path / "right.png"
    write_views(*paths)
    return paths


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def test_a_pair_with_pinhole_flags(pair, out):
    result = run(*pair, *PINHOLE, "--output", out)
    assert result.exit_code == 0, result.stderr
    for word in ("density", "depth (m)", "2.50", "estimate (s)", "s in all", str(out)):
        assert word in result.stdout
    assert max(map(len, result.stdout.split("Files in")[0].splitlines())) <= 80
    assert "--disparity-offset-px is left out, and 0 taken" in words(result)
    assert "depth.npz, depth.png, preview.png" in result.stdout
    assert np.nanmedian(DepthMap.load(out / "depth.npz").depth_m) == pytest.approx(
        DEPTH_M, abs=0.05
    )
    assert cv2.imread(str(out / "depth.png"), cv2.IMREAD_UNCHANGED).dtype == np.uint16


def test_unit_of_the_png(pair, out):
    result = run(*pair, *PINHOLE, "-m", "bm", "--unit", "0.01mm", "--output", out)
    assert result.exit_code == 4
    shown = words(result)
    assert "Not written: depth.png: a depth of 2.5" in shown
    assert "--unit" in shown
    assert (out / "depth.npz").is_file()
    assert (out / "preview.png").is_file()
    assert not (out / "depth.png").exists()
    result = run(*pair, *PINHOLE, "-m", "bm", "--unit", "0.1mm", "--output", out, "--force")
    assert result.exit_code == 0, result.stderr
    levels = cv2.imread(str(out / "depth.png"), cv2.IMREAD_UNCHANGED)
    assert np.median(levels[levels > 0]) == pytest.approx(25_000, rel=0.02)


def test_pinhole_flags_are_typed_once(pair, out, tmp_path):
    saved = tmp_path / "moto.toml"
    assert run(*pair, *QUICK, "--output", out, "--save-rig", saved).exit_code == 0
    again = run(*pair, "--rig", saved, "--output", tmp_path / "again", *QUICK[len(PINHOLE) :])
    assert again.exit_code == 0, again.stderr
    assert DepthMap.load(tmp_path / "again" / "depth.npz").rig == Rig.load(saved)
    other = (*QUICK, "--disparity-offset-px", 1, "--save-rig", saved)
    refused = run(*pair, *other, "--output", tmp_path / "third")
    assert refused.exit_code == 3
    assert "moto.toml exists" in refused.stderr
    assert not (tmp_path / "third").exists()


def test_json_tells_the_same_to_a_script_and_quiet_nothing(pair, out):
    told = json.loads(run(*pair, *QUICK, "--output", out, "--json").stdout)
    (one,) = told["done"]
    assert one["nearest_m"] == pytest.approx(DEPTH_M, abs=0.1)
    assert one["files"] == [str(out / "depth.npz")]
    assert told["refused"] == []
    limit = ("--max-sigma", f"{1e3 * one['median_sigma_m']} mm")
    result = run(*pair, *QUICK, "--output", out, "--quiet", "--force", *limit)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert 0 < DepthMap.load(out / "depth.npz").density < one["density"]


def test_what_the_method_is_told_reaches_it(pair, out):
    told = ("--depth-range", "1m:400cm", "--option", "speckle_window_px=15")
    assert run(*pair, *QUICK, "--output", out, *told).exit_code == 0
    options = DepthMap.load(out / "depth.npz").options
    assert options.depth_range_m == (1.0, 4.0)
    assert options.speckle_window_px == 15


def test_a_raw_frame_of_a_calibrated_rig(tmp_path, out):
    rig = Rig.from_pinhole(focal_length_px=500.0, baseline_m=0.1)
    calibrated = rig.replace(
        calibration=calibration(
            anchor_left_px=(340.0, 60.0),
            anchor_right_px=(100.0, 60.0),
            crop_rows_px=81,
            crop_cols_px=161,
        )
    )
    calibrated.save(tmp_path / "rig.toml")
    frame = np.zeros((120, 440), np.float32)
    left, right = views(shape=(100, 180))
    frame[10:110, 250:430], frame[10:110, 10:190] = left, right
    write_image(tmp_path / "raw.png", frame)
    result = run(tmp_path / "raw.png", "--rig", tmp_path / "rig.toml", "-m", "bm", "-o", out)
    assert result.exit_code == 0, result.stderr
    assert np.nanmedian(DepthMap.load(out / "raw_depth.npz").depth_m) == pytest.approx(
        DEPTH_M, abs=0.1
    )


def test_some_bad_inputs_are_listed_and_the_rest_done(tmp_path, out):
    folder = tmp_path / "in"
    folder.mkdir()
    write_views(folder / "a_left.png", folder / "a_right.png")
    (folder / "b_left.png").write_text("no image")
    write_image(folder / "b_right.png", views()[1])
    write_image(folder / "c_left.png", views()[0])
    result = run(folder, *QUICK, "--output", out)
    assert result.exit_code == 4
    names = sorted(path.name for path in out.iterdir())
    assert names == ["a_depth.npz", "frames.csv", "job.json"]
    assert "b_left.png: does not begin like an image" in words(result)
    assert "c_left.png: there is no right view of this name" in words(result)
    assert (
        len(json.loads(run(folder, *QUICK, "-o", tmp_path / "2", "--json").stdout)["refused"]) == 2
    )


def test_nothing_usable(tmp_path, out):
    for side in ("left", "right"):
        write_image(tmp_path / f"{side}.png", np.full((60, 120), 0.5, np.float32))
    result = run(tmp_path / "left.png", tmp_path / "right.png", *QUICK, "--output", out)
    assert result.exit_code == 1
    assert (
        "No depth: the pair. A view is constant: both views have one value everywhere. Uncover"
        in words(result)
    )


def test_warnings_are_said_once_with_the_frames(tmp_path, out):
    for i in range(3):
        left, right = views(i, shape=(200, 300))
        write_image(tmp_path / f"{i}_left.png", left)
        write_image(tmp_path / f"{i}_right.png", (1 - 0.1 * i) * right)
    options = (*PINHOLE, "--format", "npz")
    result = run(tmp_path, *options, "--output", out)
    assert result.exit_code == 0, result.stderr
    (line,) = [one for one in result.stderr.splitlines() if one.startswith("Warning")]
    assert line.startswith("Warning: 1 and 1 more frame: contrast differs: the left view has 1.1")
    assert "Warning" not in run(tmp_path, *options, "--output", out, "--force", "--quiet").stderr
    told = json.loads(run(tmp_path, *options, "--output", out, "--force", "--json").stdout)
    assert [len(one["warnings"]) for one in told["done"]] == [0, 1, 1]
    alone = run(tmp_path / "2_left.png", tmp_path / "2_right.png", *options, "-o", tmp_path / "b")
    assert "Warning: contrast differs: the left view has 1.2" in alone.stderr


LEFT_RIGHT = "{left} {right} "
PAIR = LEFT_RIGHT + " ".join(PINHOLE) + " "
ALONE = " " + " ".join(PINHOLE)
BAD = [
    (LEFT_RIGHT, 2, "--rig paper"),
    (LEFT_RIGHT + "--rig paper --baseline 1mm", 2, "leave it, or"),
    (LEFT_RIGHT + "--rig {millimetres}", 3, "Did you pass millimetres?"),
    (LEFT_RIGHT + "--rig {left}", 3, "left.png is no calib"),
    (LEFT_RIGHT + "--rig no.toml", 3, "there is no such file"),
    ("{right} {left}" + ALONE, 3, "the left view goes first"),
    ("{other_right} {other_left}" + ALONE, 3, "seem to be swapped"),
    ("{rig} {left} {right}", 3, "Give it as --rig"),
    ("{left} {folder}" + ALONE, 3, "is a folder, and 1 of"),
    ("{empty}" + ALONE, 3, "no image whose name says left"),
    ("{left} {small}" + ALONE, 3, "both views must have one size"),
    ("{left}" + ALONE, 3, "give the right view too; if it has both"),
    (PAIR + "-o {left}", 3, "is a file"),
    (PAIR + "-o /proc/nothing", 3, "/proc/nothing cannot be written"),
    (PAIR + "--depth-range 2", 2, "NEAREST:FARTHEST"),
    (PAIR + "--max-sigma -5mm", 2, "--max-sigma: max_sigma_m=-0.005 must be a number from 0 up"),
    (PAIR + "--min-confidence 80", 2, "min_confidence=80.0 must be a number from 0 to 1"),
    (PAIR + "-m jont", 2, "for --method: method='jont' must be one of joint"),
    (PAIR + "--option window=3", 2, "for --option: window is unknown. Did you mean"),
    (PAIR + "--format jpg", 2, "for --format: formats has jpg: it can have npz, png"),
    (PAIR + "--unit 1mm --format npz", 2, "none is written"),
    (PAIR + "--force --save-rig {left}", 2, "must end in .toml"),
    (PAIR + "--workers 0", 2, "must be a whole number from 1 to 1024"),
    (PAIR + "--workers 2 --scheduler tcp://127.0.0.1:9", 2, "leave one of them"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Files and folders to do wrong things with; nothing is written there."""
    folder = tmp_path_factory.mktemp("wrong")
    for name in ("folder", "empty"):
        (folder / name).mkdir()
    write_views(folder / "left.png", folder / "right.png")
    write_views(folder / "other_1.png", folder / "other_2.png")
    write_image(folder / "small.png", views()[1][:40])
    Rig.paper_prototype().save(folder / "rig.toml")
    text = (folder / "rig.toml").read_text()
    (folder / "mm.toml").write_text(text.replace("baseline_m = 0.00384", "baseline_m = 3.84"))
    names = {
        **{name: f"{name}.png" for name in ("left", "right", "small")},
        **{"other_left": "other_1.png", "other_right": "other_2.png"},
        **{"rig": "rig.toml", "millimetres": "mm.toml", "folder": "folder", "empty": "empty"},
    }
    return {name: folder / file for name, file in names.items()}


@pytest.mark.parametrize(("arguments", "code", "expected"), BAD)
def test_bad_input_is_told_in_a_sentence(monkeypatch, places, arguments, code, expected):
    folder = places["left"].parent
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    result = run(*arguments.format_map(places).split())
    assert result.exit_code == code, result.stderr
    assert expected in words(result)
    assert "Traceback" not in result.stderr
    assert len(words(result)) < 700
    assert sorted(path.name for path in folder.iterdir()) == before


def test_earlier_results_stay_until_told(pair, out):
    assert run(*pair, *QUICK, "-o", out).exit_code == 0
    before = (out / "depth.npz").read_bytes()
    result = run(*pair, *QUICK, "-o", out)
    assert result.exit_code == 3
    assert "exists" in words(result)
    assert "--force" in words(result)
    assert (out / "depth.npz").read_bytes() == before
    assert run(*pair, *QUICK, "-o", out, "--force").exit_code == 0


def test_encoding_of_colour_files_is_said_and_can_be_chosen(tmp_path):
    for name, view in zip(("left", "right"), views(), strict=True):
        levels = np.rint(255 * view.clip(0, 1)).astype(np.uint8)
        Image.fromarray(np.stack([levels] * 3, axis=2)).save(tmp_path / f"{name}.png")
    given = (tmp_path / "left.png", tmp_path / "right.png", *QUICK)
    curved = run(*given, "-o", tmp_path / "a")
    assert "the curve of sRGB was undone" in " ".join(curved.stdout.split())
    linear = run(*given, "-o", tmp_path / "b", "--encoding", "linear")
    assert "taken as linear" in " ".join(linear.stdout.split())
    first, second = (DepthMap.load(tmp_path / one / "depth.npz") for one in "ab")
    np.testing.assert_allclose(second.intensity, views()[0].clip(0, 1), atol=0.003)
    assert first.intensity.mean() < second.intensity.mean()


def folder_of_pairs(tmp_path, count):
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(count):
        write_views(folder / f"{i}_left.png", folder / f"{i}_right.png", seed=i)
    return folder


def test_frames_are_shared_among_workers(tmp_path, out):
    folder = folder_of_pairs(tmp_path, 3)
    result = run(folder, *QUICK, "--output", out, "--workers", "2")
    assert result.exit_code == 0, result.output
    assert f"Figures of all frames: {out}/frames.csv" in result.stdout.replace("\n", "")
    one = run(folder, *QUICK, "--output", tmp_path / "one", "--workers", "1", "--json")
    told = json.loads(one.stdout)
    assert told["table"] == str(tmp_path / "one/frames.csv")
    for i in range(3):
        name = f"{i}_depth.npz"
        assert (out / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_a_drawn_picture_is_made_when_asked_for(pair, out):
    result = run(*pair, *PINHOLE, "-m", "bm", "--format", "preview,figure", "--output", out)
    assert result.exit_code == 0, result.output
    plain, drawn = (read_image(out / f"{name}.png") for name in ("preview", "figure"))
    rows, cols = views()[0].shape
    assert plain.shape == (rows + 18, cols)  # with its scale below
    assert drawn.shape[1] > 500


def test_ctrl_c_says_how_to_go_on(tmp_path, out, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(FrameMaker, "make", interrupted)
    result = run(folder_of_pairs(tmp_path, 2), *QUICK, "--output", out, "--workers", "1")
    assert result.exit_code == 130
    assert "The same command without --force goes on" in result.stderr


def test_an_unexpected_error_of_one_frame_stops_no_other(tmp_path, out, monkeypatch):
    real = FrameMaker.make

    def broken(self, given, read):
        if given.frame.name == "1":
            raise ZeroDivisionError("of everything")
        return real(self, given, read)

    monkeypatch.setattr(FrameMaker, "make", broken)
    result = run(folder_of_pairs(tmp_path, 3), *QUICK, "--output", out, "--workers", "1")
    assert result.exit_code == 4
    assert "an error that d3s did not expect: ZeroDivisionError: of everything" in result.stderr
    assert "in broken" in (out / "frames.csv").read_text()


def test_debug_shows_where_an_error_comes_from(tmp_path):
    result = CliRunner().invoke(
        app, ["--debug", "depth", str(tmp_path / "a.png"), "--rig", str(tmp_path / "no.toml")]
    )
    assert isinstance(result.exception, Exception)
    assert "no such file" in str(result.exception)


def test_a_provisional_calibration_is_said_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = calibration(frame_rows_px=120, frame_cols_px=260)
    line = "provisional: 21% of the errors are beyond 3 sigma."
    made = made.replace(provenance=made.provenance.replace(verdict=line))
    Rig.paper_prototype().replace(name="mine", calibration=made).save("rig.toml")
    raw = np.random.default_rng(0).integers(0, 65536, (120, 260), dtype=np.uint16)
    cv2.imwrite("raw.png", raw)
    note = f"Note: the calibration of mine is {line}"
    depth = run("raw.png", "--rig", "rig.toml", "-m", "bm")
    check = CliRunner().invoke(app, ["check", "raw.png", "--rig", "rig.toml", "--no-log"])
    live = CliRunner().invoke(app, ["live", "missing.png", "--rig", "rig.toml"])  # live and record
    for result in (depth, check, live):
        assert words(result).count(note) == 1
    assert line in CliRunner().invoke(app, ["info", "rig.toml"]).stdout
