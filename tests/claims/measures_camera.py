"""What the claims about a camera measure: splitting, calibration, drift, design, frames, errata."""

import ast
import json
import os
import re
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import cv2
import numpy as np

import d3s
from calibrations import calibration
from check_frames import raw_of
from check_frames import small_rig as rig_of_frames
from measures_depth import TEXTURES
from pairs import PINHOLE, write_views
from small_camera import SMALL_LAYOUT, SMALL_MOUNTS, small_rig

ROOT = Path(__file__).resolve().parents[2]
LENSES = (
    d3s.LensErrors(
        field_radius_px=200.0, distortion_third=-0.006, decentring_x=0.0005,
        focus_sagittal_dpt=1.4, focus_tangential_dpt=3.0, falloff=0.08,
    ),
    d3s.LensErrors(
        field_radius_px=200.0, distortion_third=-0.009, distortion_fifth=0.001,
        focus_sagittal_dpt=1.2, focus_tangential_dpt=2.6, transmission=0.95, falloff=0.1,
    ),
)  # fmt: skip
PERFECT = (d3s.LensErrors(), d3s.LensErrors())
BOARDS_M = tuple(np.round(np.geomspace(0.3, 0.9, 11), 3).tolist())
WALLS_M = (0.35, 0.5, 0.75)


# Calibration --------------------------------------------------------------------------------------


def raw_frame(depth_m: float, texture: str, seed: int, lenses: Any, tilt_rad: float = 0.0) -> Any:
    """Raw frame of a wall or a tilted board."""
    board = d3s.TiltedPlane(depth_m=depth_m, tilt_x_rad=tilt_rad, texture=texture)
    sensor = {"noise": 0.005, "layout": SMALL_LAYOUT, "mounts": SMALL_MOUNTS}
    return d3s.simulate_raw(board, small_rig(), seed=seed, lenses=lenses, **sensor)


@cache
def calibrated(lenses: Any = PERFECT) -> tuple[d3s.Rig, Any]:
    """Rig from boards at eleven distances, and the truth of its geometry."""
    boards = [raw_frame(z, "calibration", n, lenses, 0.01) for n, z in enumerate(BOARDS_M)]
    rig, _ = d3s.calibrate([one.image for one in boards], BOARDS_M, design=small_rig())
    return rig, boards[0].truth()


def anchor_error_px() -> float:
    """Largest error of an anchor."""
    rig, truth = calibrated()
    found = rig.calibration
    left = np.subtract(found.anchor_left_px, truth["anchor_left_px"])
    right = np.subtract(found.anchor_right_px, truth["anchor_right_px"])
    return float(np.abs([left, right]).max())


def roll_error_mdeg() -> float:
    """Error of the roll between the lenses, in thousandths of a degree."""
    rig, truth = calibrated()
    wrong = rig.calibration.rectify_angle_rad - float(truth["rectify_angle_rad"])
    return 1e3 * abs(float(np.degrees(wrong)))


@cache
def walls(lenses: Any = PERFECT) -> tuple[np.ndarray, np.ndarray]:
    """Errors of a calibrated camera on walls of another texture, in px of disparity, and sigma."""
    rig, _ = calibrated(lenses)
    errors, sigmas = [], []
    for depth_m in WALLS_M:
        left, right = rig.split(raw_frame(depth_m, "gravel", 100, lenses).image)
        found = d3s.estimate(left, right, rig, options={"depth_range_m": (0.2, 1.2)})
        px_per_m = rig.optics.focal_length_px * rig.optics.baseline_m / depth_m**2
        errors.append(px_per_m * (found.depth_m - depth_m).ravel())
        sigmas.append(px_per_m * found.sigma_m.ravel())
    return np.concatenate(errors), np.concatenate(sigmas)


def wall_error_px(lenses: Any = PERFECT) -> float:
    """Mean absolute error on walls, in px of disparity."""
    return float(np.nanmean(np.abs(walls(lenses)[0])))


def walls_within(sigmas: float, lenses: Any = PERFECT) -> float:
    """Errors on walls within a number of sigma, in percent."""
    error, sigma = (part[np.isfinite(walls(lenses)[0])] for part in walls(lenses))
    return 100 * float((np.abs(error) < sigmas * sigma).mean())


# Splitting ----------------------------------------------------------------------------------------


def crooked_rig() -> d3s.Rig:
    """Rig of frames of 120 x 260 px, each part of whose geometry has a fraction."""
    geometry = calibration(
        anchor_left_px=(188.3, 61.7),
        anchor_right_px=(66.6, 57.2),
        rectify_scale=1.01,
        rectify_angle_rad=0.03,
        rectify_shift_y_px=2.4,
        frame_rows_px=120,
        frame_cols_px=260,
    )
    return d3s.Rig.paper_prototype().replace(calibration=geometry)


def _waves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 0.5 + 0.2 * np.sin(0.31 * x + 0.17 * y) + 0.15 * np.cos(0.45 * y - 0.11 * x)


def split_error() -> float:
    """Largest error of a view that is read at fractions of pixels, of full scale."""
    y, x = np.mgrid[:120, :260]
    left, right = crooked_rig().split(_waves(x, y).astype(np.float32))
    v, u = np.mgrid[-30:31, -40:41]
    cos, sin = np.cos(-0.03), np.sin(-0.03)
    # The inverse of: turn by 0.03, magnify by 1.01, shift down by 2.4.
    turned = cos * u - sin * (v - 2.4), sin * u + cos * (v - 2.4)
    true = _waves(188.3 + u, 61.7 + v), _waves(66.6 + turned[0] / 1.01, 57.2 + turned[1] / 1.01)
    return float(max(np.abs(a - b).max() for a, b in zip((left, right), true, strict=True)))


def split_bytes_that_differ() -> float:
    """Bytes of the views that change with two threads and with the rig written and read."""
    counts = np.random.default_rng(0).integers(0, 65536, (120, 260), dtype=np.uint16)
    rig = crooked_rig()
    with TemporaryDirectory() as folder:
        rig.save(Path(folder) / "rig.toml")
        loaded = d3s.Rig.load(Path(folder) / "rig.toml")
    views = []
    for camera, threads in ((rig, "1"), (loaded, "2")):
        with patch.dict(os.environ, D3S_THREADS=threads):
            views.append(np.stack(camera.split(counts)).view(np.uint8))
    return float((views[0] != views[1]).sum())


# Drift --------------------------------------------------------------------------------------------

DRIFT = {"rows_px": 0.5, "roll_rad": np.radians(0.1), "scale": 1e-3, "gain": 0.05}


@cache
def raw_scenes() -> list[np.ndarray]:
    """Raw frames of six scenes by a camera with two lenses on one sensor."""
    scenes = [
        d3s.RandomScene(seed=seed, nearest_m=0.4, farthest_m=1.2, patterns=TEXTURES)
        for seed in range(6)
    ]
    return [raw_of(one, seed) for seed, one in enumerate(scenes)]


def _moved(raw: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Raw frame whose right view has drifted."""
    right, left = np.hsplit(raw, 2)
    some = {name: value if name in names else 0.0 for name, value in DRIFT.items()}
    middle = (right.shape[1] - 1) / 2, (right.shape[0] - 1) / 2
    matrix = cv2.getRotationMatrix2D(middle, -np.degrees(some["roll_rad"]), 1 + some["scale"])
    matrix[1, 2] += some["rows_px"]
    size, border = right.shape[::-1], cv2.BORDER_REFLECT
    moved = cv2.warpAffine(right, matrix, size, flags=cv2.INTER_LANCZOS4, borderMode=border)
    return np.hstack([np.float32(1 + some["gain"]) * moved, left])


@cache
def drift(*names: str) -> dict[str, float]:
    """What `d3s.check` says has drifted, by name, where these have: found over true."""
    report = d3s.check(rig_of_frames(), [_moved(one, names) for one in raw_scenes()])
    return {name: abs(report[name].value / DRIFT.get(name, np.nan)) for name in report.drift}


def drifts_named() -> float:
    """Drifts that are named when each happens alone, and nothing else with it."""
    return float(sum(tuple(drift(name)) == (name,) for name in DRIFT))


def worst_drift(*names: str) -> float:
    """Largest difference between a drift as found and as it is, in percent of it."""
    return 100 * max(abs(drift(*names).get(name, np.inf) - 1) for name in names)


# Design -------------------------------------------------------------------------------------------


def worst_prediction() -> float:
    """Largest factor between the error predicted for the prototype and that of simulated planes."""
    from d3s.lab.design import Camera, predict, verify

    depths_m = [0.4, 0.9, 2.0]
    predicted = predict(Camera.paper_prototype(), depths_m=depths_m)
    measured = np.array([one.mae_m for one in verify(predicted, depths_m)])
    return float(np.exp(np.abs(np.log(predicted.mae_m / measured)).max()))


def smallest_camera_mm() -> float:
    """Longest side of the smallest camera with an error of 1 cm from 0.3 to 2 m."""
    from d3s.lab.design import Requirements, search

    found = search(Requirements(reach_m=(0.3, 2.0), error_m=0.01, max_size_m=15e-3))
    return 1e3 * min(one.size_m for one in found.answers)


# Frames -------------------------------------------------------------------------------------------


def lost_or_stale_frames(count: int = 20) -> float:
    """Frames without a result of the live pipeline, and results that belong to another frame."""
    from d3s.camera.live.pipeline import Pipeline
    from d3s.frames import Frame
    from live_pages import RIG, FakeCamera, depth_of, views

    frames = [Frame(number=number, views=views(number % 2)) for number in range(count)]
    d3s.estimate(*views(0), RIG)  # which compiles it: that can take minutes on a busy machine
    shown, done = {}, threading.Event()
    with Pipeline(FakeCamera(frames), RIG, drop=False) as pipeline:

        def read() -> None:
            result = pipeline.results.read()
            shown[result.number] = float(np.nanmedian(result.depth_map.depth_m))
            if pipeline.counts.computed + pipeline.counts.failed >= count:
                done.set()

        pipeline.results.listeners.append(read)
        done.wait(120)
        lost = count - pipeline.counts.computed
    stale = sum(abs(depth_m - depth_of(number)) > 0.02 for number, depth_m in shown.items())
    return float(lost + stale)


def recorded_frames_that_differ() -> float:
    """Frames that do not come back bit for bit from a recording."""
    from d3s.camera.recording import Recording, RecordingWriter
    from d3s.frames import Frame

    rng = np.random.default_rng(4)
    raw = [rng.integers(0, 4096, (120, 260), dtype=np.uint16) for _ in range(5)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "frames.mcap"
        with RecordingWriter(path, rig=crooked_rig()) as writer:
            for number, counts in enumerate(raw):
                writer.write(Frame(number=number, counts=counts, full_scale=4095, time_s=number))
        with Recording(path) as recording:
            back = [frame.counts for frame in recording]
    return float(len(raw) - sum(np.array_equal(a, b) for a, b in zip(raw, back, strict=True)))


def resumed_files_that_differ() -> float:
    """Files that differ between `d3s depth` of a folder and one that was cut short and resumed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        for number in range(6):
            left, right = (folder / f"in/{number}_{side}.png" for side in ("left", "right"))
            write_views(left, right, seed=number)
        whole, cut = _depth_of(folder, "whole"), _depth_of(folder, "cut")
        for path in sorted(cut)[::2]:  # of some frames a part, of others all
            (folder / "cut" / path).unlink()
        resumed = _depth_of(folder, "cut")
    return float(len(set(whole.items()) ^ set(resumed.items())) + len(set(whole) ^ set(cut)))


def _depth_of(folder: Path, out: str) -> dict[str, bytes]:
    command = ["depth", str(folder / "in"), *PINHOLE, "-o", str(folder / out)]
    subprocess.run([sys.executable, "-m", "d3s", *command, "--quiet"], check=True)
    notes = {"frames.csv", "job.json"}  # of the run: with its times and folders
    return {
        path.name: path.read_bytes() for path in (folder / out).iterdir() if path.name not in notes
    }


# The paper ----------------------------------------------------------------------------------------


def errata_with_a_test() -> float:
    """Errata in docs/reproduction.md whose test is there."""
    page = (ROOT / "docs" / "reproduction.md").read_text()
    rows = re.findall(r"^\| E\d+ \|.*\| (e\d+) \|$", page, flags=re.MULTILINE)
    tests = ast.parse((ROOT / "tests" / "physics" / "test_errata.py").read_text())
    names = " ".join(one.name for one in tests.body if isinstance(one, ast.FunctionDef))
    return float(sum(f"test_{row}_" in names for row in rows))


@cache
def reproduced() -> tuple[int, int]:
    """Items that `d3s reproduce --quick` makes, and values of the paper that ours confirm."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "d3s", "reproduce", "--quick", "--quiet", "-o", folder]
        subprocess.run(command, check=True)
        made = [json.loads(path.read_text()) for path in Path(folder).glob("*/result.json")]
    return len(made), sum(bool(one["agrees"]) for item in made for one in item["comparisons"])
