"""Fit the models of `d3s.dense.model`: weak depths, paths, other surfaces, and errors.

    .venv/bin/python benchmarks/tune_dense.py ROOMS

ROOMS is the folder of `d3s evaluate rooms --patterns tuning --rooms 4 --keep ROOMS`; missing rooms
are rendered. Rooms and scenes of the twin with plain surfaces, all with tuning textures, are
densified with weak depths and without. Prints, for each room, figures of the fill by a model that
was fitted without it, and then the models of all frames.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from d3s.dense import model as fitted
from d3s.dense.candidates import PathModel
from d3s.dense.evidence import WeakModel, make_ground, weak_features
from d3s.dense.judge import FEATURES, FillModel, Ground, features_at
from d3s.dense.model import GROSS, depth_span_m, sigma_of
from d3s.dense.planes import BLOCK_CELLS
from d3s.types import FloatArray
from dense_frames import DenseFrame, tuning_frames

SAMPLES = 5000  # cells of a frame
ROOM_WEIGHT = 3.0  # of a room, against 1 of a scene
RARE = 6  # power by which features count more where gross errors are rare
MOST_PX = 1.0  # disparity by which a candidate may be off and still be right


class Sample(NamedTuple):
    """Some holes of a frame: features, and depths in metres."""

    name: str
    weight: float
    features: FloatArray
    filled_m: FloatArray
    true_m: FloatArray
    per_dpt_px: float
    span_m: float

    @property
    def error_m(self) -> FloatArray:
        """Error of the filled depth."""
        return self.filled_m - self.true_m

    @property
    def error_px(self) -> FloatArray:
        """Error of the filled disparity."""
        return self.per_dpt_px * (1 / self.filled_m - 1 / self.true_m)

    @property
    def is_gross(self) -> NDArray[np.bool_]:
        """Whether the depth is that of another surface."""
        return np.abs(self.error_m) > GROSS * self.filled_m


def logistic(matrix: FloatArray, target: FloatArray, weight: FloatArray) -> FloatArray:
    """Coefficients of a logistic model, by Newton's method on scaled features."""
    scale = np.maximum(matrix.std(axis=0), 1e-6)
    scale[0] = 1.0
    scaled, found = matrix / scale, np.zeros(matrix.shape[1])
    for _ in range(25):
        share = 1 / (1 + np.exp(-np.clip(scaled @ found, -30, 30)))
        curve = weight * (share * (1 - share) + 1e-9)
        hessian = (scaled * curve[:, None]).T @ scaled + 1e-4 * weight.sum() * np.eye(found.size)
        slope = scaled.T @ (weight * (target - share)) - 1e-4 * weight.sum() * found
        found += np.linalg.solve(hessian, slope)
    return found / scale


def log_error(matrix: FloatArray, error: FloatArray, weight: FloatArray) -> FloatArray:
    """Coefficients of ln sigma of normal errors, by maximum likelihood."""
    scale = np.maximum(matrix.std(axis=0), 1e-6)
    scale[0] = 1.0
    scaled, square = matrix / scale, error**2 + 1e-4

    def loss(found: FloatArray) -> tuple[float, FloatArray]:
        log = np.clip(scaled @ found, -6, 3)
        ratio = square * np.exp(-2 * log)
        value = weight @ (0.5 * ratio + log) / weight.sum()
        return float(value), scaled.T @ (weight * (1 - ratio)) / weight.sum()

    start = np.zeros(matrix.shape[1])
    start[0] = -1.0
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x) / scale


def weak_model(frames: list[DenseFrame], rng: np.random.Generator) -> WeakModel:
    """Fit the log-odds of weak depths."""
    values, target = [], []
    for frame in frames:
        cells, is_measured = frame.cells
        features = weak_features(frame.cells)
        weak = np.flatnonzero((cells.valid & ~is_measured).ravel())
        if weak.size:
            some = rng.choice(weak, SAMPLES)
            gap = cells.disparity_px - frame.true_cells_px
            values.append(features.reshape(-1, features.shape[-1])[some])
            target.append(np.abs(gap.ravel()[some]) < MOST_PX)
    matrix, right = np.concatenate(values).astype(float), np.concatenate(target).astype(float)
    return WeakModel(*np.round(logistic(matrix, right, np.ones(len(right))), 3).tolist())


def path_model(frames: list[DenseFrame], weak: WeakModel, rng: np.random.Generator) -> PathModel:
    """Fit the log-odds of the candidates of paths."""
    values, target = [], []
    for frame in frames:
        ground = make_ground(frame.cells, weak)
        for side in ground.paths:
            source = side.source.ravel()
            here = np.arange(source.size)
            is_hole = ~frame.cells.is_measured.ravel()
            use = np.flatnonzero((source >= 0) & (source != here) & is_hole)
            if not use.size:
                continue
            use = rng.choice(use, SAMPLES)
            gap = _carried(ground, source[use], use) - frame.true_cells_px.ravel()[use]
            parts = (side.length.ravel()[use], side.edge.ravel()[use])
            values.append(np.stack([np.ones(SAMPLES), *map(np.log1p, parts)], axis=1))
            target.append(np.abs(gap) < MOST_PX)
    matrix, right = np.concatenate(values).astype(float), np.concatenate(target).astype(float)
    found = logistic(matrix, right, np.ones(len(right)))
    return PathModel(*(np.float32(round(float(one), 3)) for one in found))


def _carried(ground: Ground, source: NDArray[np.int32], pixel: NDArray[np.int64]) -> FloatArray:
    """Disparity at the pixels from planes through the sources."""
    cols = ground.evidence.disparity_px.shape[1]
    (row, col), (at_row, at_col) = np.divmod(pixel, cols), np.divmod(source, cols)
    block = at_row // BLOCK_CELLS, at_col // BLOCK_CELLS
    rise = ground.blocks.down[block] * (row - at_row) + ground.blocks.right[block] * (col - at_col)
    return np.asarray(ground.evidence.disparity_px[at_row, at_col] + rise, dtype=np.float64)


def samples_of(
    frames: list[DenseFrame], weak: WeakModel, paths: PathModel, rng: np.random.Generator
) -> Iterator[Sample]:
    """Holes of all frames."""
    for frame in frames:
        holes = np.argwhere(~frame.cells.is_measured)
        holes = holes[rng.choice(len(holes), min(SAMPLES, len(holes)), replace=False)]
        disparity, features = features_at(make_ground(frame.cells, weak), paths, holes)
        per_dpt = frame.per_dpt_px
        known = np.isfinite(disparity) & (disparity > 0.1)
        depth = per_dpt / disparity[known].astype(float)
        true = per_dpt / frame.true_cells_px[tuple(holes[known].T)].astype(float)
        span = depth_span_m(frame.depth_map.depth_m[frame.is_measured])
        weight = ROOM_WEIGHT if frame.is_room else 1.0
        yield Sample(frame.name, weight, features[known].astype(float), depth, true, per_dpt, span)


def fill_model(samples: list[Sample]) -> FillModel:
    """Fit the model of gross errors, and that of the others."""
    matrix = np.concatenate([one.features for one in samples])
    gross = np.concatenate([one.is_gross for one in samples])
    error = np.concatenate([one.error_px for one in samples])
    weight = np.concatenate([np.full(len(one.true_m), one.weight) for one in samples])
    odds = logistic(matrix, gross.astype(float), weight)
    # Claims are made where gross errors are rare: there the model has to be right.
    for _ in range(2):
        share = 1 / (1 + np.exp(-np.clip(matrix @ odds, -30, 30)))
        odds = logistic(matrix, gross.astype(float), weight * (1 - share) ** RARE + 1e-3)
    core = log_error(matrix[~gross], error[~gross], weight[~gross])
    return FillModel(*(np.round(one, 3).astype(np.float32) for one in (odds, core)))


def figures(one: Sample, model: FillModel) -> str:
    """Coverage and errors of a sample by a model."""
    gross = 1 / (1 + np.exp(-(one.features @ model.gross)))
    error_px = np.exp(np.minimum(one.features @ model.error, 3))
    sigma = sigma_of(one.filled_m, error_px, gross, (one.per_dpt_px, one.span_m))
    error = np.abs(one.error_m)
    text = f"{one.name:34}"
    for most in (0.05, 0.1, np.inf):
        use = sigma < most
        if use.any():
            e, s = error[use], sigma[use]
            text += (
                f" | {100 * use.mean():5.1f} % MAE {100 * e.mean():5.2f} cm, > 15 cm "
                f"{100 * np.mean(e > 0.15):4.1f} %, 1 s {100 * np.mean(e < s):3.0f}, 3 s "
                f"{100 * np.mean(e < 3 * s):5.1f}"
            )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms")
    parser.add_argument("--keep-paths", action="store_true", help="Fit the fill alone.")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    frames = list(tuning_frames(given.rooms))
    with_weak = [frame for frame in frames if frame.has_weak]
    weak, paths = fitted.WEAK, fitted.PATHS
    if not given.keep_paths:
        weak = weak_model(with_weak, rng)
        paths = path_model(with_weak, weak, rng)
    print(weak, paths, sep="\n", flush=True)
    samples = list(samples_of(frames, weak, paths, rng))
    print(
        "share of the holes with sigma < 5 cm, < 10 cm, and all; each frame left out of its model"
    )
    for one in samples:
        if one.name.startswith("room"):
            others = [other for other in samples if other.name[:6] != one.name[:6]]
            print(figures(one, fill_model(others)), flush=True)
    model = fill_model(samples)
    for name, odds, error in zip(FEATURES, *model, strict=True):
        print(f"    ({odds:.3f}, {error:.3f}),  # {name}")
    gross = np.concatenate([one.error_m[one.is_gross] for one in samples])
    print(f"gross errors: root mean square {np.sqrt(np.mean(gross**2)):.3f} m")


if __name__ == "__main__":
    main()
