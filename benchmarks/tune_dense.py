"""Fit the models of `d3s.dense.model`: weak depths, paths, other surfaces, and errors.

    .venv/bin/python benchmarks/tune_dense.py ROOMS

ROOMS is a folder in which rendered rooms are kept; missing ones are rendered, which takes half a
minute each. Rooms and scenes of the twin with plain surfaces, all with tuning textures, are
densified with weak depths and without. Prints, for each room, figures of the fill by a model that
was fitted without it, and then the models of all frames.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from scipy.optimize import minimize

from d3s.dense import model as fitted
from d3s.dense.average import average_surfaces
from d3s.dense.candidates import PathModel
from d3s.dense.evidence import (
    EVIDENCE_FEATURES,
    EvidenceModel,
    evidence_features,
    guide_of,
    make_ground,
    texture_of,
)
from d3s.dense.fill import evidence_of_surfaces
from d3s.dense.judge import FEATURES, FillModel, Ground, features_at, judge_cells
from d3s.dense.model import GROSS, depth_span_m, sigma_of
from d3s.dense.planes import BLOCK_CELLS
from d3s.types import FloatArray
from dense_frames import DenseFrame, tuning_frames

SAMPLES = 3000  # cells of a frame
FOLDS = 4  # parts of the rooms that are left out of the fit in turn
BESIDE = 3  # cells from a hole within which measured depths are evidence for it
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
    for _ in range(12):
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


def evidence_model(frames: list[DenseFrame], rng: np.random.Generator) -> EvidenceModel:
    """Fit the log-odds of measured depths beside holes, and of weak depths."""
    parts: list[list[tuple[FloatArray, FloatArray]]] = [[], []]
    for frame in frames:
        cells, is_measured = frame.cells
        features = evidence_features(frame.cells, texture_of(guide_of(cells)))
        true_px = frame.true_cells_px
        gap = np.abs(cells.disparity_px - cells.rig.optics.disparity_offset_px - true_px)
        is_right = gap < np.maximum(MOST_PX, 0.5 * GROSS * true_px)
        beside = is_measured & binary_dilation(~is_measured, iterations=BESIDE)
        for found, use in zip(parts, (beside, cells.valid & ~is_measured), strict=True):
            if use.any():
                some = rng.choice(np.flatnonzero(use.ravel()), SAMPLES)
                matrix = features.reshape(-1, features.shape[-1])[some].astype(float)
                found.append((matrix, is_right.ravel()[some].astype(float)))
    models = []
    for found in parts:
        matrix, right = (np.concatenate(one) for one in zip(*found, strict=True))
        models.append(np.round(logistic(matrix, right, np.ones(len(right))), 3))
    return EvidenceModel(*(one.astype(np.float32) for one in models))


def path_model(
    frames: list[DenseFrame], evidence: EvidenceModel, rng: np.random.Generator
) -> PathModel:
    """Fit the log-odds of the candidates of paths from evidence that is right."""
    values, target = [], []
    for frame in frames:
        ground = make_ground(frame.cells, evidence)
        true_px = frame.true_cells_px.ravel()
        gaps = np.abs(ground.evidence.disparity_px.ravel() - true_px)
        is_right = gaps < np.maximum(MOST_PX, 0.5 * GROSS * true_px)
        for side in ground.paths:
            source = side.source.ravel()
            here = np.arange(source.size)
            is_hole = ~frame.cells.is_measured.ravel()
            use = (source >= 0) & (source != here) & is_hole & is_right[source]
            use = np.flatnonzero(use)
            if not use.size:
                continue
            use = rng.choice(use, SAMPLES)
            gap = _carried(ground, source[use], use) - true_px[use]
            parts = (side.length.ravel()[use], side.edge.ravel()[use])
            values.append(np.stack([np.ones(SAMPLES), *map(np.log1p, parts)], axis=1))
            target.append(np.abs(gap) < np.maximum(MOST_PX, 0.5 * GROSS * true_px[use]))
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
    frames: list[DenseFrame],
    evidence: EvidenceModel,
    paths: PathModel,
    model: FillModel | None,
) -> Iterator[Sample]:
    """Holes of all frames; with a model, their depths are averaged along surfaces."""
    rng = np.random.default_rng(0)
    for frame in frames:
        holes = np.argwhere(~frame.cells.is_measured)
        holes = holes[rng.choice(len(holes), min(SAMPLES, len(holes)), replace=False)]
        ground = make_ground(frame.cells, evidence)
        disparity, features = features_at(ground, paths, holes)
        if model is not None:
            found = judge_cells(ground, paths, model)
            guide = guide_of(frame.cells.depth_map)
            surfaces = evidence_of_surfaces(ground.evidence, found)
            averaged = average_surfaces(guide, *surfaces)[tuple(holes.T)]
            disparity = np.where(np.isfinite(disparity), averaged, disparity)
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
    frame = np.repeat(np.arange(len(samples)), [len(one.true_m) for one in samples])
    odds = logistic(matrix, gross.astype(float), weight)
    # Claims are made where gross errors are rare: there the model has to be right, in each frame.
    for _ in range(2):
        share = 1 / (1 + np.exp(-np.clip(matrix @ odds, -30, 30)))
        rare = weight * (1 - share) ** RARE + 1e-3
        of_frame = np.bincount(frame, rare) / np.bincount(frame, weight)
        odds = logistic(matrix, gross.astype(float), rare / np.sqrt(of_frame[frame]))
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
    evidence, paths = fitted.EVIDENCE, fitted.PATHS
    if not given.keep_paths:
        evidence = evidence_model(with_weak, rng)
        paths = path_model(with_weak, evidence, rng)
    for name, measured, weak in zip(EVIDENCE_FEATURES, *evidence, strict=True):
        print(f"    ({measured:.3f}, {weak:.3f}),  # {name}")
    print(paths, flush=True)
    first = fill_model(list(samples_of(frames, evidence, paths, None)))
    samples = list(samples_of(frames, evidence, paths, first))
    print("share of the holes with sigma < 5 cm, < 10 cm, and all; rooms left out of their model")
    rooms = sorted({one.name.split(",")[0] for one in samples if one.name.startswith("room")})
    for fold in range(FOLDS):
        left_out = rooms[fold::FOLDS]
        others = [one for one in samples if one.name.split(",")[0] not in left_out]
        model = fill_model(others)
        for one in samples:
            if one.name in left_out:
                print(figures(one, model), flush=True)
    model = fill_model(samples)
    for name, odds, error in zip(FEATURES, *model, strict=True):
        print(f"    ({odds:.3f}, {error:.3f}),  # {name}")
    gross = np.concatenate([one.error_m[one.is_gross] for one in samples])
    print(f"gross errors: root mean square {np.sqrt(np.mean(gross**2)):.3f} m")


if __name__ == "__main__":
    main()
