"""Every command and Python block of the guides runs, in the order of the page.

The pictures of a reader (a stereo pair, raw frames, captures of a board) are small simulated ones
here, and slow commands run with smaller inputs.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import typer.main

import d3s
import stereo_cameras
from check_frames import raw_of, small_rig
from d3s.cli import app
from d3s.estimate import candidates
from d3s.estimate.flags import share_of_each
from d3s.files import write_image
from d3s.rig import Rig
from page_runner import (
    BOARD,
    PageRunner,
    boards,
    calibrated_rig,
    check_commands,
    is_target,
    write_raw_frames,
    write_stereo_pair,
)
from pages import DOCS, table_rows

sys.path.insert(0, str(DOCS))

import method_figures

GUIDES = (
    "index",
    "first_depth",
    "stereo",
    "method",
    "how_good",
    "build",
    "live",
)
RIG = Rig.paper_prototype()

# Replacements in the commands of the pages that shorten the test.
SMALLER = {
    "450x600": "160x300",
    "0.25:1.2:12": "0.4:0.5:2",
    "--distance 1.0": f"--distance {boards.DISTANCES_M[BOARD]}",
    "--rig design.toml -o rehearsal": "--rig design.toml -o simulated",
    "--design design.toml": "--design board.toml",
}


def run(page: str, before: str = "\0") -> PageRunner:
    return PageRunner(DOCS / f"{page}.md", SMALLER, before=before)


CHECK = "## Check it from time to time"  # part of the page on building


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Temporary folder as the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


# Page by page -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_first_depth_map(folder):
    write_stereo_pair(Path("im0.png"), Path("im1.png"))
    for side in ("left", "right"):
        Path(side).mkdir()
    for number in range(2):
        write_stereo_pair(Path(f"left/{number}.png"), Path(f"right/{number}.png"), seed=number)
    calibrated_rig().save("rig.toml")
    write_image("frame.png", boards.frame(BOARD).image)
    runner = run("first_depth")

    est, sure, surer = (runner.scope[name] for name in ("est", "sure", "surer"))
    assert 0.3 < est.density < 1
    assert 0 < surer.density <= sure.density < est.density
    assert runner.scope["points_m"].shape == (est.valid.sum(), 3)
    cloud = Path("motorcycle.ply").read_bytes()
    assert f"element vertex {est.valid.sum()}".encode() in cloud
    names = {path.name for path in Path("sim/depth").iterdir()}
    listed = {row[0].strip("`") for row in table_rows(DOCS / "first_depth.md")}
    assert names <= listed
    frame = d3s.DepthMap.load("frame/frame_depth.npz")
    error_m = np.nanmedian(frame.depth_m) - boards.DISTANCES_M[BOARD]
    assert abs(error_m) < 0.01
    assert frame.density > 0.5


def test_stereo_camera(folder):
    cameras = stereo_cameras.RADTAN
    stereo_cameras.write_pictures(cameras, Path("left.png"), Path("right.png"))
    for write in (
        stereo_cameras.write_opencv_stereo,
        stereo_cameras.write_opencv_mono,
        stereo_cameras.write_kalibr,
        stereo_cameras.write_ros,
        stereo_cameras.write_oak,
    ):
        write(cameras, Path())
    Path("Motorcycle").mkdir()
    stereo_cameras.write_middlebury(stereo_cameras.RECTIFIED, Path("Motorcycle"))
    stereo_cameras.write_pictures(
        stereo_cameras.RECTIFIED, Path("Motorcycle/im0.png"), Path("Motorcycle/im1.png")
    )
    runner = run("stereo")

    est = runner.scope["est"]
    assert est.density > 0.5
    assert abs(np.nanmedian(est.depth_m) - stereo_cameras.WALL_M) < 0.02
    with np.load("moto/Motorcycle_depth.npz") as moto:
        assert moto["K"] == pytest.approx(stereo_cameras.RECTIFIED.left.matrix)
        assert abs(np.nanmedian(moto["depth_m"]) - stereo_cameras.WALL_M) < 0.02


def test_how_good_is_it(folder):
    calibrated_rig().save("rig.toml")
    write_raw_frames(Path("wall"), 2)
    runner = run("how_good")

    text = (DOCS / "how_good.md").read_text()
    printed_mm = [float(word) for word in re.findall(r"bound_mm = .*?# (.*)", text)[0].split(", ")]
    assert printed_mm == np.round(runner.scope["bound_mm"], 2).tolist()
    est, error_m = runner.scope["est"], runner.scope["error_m"]
    share = np.mean(np.abs(error_m) < est.sigma_m[est.valid])
    assert f"# {share:.2f}\n" in text
    assert runner.scope["fine"].density < est.density > runner.scope["safe"].density
    assert f"# {runner.scope['gain']:.1f}\n" in text
    assert "# {:.2f}, {:.2f}\n".format(*runner.scope["density"]) in text
    assert any("fill rate" in output.lower() for output in runner.output.values())


@pytest.mark.slow
def test_camera_of_your_own(folder):
    boards.write_captures(Path("rehearsal"), range(7))
    boards.write_captures(Path("captures"))
    boards.designed().save("board.toml")
    write_image("frame.png", boards.frame(BOARD).image)
    runner = run("build", before=CHECK)

    optics = runner.scope["optics"]
    assert optics == RIG.optics
    assert [str(m)[:5] for m in optics.focus_distances_m] == ["0.809", "0.880"]
    text = (DOCS / "build.md").read_text()
    assert repr(optics.disparity_px([0.3, 1.0, 2.0])) in text
    assert np.round(optics.blur_radius_px([0.3, 1.0, 2.0], 0), 1).tolist() == [12.7, -1.4, -4.4]
    assert f"# {runner.scope['step_m']:.2e}: 15 µm" in text
    assert len(list(Path("simulated").glob("*.png"))) == 2
    frame = d3s.DepthMap.load("frame/frame_depth.npz")
    assert abs(np.nanmedian(frame.depth_m) - boards.DISTANCES_M[BOARD]) < 0.01


@pytest.mark.slow
def test_check_of_a_camera(folder):
    """With a camera that has not moved."""
    small_rig().save("rig.toml")
    Path("frames").mkdir()
    for seed in range(6):
        scene = d3s.RandomScene(seed=seed, patterns=("stone",), nearest_m=0.4, farthest_m=1.2)
        write_image(f"frames/{seed}.png", np.clip(raw_of(scene, seed), 0, 1))
    texture = d3s.Texture(pattern="stone", seed=4)
    for name, depth_m in (("wall", 1.0), ("near", 0.5), ("far", 2.0)):
        wall = raw_of(d3s.Plane(depth_m=depth_m, texture=texture), 7)
        write_image(f"{name}.png", np.clip(wall, 0, 1))
    runner = PageRunner(DOCS / "build.md", {}, after=CHECK)
    assert runner.scope["report"].verdict == "drifted"
    assert runner.scope["report"]["roll_rad"].value == pytest.approx(0.004, abs=5e-4)
    assert Path("page.html").exists()
    assert not Path("new.toml").exists()


def test_cameras_and_recordings(folder):
    smaller = {"record twin": "record twin:40x60", "--seconds 2": "--frames 3"}
    page = DOCS / "live.md"
    camera = PageRunner(page, smaller, before="## Live in the browser").scope["camera"]
    assert camera.state == "grabbing"
    runner = PageRunner(page, smaller, after="## Record and replay", before="## Many frames")
    said = runner.output["d3s replay depth.mcap"]
    assert "3 of 3 recorded depth maps have the same bytes" in said
    assert runner.scope["recorder"].written == 3


def test_front_page(folder):
    """With a pair of the camera in the rig file."""
    RIG.save("rig.toml")
    pair = d3s.simulate(d3s.Plane(depth_m=0.8), RIG, noise=0.01, shape=(100, 200))
    for side in ("left", "right"):
        write_image(f"{side}.png", getattr(pair, side))
    run("index")
    assert d3s.DepthMap.load("depth/depth.npz").density > 0.3


# Statements of the pages that are not run ---------------------------------------------------------


@pytest.mark.parametrize("guide", GUIDES)
def test_commands_and_options_exist(guide):
    check_commands(DOCS / f"{guide}.md")


@pytest.mark.parametrize("guide", GUIDES)
def test_options_that_are_named_exist(guide):
    """Every option in the text, such as `--depth-range`, is an option of a command."""
    first = typer.main.get_command(app).commands.values()
    commands = [*first, *(two for one in first for two in getattr(one, "commands", {}).values())]
    known = {
        name
        for one in commands
        for option in one.params
        for name in (*option.opts, *option.secondary_opts)
    }
    text = (DOCS / f"{guide}.md").read_text()
    assert set(re.findall(r"`(--[a-z][a-z-]+)", text)) <= known | {"--debug"}


@pytest.mark.parametrize("guide", GUIDES)
def test_targets_that_are_named_exist(guide):
    for name in re.findall(r"`make (\w+)`", (DOCS / f"{guide}.md").read_text()):
        assert is_target(name), name


@pytest.mark.parametrize("guide", GUIDES)
def test_links_lead_to_headings(guide):
    text = (DOCS / f"{guide}.md").read_text()
    for name, anchor in re.findall(r"\]\((\w+\.md)#([\w-]+)\)", text):
        headings = re.findall(r"^#+ (.*)$", (DOCS / name).read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
        assert anchor in slugs, f"{guide}.md: {name}#{anchor}"


def test_errors_over_depth_are_those_of_the_estimator():
    """The rows of the table are rows of the estimator page, which has their command."""
    known = {tuple(row[:5]) for row in table_rows(DOCS / "estimator_results.md")}
    rows = [row for row in table_rows(DOCS / "how_good.md") if re.fullmatch(r"\d\.\d\d", row[0])]
    assert len(rows) == 6
    assert {tuple(row) for row in rows} <= known


@pytest.mark.parametrize(
    ("guide", "words", "page"),
    [
        ("how_good", "within 25 % from 0.4 m on", "estimator"),
        ("how_good", "65 to 75 % of the errors are below it", "estimator"),
        ("how_good", "0.101", "estimator_results"),
        ("how_good", "70 %", "estimator"),
        ("method", "at most 12 %", "limits"),
    ],
)
def test_numbers_that_are_quoted(guide, words, page):
    """A number quoted in a guide stands on the page that has its command."""
    for name in (guide, page):
        text = " ".join((DOCS / f"{name}.md").read_text().split())
        assert words in text, name


def test_disparities_of_the_default_range():
    text = " ".join((DOCS / "first_depth.md").read_text().split())
    largest, smallest = candidates._LARGEST_DISPARITY_PX, candidates._SMALLEST_DISPARITY_PX
    assert f"a disparity of {largest:g} px to one of {smallest:g} px" in text
    assert f"below some {candidates.WIDEST_BLUR_PX:g} px" in (DOCS / "build.md").read_text()


# The figures of the method ------------------------------------------------------------------------

VERGENCE_DPT = np.linspace(0.4, 4.0, 181)


def test_page_of_the_method_shows_every_figure():
    shown = re.findall(r"!\[[^\]]+\]\((.+?)\)", (DOCS / "method.md").read_text())
    assert shown == [f"_static/{name}.png" for name in method_figures.FIGURES]
    for name in shown:
        data = (DOCS / name).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert len(data) < 150_000, name


def test_both_cues_find_the_depth_of_one_pixel():
    pixel = method_figures.pixel_of("gravel", 1.2)
    both = pixel.residual_energy(1 / VERGENCE_DPT, 31)
    assert 1 / VERGENCE_DPT[both.argmin()] == pytest.approx(1.2, abs=0.02)


def test_only_defocus_resolves_a_periodic_texture():
    """As the page says of the right figure."""
    pixel = method_figures.pixel_of(method_figures.waves(2.0, 12.0), 2.0)
    period_dpt = 12.0 / float(RIG.optics.disparity_px(1.0))
    valleys_m = 1 / (0.5 + period_dpt * np.arange(4))
    stereo = pixel.residual_energy(valleys_m, 31, use_defocus=False)
    both = pixel.residual_energy(valleys_m, 31)
    assert stereo.max() < 1.2 * stereo.min()
    assert both.argmin() == 0
    assert both[1:].min() > 3 * both[0]


@pytest.mark.parametrize("side_px", [9, 23, 57])
def test_likelihood_has_the_width_of_the_formula(side_px):
    pixel = method_figures.pixel_of("gravel", 1.2)
    noise, optics = pixel.noise_energy(side_px), RIG.optics
    sigma_px = np.sqrt(noise / np.square(pixel.gradient(side_px)).sum())
    sigma_m = 1.2**2 / (optics.focal_length_px * optics.baseline_m) * sigma_px
    depths_m = np.linspace(1.2 - 4 * sigma_m, 1.2 + 4 * sigma_m, 81)
    energy = pixel.residual_energy(depths_m, side_px)
    best = int(energy.argmin())
    away = np.array([best - 10, best + 10])  # one sigma
    rise = side_px**2 * (energy[away] - energy.min()) / noise
    assert rise.mean() == pytest.approx(1.0, abs=0.15)


# Where it fails -----------------------------------------------------------------------------------


def row_of_failure(words: str) -> str:
    rows = table_rows(DOCS / "how_good.md")
    (row,) = [row for row in rows if row[0].startswith(words)]
    return row[2]


def stripes_along_the_rows() -> d3s.Photo:
    steps = np.random.default_rng(0).uniform(0.02, 0.08, 1024)
    wave = 0.5 + 0.3 * np.sin(2 * np.pi * np.cumsum(steps))
    image = np.repeat(wave[:, np.newaxis], 1024, axis=1).astype(np.float32)
    return d3s.Photo(image=image, width_m=0.2, encoding="linear")


def grid(depth_m: float, period_px: float) -> d3s.Photo:
    period_m = period_px * depth_m / RIG.optics.focal_length_px
    wave = np.sin(2 * np.pi * np.arange(64 * 32) / 32)
    image = (0.5 + 0.25 * wave + 0.15 * wave[:, np.newaxis]).astype(np.float32)
    return d3s.Photo(image=image, width_m=64 * period_m, encoding="linear")


@pytest.mark.parametrize(
    ("what", "scene", "flag"),
    [
        ("grids", d3s.Plane(depth_m=0.6, texture=grid(0.6, 10.0)), "AMBIGUOUS"),
        (
            "stripes along the rows",
            d3s.Plane(depth_m=1.0, texture=stripes_along_the_rows()),
            "LOW_CONFIDENCE",
        ),
        ("nearer than the range", d3s.Plane(depth_m=0.22, texture="gravel"), "OUT_OF_RANGE"),
        ("farther than the range", d3s.Plane(depth_m=2.8, texture="gravel"), "OUT_OF_RANGE"),
    ],
)
def test_no_depth_where_the_guide_says_so(what, scene, flag):
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=(80, 300))
    est = d3s.estimate(pair.left, pair.right, RIG)
    assert est.density == 0
    assert share_of_each(est.flags)[flag] > 0.6
    assert f"`{flag}`" in row_of_failure(what)


def test_wall_without_texture():
    left, right = np.random.default_rng(0).normal(0.5, 0.01, (2, 80, 300))
    est = d3s.estimate(left, right, RIG)
    assert est.density == 0
    assert share_of_each(est.flags)["LOW_TEXTURE"] > 0.95
    assert row_of_failure("a wall without texture") == "`LOW_TEXTURE`"
