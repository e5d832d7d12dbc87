"""Fit the model of wrong disparities, `TrustModel` of `d3s.estimate.joint.trust`.

    .venv/bin/python benchmarks/tune_trust.py sharp FOLDER
    .venv/bin/python benchmarks/tune_trust.py defocused [ROOMS]

FOLDER is a data set as `d3s evaluate stereo` reads it. ROOMS is the folder of `d3s evaluate rooms
--patterns tuning --keep ROOMS`. A disparity counts as wrong if it is off by more than 1 px. Every
pair weighs the same. Prints the share of wrong disparities among the most trusted 50, 70 and 80 %
of each pair, by a model that was fitted without that pair, and then the model of all pairs.
"""

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import d3s
from d3s.estimate.joint import trust
from d3s.estimate.joint.method import run_joint
from d3s.estimate.joint.types import Evidence, TrustModel
from d3s.lab.evaluate import TUNING_PATTERNS
from d3s.lab.evaluate.stereo.scene import find_scenes, read_scene
from d3s.lab.twin.pair import Scene
from d3s.rig import Rig
from d3s.runtime.scratch import borrow_scratch
from d3s.types import FloatArray, Mask

SAMPLES = 6000  # cells of a pair
AT = (0.5, 0.7, 0.8)
LENS = Rig.paper_prototype()


class Cells(NamedTuple):
    """Features and verdicts of the judged cells of one pair."""

    name: str
    values: FloatArray  # (cells, features)
    is_wrong: Mask


def _features(evidence: Evidence) -> Any:
    """Images that the coefficients of the model multiply, by the oracle of the tests."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    return import_module("oracle.support").features(evidence)


def cells_of(
    name: str,
    views: tuple[FloatArray, FloatArray],
    truth_px: FloatArray,
    rig: Rig,
    options: d3s.JointOptions | None = None,
) -> Cells:
    """Features of a pair by the method as it is, and which of its disparities are wrong."""
    left, right = (np.asarray(view, dtype=np.float32) for view in views)
    original, gathered = trust.gather_evidence, []

    def recorded(*arguments: Any) -> Evidence:
        gathered.append(original(*arguments))
        return gathered[-1]

    with borrow_scratch() as memory, patch.object(trust, "gather_evidence", recorded):
        result = run_joint(left, right, rig, options or d3s.JointOptions(), memory)
        side = -(-left.shape[0] // result.fit.flags.shape[0])
        truth = truth_px[side // 2 :: side, side // 2 :: side]
        rows, cols = truth.shape
        values = np.stack([part[:rows, :cols] for part in _features(gathered[-1])], axis=-1)
        error = np.abs(result.fit.disparity_px[:rows, :cols] - truth)
        is_judged = np.isfinite(truth) & (result.fit.flags[:rows, :cols] == 0)
        is_judged &= result.fit.correlation[:rows, :cols] > 0.05
    return Cells(name, values[is_judged].astype(np.float64), error[is_judged] > 1)


def sharp_cells(folder: str) -> Iterator[Cells]:
    """Scenes of a stereo data set, where both views show the point."""
    for files in find_scenes(folder).scenes:
        scene = read_scene(files)
        truth = np.where(~scene.occluded, scene.disparity_px, np.nan)
        options = d3s.JointOptions(depth_range_m=scene.depth_range_m)
        yield cells_of(scene.name, (scene.left, scene.right), truth, scene.rig, options)


def defocused_cells(rooms: str | None) -> Iterator[Cells]:
    """Planes, scenes and bars of the tuning textures, and rooms."""
    for name, scene, noise in _scenes():
        pair = d3s.simulate(scene, LENS, shape=(400, 600), noise=noise, seed=5)
        yield cells_of(name, (pair.left, pair.right), pair.disparity_px, LENS)
    if rooms is not None:
        from d3s.lab.evaluate.rooms import RoomSweep
        from d3s.lab.rooms.store import load_or_render

        sweep = RoomSweep(patterns=TUNING_PATTERNS, count=4)
        for (number,) in sweep.places:
            pair = load_or_render(sweep.room(number), LENS, rooms)
            rng = np.random.default_rng(number)
            views = tuple(
                view + rng.normal(0, 0.01, view.shape) for view in (pair.left, pair.right)
            )
            truth = LENS.optics.disparity_px(pair.depth_m)
            yield cells_of(f"room {number}", (views[0], views[1]), truth, LENS)


def _scenes() -> Iterator[tuple[str, Scene, float]]:
    """Scenes of the twin with their noise; seeds from 1000 on are not those of reports."""
    for place, depth_m in enumerate((0.35, 0.5, 0.8, 1.2, 1.7, 2.1)):
        for shift, (contrast, noise) in enumerate(((1.0, 0.01), (0.1, 0.005), (0.2, 0.005))):
            pattern = TUNING_PATTERNS[(2 * place + shift) % len(TUNING_PATTERNS)]
            texture = d3s.Texture(pattern=pattern, seed=1000 + place, contrast=contrast)
            scene = d3s.Plane(depth_m=depth_m, texture=texture)
            yield f"plane {depth_m} m, {pattern}, contrast {contrast}", scene, noise
    for seed in range(1000, 1016):
        surfaces = "weak" if seed % 2 else "textured"
        scene = d3s.RandomScene(
            seed=seed, nearest_m=0.4, patterns=TUNING_PATTERNS, surfaces=surfaces
        )
        yield f"{surfaces} scene {seed}", scene, 0.01
    for depth_m in (0.6, 0.7, 0.85, 1.0, 1.2):
        yield f"bars at {depth_m} m", _bars(depth_m), 0.01


def _bars(depth_m: float) -> Scene:
    """Vertical bars, 10 and 14 px wide, before a textured wall."""
    mask = np.zeros((400, 600), dtype=np.float32)
    for place, first in enumerate(range(120, 560, 70)):
        mask[:, first : first + (10, 14)[place % 2]] = 1
    bar, wall = (d3s.Texture(pattern=name, seed=1000) for name in TUNING_PATTERNS[:2])
    layers = [
        d3s.Layer(depth_m=depth_m, mask=mask, texture=bar),
        d3s.Layer(depth_m=1.5, texture=wall),
    ]
    return d3s.Layered(layers=layers)


def fit(cells: list[Cells], seed: int = 0) -> NDArray[np.float64]:
    """Coefficients of the logistic model, by Newton's method, each pair with equal weight."""
    rng = np.random.default_rng(seed)
    values, is_wrong = [], []
    for one in cells:
        some = rng.choice(len(one.values), SAMPLES)
        values.append(one.values[some])
        is_wrong.append(one.is_wrong[some])
    matrix = np.column_stack([np.ones(SAMPLES * len(cells)), np.concatenate(values)])
    target = np.concatenate(is_wrong).astype(np.float64)
    found = _logistic(matrix, target)
    if found[1] > 0:  # of the margin: more margin is never worse, its minimum close by says all
        matrix[:, 1] = 0
        found = _logistic(matrix, target)
    return found


def _logistic(matrix: FloatArray, target: FloatArray) -> NDArray[np.float64]:
    found = np.zeros(matrix.shape[1])
    for _ in range(40):
        wrong = 1 / (1 + np.exp(-np.clip(matrix @ found, -30, 30)))
        weight = wrong * (1 - wrong) + 1e-9
        hessian = (matrix * weight[:, None]).T @ matrix + 1e-3 * np.eye(found.size)
        found += np.linalg.solve(hessian, matrix.T @ (target - wrong))
    return found


def bad_shares(cells: Cells, model: NDArray[np.float64]) -> list[float]:
    """Share of wrong disparities among the most trusted ones, at each of `AT`."""
    order = np.argsort(model[0] + cells.values @ model[1:], kind="stable")
    return [float(np.mean(cells.is_wrong[order[: int(at * order.size)]])) for at in AT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("sharp", "defocused"))
    parser.add_argument("folder", nargs="?")
    given = parser.parse_args()
    if given.kind == "sharp" and given.folder is None:
        parser.error("name the folder of a stereo data set.")
    cells = list(
        sharp_cells(given.folder) if given.kind == "sharp" else defocused_cells(given.folder)
    )
    print("wrong among the most trusted 50, 70, 80 % and all; each pair left out of its model (%)")
    shares = []
    for place, one in enumerate(cells):
        model = fit(cells[:place] + cells[place + 1 :])
        shares.append([*bad_shares(one, model), float(one.is_wrong.mean())])
        print(
            one.name.ljust(44), " ".join(f"{100 * share:6.2f}" for share in shares[-1]), flush=True
        )
    mean = np.mean(shares, axis=0)
    print("mean".ljust(44), " ".join(f"{100 * share:6.2f}" for share in mean))
    model = TrustModel(*(round(float(number), 2) for number in fit(cells)))
    print(model)


if __name__ == "__main__":
    main()
