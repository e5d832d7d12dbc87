"""Camera with typical lenses that choices are made on: what its calibration finds beside the truth.

    .venv/bin/python benchmarks/tune_lenses.py [--folder FOLDER]

The boards are those of the sets `tuning_flat` and `tuning_lens` (without and with field curvature),
the walls have textures of the tuning. The first table compares coma and the bowl of the board with
the truth. The second one is for the numbers by which `joint` takes coma into account
(`d3s.estimate.lens_field.COMA_GAIN`, `COMA_SMOOTHING_PX`): the disparity that it adds to walls of
all textures alike, which a map of the board can hold, that by which textures differ, and the
standard deviation by noise that `joint` expects. The third one is for the prefilter and the window
of `consensus` (`d3s.calibrate.tuning.COMA_CONSENSUS`): its mean absolute error on the middle rows
of the walls, with a and b tuned for each.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

import d3s
from calibration import FOLDER
from calibration_sets import SENSOR, SETS, render, wall_file
from d3s.calibrate import steps
from d3s.calibrate.alignment import lens_maps_of, with_lenses
from d3s.calibrate.disparity_map import measure_cells
from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.tuning import CONSENSUS
from d3s.estimate import lens_field
from d3s.estimate.joint.correction import SizeCorrection
from d3s.estimate.joint.kernels import lenses as kernels
from d3s.files import read_image, write_image
from d3s.rig import LensMaps
from d3s.types import Image

PATTERNS = ("stone", "leaves", "wood", "fabric")
WALLS_M = (0.6, 1.0, 1.4, 1.9)
# Gain, and smoothing by scale in px; the last gain takes no coma.
NUMBERS = (
    (1.0, (1.0, 1.5, 5.0)),
    (1.25, (1.0, 1.5, 5.0)),
    (1.25, (1.5, 2.5, 5.0)),
    (1.25, (1.75, 3.0, 6.0)),
    (1.25, (2.5, 4.0, 6.0)),
    (1.0, (1.75, 3.0, 6.0)),
    (1.5, (1.75, 3.0, 6.0)),
    (0.0, (1.75, 3.0, 6.0)),
)
# Prefilter and window of the consensus, in px.
CONSENSUS_NUMBERS = ((4.0, 31), (6.0, 31), (4.0, 41), (6.0, 41), (6.0, 57))
MIDDLE_ROWS_PX = 120
FLAT = Board()


class Walls(NamedTuple):
    """Walls of all textures at one depth, as both views see them."""

    views: list[tuple[Image, Image]]
    depths_m: list[float]


def main() -> None:
    """Render, calibrate and show."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the captures are")
    folder: Path = parser.parse_args().folder
    truth = Table("set", "what", "found", "true", title="Tuning camera")
    rigs = {}
    for name in ("tuning_flat", "tuning_lens"):
        render(name, folder / name)
        rig, report = d3s.calibrate(folder / name, bayer="none")
        bend_per_m = (0.0, 0.0, 0.0) if report.distortion is None else report.distortion.bend_per_m
        for row in _beside_truth(name, lens_maps_of(rig), bend_per_m):
            truth.add_row(*row)
        rigs[name] = rig
    console = Console(width=110)
    console.print(truth)
    console.print(_differences("tuning_flat", folder, rigs["tuning_flat"]))
    for name in ("tuning_flat", "tuning_lens"):
        console.print(_consensus_errors(name, folder))


def _beside_truth(name: str, lenses: LensMaps, bend_per_m: Sequence[float]) -> list[list[str]]:
    """Coma of both lenses at the field radius, and the bowl of the board, as rows of a table."""
    optics, captures = d3s.Rig.paper_prototype().optics, SETS[name]
    rows = []
    found = (lenses.coma_left_px[2], lenses.coma_right_px[2])
    for side, errors, here in zip(("left", "right"), captures.lenses, found, strict=True):
        # The path changes by c |u|² (e · u) over the pupil: its mean slope is c over the radius.
        slope = errors.coma_field_waves * errors.wavelength_m / optics.aperture_radius_m
        size_px = slope * optics.sensor_distance_m / optics.pixel_pitch_m
        true_px = size_px * lenses.field_radius_px / errors.field_radius_px
        rows.append([name, f"coma, {side} (px)", f"{-here:.2f}", f"{true_px:.2f}"])
    bowls = [0.5 * (bend[0] + bend[2]) for bend in (bend_per_m, captures.bend_per_m)]
    return [*rows, [name, "bowl (1/m)", *(f"{bowl:.3f}" for bowl in bowls)]]


def _differences(name: str, folder: Path, rig: d3s.Rig) -> Table:
    """Disparity that all textures share, and by which they differ, with other numbers for coma."""
    table = Table("gain", "smoothing (px)", title=f"{name}: shared, between textures, noise (px)")
    for depth_m in WALLS_M:
        table.add_column(f"{depth_m:g} m", justify="right")
    none: dict[str, Any] = {"disparity_px": (), "sharp_disparity_px": (0.0,)}
    rig = SizeCorrection().applied_to(with_lenses(rig, **none))
    walls = [_walls(name, folder, rig, depth_m) for depth_m in WALLS_M]
    radius_px = lens_maps_of(rig).field_radius_px
    for gain, smoothing_px in NUMBERS:
        row = [f"{gain:g}", " ".join(f"{one:g}" for one in smoothing_px)]
        by_scale = dict(zip((1, 2, 4), smoothing_px, strict=True))
        with (
            patch.object(kernels, "COMA_GAIN", gain),
            patch.object(lens_field, "COMA_SMOOTHING_PX", by_scale),
        ):
            for same in walls:
                cells = measure_cells(same.views, same.depths_m, rig, FLAT, radius_px)
                shared = np.nanmean(cells.residual_px, axis=0)
                spreads = (np.nanstd(shared), np.nanstd(cells.residual_px - shared))
                noise = np.nanmedian(cells.sigma_px)
                row.append(" ".join(f"{one:.4f}" for one in (*spreads, noise)))
        table.add_row(*row)
    return table


def _consensus_errors(name: str, folder: Path) -> Table:
    """Errors of consensus on the middle rows, means of the textures, by prefilter and window."""
    table = Table("prefilter, window (px)", title=f"{name}: consensus, C > 0.8: MAE (cm)")
    for depth_m in WALLS_M:
        table.add_column(f"{depth_m:g} m", justify="right")
    for prefilter_px, window_px in CONSENSUS_NUMBERS:
        options = CONSENSUS.replace(prefilter_sigma_px=prefilter_px, window_px=window_px)
        with patch.object(steps, "options_for_lenses", return_value=options):
            rig, _ = d3s.calibrate(folder / name, bayer="none")
        row = [f"{prefilter_px:g}, {window_px}"]
        for depth_m in WALLS_M:
            errors_cm = []
            for left, right in _walls(name, folder, rig, depth_m).views:
                top = (left.shape[0] - MIDDLE_ROWS_PX) // 2
                rows = slice(top, top + MIDDLE_ROWS_PX)
                found = d3s.estimate(left[rows], right[rows], rig, method="consensus")
                error_m = found.filter(min_confidence=0.8).depth_m - depth_m
                errors_cm.append(100 * np.nanmean(np.abs(error_m)))
            row.append(f"{np.mean(errors_cm):.2f}")
        table.add_row(*row)
    return table


def _walls(name: str, folder: Path, rig: d3s.Rig, depth_m: float) -> Walls:
    views = []
    for number, pattern in enumerate(PATTERNS):
        path = wall_file(folder / f"{name}_tuning_walls", pattern, depth_m)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, SETS[name].light_of_wall(pattern, depth_m))
        rng = np.random.default_rng((number, round(1e3 * depth_m)))
        views.append(rig.split(SENSOR.expose(read_image(path), camera=0, rng=rng)))
    return Walls(views, [depth_m] * len(views))


if __name__ == "__main__":
    main()
