"""Densified rooms and scenes: how much is filled, how wrong it is, and whether sigma is true.

    .venv/bin/python benchmarks/dense.py [--rooms FOLDER] [--count 4] [--fit]

Scenes of the twin have weak surfaces; path-traced rooms are taken from a folder, or rendered into
it: 300 x 520 px, 64 light paths a pixel. Textures are those of the report. With --fit they are
those for tuning, and the numbers of `d3s.lab.dense.fill` that fit them are printed.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog, minimize

import d3s
from d3s.estimate.methods import estimate_quietly
from d3s.lab.dense import densify, fill
from d3s.lab.dense.surfaces import fit_surfaces, guide_of, per_dpt_px
from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.lab.evaluate.rooms import RoomSweep, render_rooms
from d3s.types import FloatArray, Image, Mask

RIG = d3s.Rig.paper_prototype()
SHAPE, WISH_M, OFF_M = (300, 520), 0.05, 0.15
# Few light paths are quick and noisy: with this sensor noise, there is 1 % of noise in all.
SAMPLES, ROOM_NOISE, NOISE = 64, 0.0075, 0.01
SOME = 5000  # cells of a frame that are fitted
QUANTILE = 0.98  # of the errors on the right surface, that 3 sigma is


class DenseFrame(NamedTuple):
    """Depth map with weak depths, and the truth."""

    name: str
    depth_map: d3s.DepthMap
    true_m: Image


def frames(count: int, rooms: str | None, *, tuning: bool) -> Iterator[DenseFrame]:
    """Scenes, and rooms if a folder is given."""
    patterns, first = (TUNING_PATTERNS, 1000) if tuning else (REPORT_PATTERNS, 200)
    for seed in range(first, first + count):
        scene = d3s.RandomScene(seed=seed, nearest_m=0.4, patterns=patterns, surfaces="weak")
        pair = d3s.simulate(scene, RIG, shape=SHAPE, noise=NOISE, seed=seed)
        yield _frame(f"scene {seed}", pair.left, pair.right, pair.depth_m)
    for seed in range(count if rooms else 0):
        sweep = RoomSweep(
            patterns=patterns, count=1, seed=seed, samples=SAMPLES, shape=SHAPE, noise=ROOM_NOISE
        )
        (clean,) = render_rooms(sweep, RIG, rooms or "")
        trial = sweep.trial_of(clean, (0,))
        yield _frame(f"room {sweep.room(0).seed}", trial.left, trial.right, clean.depth_m)


def _frame(name: str, left: Image, right: Image, true_m: Image) -> DenseFrame:
    return DenseFrame(
        name, estimate_quietly(left, right, RIG, options={"min_confidence": 0.0}), true_m
    )


def judge(frame: DenseFrame) -> list[str]:
    """Figures of a frame as cells of the table."""
    dense, closed = (densify(frame.depth_map, max_sigma_m=most) for most in (WISH_M, None))
    measured = closed.filter(filled=False).valid
    filled = dense.valid & ~measured
    error, everywhere = (np.abs(one.depth_m - frame.true_m) for one in (dense, closed))
    e, s = error[filled], dense.sigma_m[filled]
    within = [np.mean(everywhere[~measured] < closed.sigma_m[~measured] * n) for n in (1, 3)]
    shares = measured.mean(), filled.mean(), *(np.mean(e < n * s) for n in (1, 3)), *within
    gain, off = 1 + filled.sum() / measured.sum(), np.mean(e > OFF_M)
    figures = *(f"{100 * one:.1f}" for one in shares), f"{100 * off:.2f}", f"{100 * e.mean():.2f}"
    return [frame.name, *figures, f"{gain:.2f}"]


def fit(some: list[DenseFrame]) -> None:
    """Print the numbers of the fill that fit some frames."""
    rng = np.random.default_rng(0)
    right: list[tuple[FloatArray, FloatArray]] = []
    for frame in some:
        cells, measured, true_m = _cells(frame)
        weak = cells.valid & (fill.share_around(~measured) > 0)
        wrong = np.abs(cells.depth_m / true_m - 1) > fill.GROSS
        right.append(_drawn(rng, fill.evidence_features(cells, measured), ~wrong, weak))
    fill.RIGHT = show("RIGHT", logistic(*_joined(right)))
    gross, errors = [], []
    for frame in some:
        cells, measured, true_m = _cells(frame)
        disparity_px, weight = fill.evidence_of(cells, measured)
        if not (weight > 0).any():
            continue
        found = fit_surfaces(guide_of(cells), disparity_px, weight)
        features = fill.fill_features(found, weight > 0)
        true_px = per_dpt_px(cells) / true_m
        wrong = np.abs(true_px / found.disparity_px - 1) > fill.GROSS
        gross.append(_drawn(rng, features, wrong, ~measured))
        error = np.log(np.abs(found.disparity_px - true_px) + 1e-3)
        errors.append(_drawn(rng, features, error, ~measured & ~wrong))
    show("_GROSS", logistic(*_joined(gross)))
    show("_ERROR", quantile(*_joined(errors)))


def _cells(frame: DenseFrame) -> tuple[d3s.DepthMap, Mask, Image]:
    cells, measured = fill.cells_of(frame.depth_map, fill.measured_pixels(frame.depth_map))
    return cells, measured, frame.true_m[:: fill.CELL_PX, :: fill.CELL_PX]


def _drawn(
    rng: np.random.Generator, features: FloatArray, values: FloatArray | Mask, where: Mask
) -> tuple[FloatArray, FloatArray]:
    chosen = rng.permutation(np.flatnonzero(where))[:SOME]
    return features.reshape(-1, features.shape[-1])[chosen], values.ravel()[chosen].astype(float)


def _joined(parts: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    features, values = (np.concatenate(one) for one in zip(*parts, strict=True))
    return np.column_stack([np.ones(len(values)), features]), values


def logistic(features: FloatArray, is_so: FloatArray) -> FloatArray:
    """Coefficients of log-odds, of the greatest likelihood."""

    def loss(numbers: FloatArray) -> tuple[float, FloatArray]:
        odds = features @ numbers
        slope = 1 / (1 + np.exp(-odds)) - is_so
        return float(np.mean(np.logaddexp(0, odds) - is_so * odds)), features.T @ slope / len(slope)

    return np.asarray(minimize(loss, np.zeros(features.shape[1]), jac=True).x)


def quantile(features: FloatArray, values: FloatArray) -> FloatArray:
    """Coefficients of a linear model that a share `QUANTILE` of the values is below."""
    count, width = features.shape
    above = sparse.eye(count)
    cost = np.repeat([0, QUANTILE, 1 - QUANTILE], [width, count, count])
    bounds = [(None, None)] * width + [(0, None)] * (2 * count)
    equal = sparse.hstack([sparse.csr_matrix(features), above, -above]).tocsc()
    found = linprog(cost, A_eq=equal, b_eq=values, bounds=bounds, method="highs-ipm")
    return np.asarray(found.x[:width])


def show(name: str, numbers: FloatArray) -> tuple[float, ...]:
    """Print numbers as a line of the module; return them as it has them."""
    rounded = tuple(round(float(one), 3) for one in numbers)
    print(f"{name} = {rounded}", flush=True)
    return rounded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", help="folder of rendered rooms")
    parser.add_argument("--count", type=int, default=4, help="scenes, and rooms")
    parser.add_argument("--fit", action="store_true")
    given = parser.parse_args()
    some = frames(given.count, given.rooms, tuning=given.fit)
    if given.fit:
        fit(list(some))
        return
    print(
        "frame | measured, filled, within 1 and 3 sigma; of all holes (%) | > 15 cm (%) | ", end=""
    )
    print("MAE (cm) | gain")
    for frame in some:
        print(" | ".join(judge(frame)), flush=True)


if __name__ == "__main__":
    main()
