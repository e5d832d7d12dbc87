"""Fit the models of `d3s.lab.dense.model`: evidence, paths, other surfaces, and errors.

    .venv/bin/python benchmarks/tune_dense.py ROOMS [--write]

ROOMS is a folder in which rendered rooms are kept; missing ones are rendered, which takes half a
minute each. Rooms and scenes of the twin with plain surfaces, all with tuning textures, are
densified with weak depths and without. Rooms are left out in turn, and judged by models that have
not seen them: so the numbers of sigma are chosen, and the figures of these rooms are printed.
--write replaces the coefficients of the package by models of all frames, which do not depend on
the coefficients that it had before.
"""

import argparse
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from d3s.lab.dense.candidates import PathModel
from d3s.lab.dense.evidence import (
    EvidenceModel,
    evidence_features,
    guide_of,
    judged_evidence,
    make_ground,
    texture_of,
)
from d3s.lab.dense.fill import evidence_of_surfaces
from d3s.lab.dense.judge import (
    LARGEST,
    FillModel,
    Ground,
    Network,
    features_at,
    judge_cells,
    outputs_of,
)
from d3s.lab.dense.model import (
    GROSS,
    DenseModel,
    FrameScale,
    SigmaModel,
    depth_span_m,
    sigma_of,
    sigma_of_surroundings,
    write_model,
)
from d3s.lab.dense.propagation import BLOCK_CELLS, average_surfaces
from d3s.types import FloatArray, Image, Mask
from dense_frames import DenseFrame, tuning_frames

SAMPLES = 2500  # cells of a frame, to fit; of rooms that are left out all holes are judged
FOLDS = 4  # parts of the rooms that are left out of the fit in turn
ROOM_WEIGHT = 3.0  # of a room, against 1 of a scene
RARE = 6  # power by which cells count more where gross errors are rare
MOST_PX = 1.0  # disparity by which a candidate may be off and still be right
WISH_M, OFF_M = 0.05, 0.15  # sigma of what is filled, and error that is far off
# Numbers of sigma to choose from.
OUTSIDE, FALLING = (0.0075, 0.01, 0.015, 0.02, 0.025, 0.03), (0.5, 0.6, 0.7, 0.8)
EVIDENCE_UNITS, FILL_UNITS = 10, 12  # hidden units
ROUNDS, FIRST_ROUNDS = 100, 40  # steps of a fit


LEAST_ERROR_PX = 0.01  # below which errors are not told apart
RIDGE = 3e-3  # penalty of squared coefficients: chosen by rooms that were left out of the fit
LOG_ERRORS = (-5.0, 3.0)  # logarithms of errors in px that a network may give

Loss = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class Shape(NamedTuple):
    """Scale of the features, hidden units, and steps of L-BFGS."""

    mean: Image
    scale: Image
    units: int
    rounds: int


class Targets(NamedTuple):
    """What a network is fitted to, one value for each row of features."""

    value: FloatArray  # 0 or 1, or an error
    weight: FloatArray


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
    return np.asarray(found / scale)


def shape_of(features: Image, units: int, rounds: int) -> Shape:
    """Shape of a network for features (cells, features); even ones do not count."""
    spread = features.std(axis=0)
    scale = np.where(spread > 1e-6, 1 / np.maximum(spread, 1e-3), 0)
    return Shape(features.mean(axis=0).astype(np.float32), scale.astype(np.float32), units, rounds)


def fit_odds(features: Image, targets: Targets, shape: Shape) -> Network:
    """Network of the log-odds of a target of 0 and 1."""

    def loss(output: FloatArray) -> tuple[FloatArray, FloatArray]:
        bounded = np.clip(output, -30, 30)
        share = 1 / (1 + np.exp(-bounded))
        return np.logaddexp(0, bounded) - targets.value * bounded, share - targets.value

    return _fit(features, targets.weight, loss, shape)


def fit_log_error(features: Image, targets: Targets, shape: Shape) -> Network:
    """Network of ln sigma of errors that fall off exponentially, by maximum likelihood.

    A normal distribution would give the few large errors most of the weight: sigma would be too
    large for the others, and too small for those that are as large.
    """
    size = np.sqrt(2) * (np.abs(targets.value) + LEAST_ERROR_PX)

    def loss(output: FloatArray) -> tuple[FloatArray, FloatArray]:
        log = np.clip(output, *LOG_ERRORS)
        ratio = size * np.exp(-log)
        return ratio + log, np.where(log == output, 1 - ratio, 0)

    return _fit(features, targets.weight, loss, shape, bias=-1.0)


def _fit(
    features: Image, weight: FloatArray, loss: Loss, shape: Shape, bias: float = 0.0
) -> Network:
    """Network of least loss, by L-BFGS from small random coefficients.

    Parameters
    ----------
    features
        Array (cells, features).
    weight
        Of each cell.
    loss
        Function of the outputs: loss of each cell, and its derivative.
    shape
        Scale of the features, units and steps.
    bias
        Output to begin with.
    """
    mean, scale, units, rounds = shape
    scaled = np.clip((features - mean) * scale, -LARGEST, LARGEST).astype(np.float32)
    count = scaled.shape[1]
    share = weight / weight.sum()
    rng = np.random.default_rng(0)
    random = rng.normal(0, 1 / np.sqrt(count), count * units), rng.normal(0, 0.1, units)
    start = np.concatenate([np.zeros(count), [bias], random[0], np.zeros(units), random[1]])

    def step(flat: FloatArray) -> tuple[float, FloatArray]:
        """Loss of all cells with the ridge, and its derivative."""
        one = _network(flat, shape)
        active = scaled @ one.hidden + one.hidden_bias
        active /= 1 + np.abs(active)
        each, slope = loss((scaled @ one.linear + active @ one.output + one.bias).astype(float))
        slope = (share * slope).astype(np.float32)
        back = slope[:, None] * one.output * (1 - np.abs(active)) ** 2
        parts = (
            scaled.T @ slope + 2 * RIDGE * one.linear,
            [slope.sum()],
            (scaled.T @ back + 2 * RIDGE * one.hidden).ravel(),
            back.sum(axis=0),
            active.T @ slope + 2 * RIDGE * one.output,
        )
        squares = sum(float((each**2).sum()) for each in (one.linear, one.hidden, one.output))
        return float(share @ each) + RIDGE * squares, np.concatenate(parts).astype(float)

    found = minimize(step, start, jac=True, method="L-BFGS-B", options={"maxiter": rounds})
    return _network(found.x, shape)


def _network(flat: FloatArray, shape: Shape) -> Network:
    """Network of the coefficients in one row, as the fit has them."""
    count, units = shape.mean.size, shape.units
    ends = np.cumsum([count, 1, count * units, units])
    linear, bias, hidden, offset, output = np.split(flat.astype(np.float32), ends)
    hidden = hidden.reshape(count, units)
    return Network(shape.mean, shape.scale, linear, bias[0], hidden, offset, output)


class Sample(NamedTuple):
    """Some holes of a frame: features, and depths in metres."""

    name: str
    weight: float
    features: Image
    cells: NDArray[np.int64]  # (cells, 2): row and column
    filled_m: FloatArray
    true_m: FloatArray
    per_dpt_px: float
    span_m: float
    alone: float  # share of the cells of the frame that are measured, with a sigma below the wish
    holes: float  # share of the cells of the frame that are holes with a depth
    is_measured: Mask  # of the frame

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


def evidence_model(frames: list[DenseFrame], rng: np.random.Generator) -> EvidenceModel:
    """Fit the log-odds of measured depths beside holes, and of weak depths."""
    parts: list[list[tuple[Image, FloatArray]]] = [[], []]
    for frame in frames:
        cells = frame.cells.depth_map
        texture = texture_of(guide_of(cells))
        true_px = frame.true_cells_px
        gap = np.abs(cells.disparity_px - cells.rig.optics.disparity_offset_px - true_px)
        is_right = gap < np.maximum(MOST_PX, 0.5 * GROSS * true_px)
        for found, use in zip(parts, judged_evidence(frame.cells), strict=True):
            if use.any():
                features = evidence_features(frame.cells, texture, use)
                some = rng.choice(len(features), SAMPLES)
                found.append((features[some], is_right[use][some].astype(float)))
    networks = []
    for found in parts:
        matrix, right = (np.concatenate(one) for one in zip(*found, strict=True))
        targets = Targets(right, np.ones(len(right)))
        networks.append(fit_odds(matrix, targets, shape_of(matrix, EVIDENCE_UNITS, ROUNDS)))
    return EvidenceModel(*networks)


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
        for source, length, edge in zip(*ground.paths, strict=True):
            source = source.ravel()
            here = np.arange(source.size)
            is_hole = ~frame.cells.is_measured.ravel()
            use = (source >= 0) & (source != here) & is_hole & is_right[source]
            use = np.flatnonzero(use)
            if not use.size:
                continue
            use = rng.choice(use, SAMPLES)
            gap = _carried(ground, source[use], use) - true_px[use]
            parts = (length.ravel()[use], edge.ravel()[use])
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
    count: int | None = SAMPLES,
) -> Iterator[Sample]:
    """Some holes of each frame, or all; with a model, depths are averaged along surfaces."""
    rng = np.random.default_rng(0)
    for frame in frames:
        holes = np.argwhere(~frame.cells.is_measured)
        if count is not None:
            holes = holes[rng.choice(len(holes), min(count, len(holes)), replace=False)]
        ground = make_ground(frame.cells, evidence)
        disparity, features = features_at(ground, paths, holes)
        if model is not None:
            found = judge_cells(ground, paths, model)
            surfaces = evidence_of_surfaces(ground.evidence, found)
            averaged = average_surfaces(ground.guide, *surfaces)[tuple(holes.T)]
            disparity = np.where(np.isfinite(disparity), averaged, disparity)
        per_dpt = frame.per_dpt_px
        known = np.isfinite(disparity) & (disparity > 0.1)
        depth = per_dpt / disparity[known].astype(float)
        true = per_dpt / frame.true_cells_px[tuple(holes[known].T)].astype(float)
        span = depth_span_m(frame.depth_map.depth_m[frame.is_measured])
        weight = ROOM_WEIGHT if frame.is_room else 1.0
        alone = float(np.mean(frame.is_measured & (frame.depth_map.sigma_m < WISH_M)))
        share = float(np.mean(~frame.cells.is_measured) * known.mean())
        yield Sample(
            name=frame.name,
            weight=weight,
            features=features[known],
            cells=holes[known],
            filled_m=depth,
            true_m=true,
            per_dpt_px=per_dpt,
            span_m=span,
            alone=alone,
            holes=share,
            is_measured=frame.cells.is_measured,
        )


def fill_model(samples: list[Sample]) -> FillModel:
    """Fit the model of gross errors, and that of the others."""
    matrix = np.concatenate([one.features for one in samples])
    gross = np.concatenate([one.is_gross for one in samples])
    error = np.concatenate([one.error_px for one in samples])
    weight = np.concatenate([np.full(len(one.true_m), one.weight) for one in samples])
    frame = np.repeat(np.arange(len(samples)), [len(one.true_m) for one in samples])
    shape = shape_of(matrix, FILL_UNITS, ROUNDS)
    few = shape._replace(rounds=FIRST_ROUNDS)
    first = fit_odds(matrix, Targets(gross.astype(float), weight), few)
    # Claims are made where gross errors are rare: there both have to be right, in each frame.
    share = 1 / (1 + np.exp(-np.clip(outputs_of(first, matrix), -30, 30)))
    rare = weight * (1 - share) ** RARE + 1e-3
    of_frame = np.bincount(frame, rare) / np.bincount(frame, weight)
    targets = Targets(gross.astype(float), rare / np.sqrt(of_frame[frame]))
    odds = fit_odds(matrix, targets, shape)
    kept = Targets(error[~gross], targets.weight[~gross])
    return FillModel(odds, fit_log_error(matrix[~gross], kept, shape))


class Judged(NamedTuple):
    """Holes of a room that was left out: true and predicted errors."""

    sample: Sample
    gross: FloatArray
    error_px: FloatArray

    def sigma_m(self, model: SigmaModel) -> FloatArray:
        """Sigma of each hole."""
        one = self.sample
        span = FrameScale(one.per_dpt_px, one.span_m)
        filled_m, error_px, gross = (
            part.astype(np.float32) for part in (one.filled_m, self.error_px, self.gross)
        )
        frame = np.full(one.is_measured.shape, np.nan, np.float32)
        place = tuple(one.cells.T)
        frame[place] = sigma_of(filled_m, error_px, gross, span, model)
        return sigma_of_surroundings(frame, one.is_measured, span)[place].astype(np.float64)


class Claims(NamedTuple):
    """Figures of the holes of a room with a sigma below the wish."""

    gain: float
    mae_m: float
    off: float  # share that is wrong by more than `OFF_M`
    within: float  # share within one sigma
    within_three: float

    @property
    def score(self) -> int:
        """Figures that hold; those that say whether sigma can be trusted count twice."""
        true = 2 * (self.within_three >= 0.95) + 2 * (self.off < 0.03) + 2 * (self.mae_m < 0.04)
        return int(true + (0.6 <= self.within <= 0.85) + (self.gain >= 1.25))


def claims_of(room: Judged, model: SigmaModel) -> Claims:
    """Figures of a room that was left out."""
    sigma, error, one = room.sigma_m(model), np.abs(room.sample.error_m), room.sample
    use = sigma < WISH_M
    if not use.any():
        return Claims(1.0, 0.0, 0.0, 0.75, 1.0)
    e, s = error[use], sigma[use]
    shares = (np.mean(one) for one in (e > OFF_M, e < s, e < 3 * s))
    return Claims(1 + use.mean() * one.holes / one.alone, float(e.mean()), *map(float, shares))


def sigma_model(rooms: list[Judged]) -> SigmaModel:
    """Numbers of sigma with which most figures hold, each room by itself."""
    choices = [SigmaModel(outside, falling) for outside in OUTSIDE for falling in FALLING]
    scores = [sum(claims_of(one, each).score for one in rooms) for each in choices]
    for each, score in zip(choices, scores, strict=True):
        print(f"{each}: {score} of {8 * len(rooms)}")
    return choices[int(np.argmax(scores))]


def left_out(frames: list[DenseFrame], folds: int, averaging: FillModel) -> Iterator[Judged]:
    """Rooms, each judged by models that have not seen it.

    Parameters
    ----------
    frames
        All frames.
    folds
        Parts of the rooms, each of which is left out once.
    averaging
        Model by which depths are averaged along surfaces.
    """
    rooms = list(dict.fromkeys(one.room for one in frames if one.is_room))
    for fold in range(folds):
        judged = rooms[fold::folds]
        others = [one for one in frames if one.room not in judged]
        evidence, paths = evidence_and_paths(others)
        model = fill_model(list(samples_of(others, evidence, paths, averaging)))
        rest = [one for one in frames if one.room in judged]
        for one in samples_of(rest, evidence, paths, averaging, None):
            gross = 1 / (1 + np.exp(-outputs_of(model.gross, one.features).astype(float)))
            error_px = np.exp(np.minimum(outputs_of(model.error, one.features), 3)).astype(float)
            yield Judged(one._replace(features=one.features[:0]), gross, error_px)


def show(rooms: list[Judged], model: SigmaModel) -> None:
    """Print the figures of all rooms."""
    print("| room, left out | gain | MAE (cm) | > 15 cm (%) | < 1 sigma (%) | < 3 sigma (%) |")
    print("|---|---|---|---|---|---|")
    for room in rooms:
        found = claims_of(room, model)
        print(
            f"| {room.sample.name} | {found.gain:.2f} | {100 * found.mae_m:.2f} | "
            f"{100 * found.off:.1f} | {100 * found.within:.0f} | {100 * found.within_three:.1f} |"
        )


def evidence_and_paths(frames: list[DenseFrame]) -> tuple[EvidenceModel, PathModel]:
    """Fit the models of evidence and of paths to the frames with weak depths."""
    rng = np.random.default_rng(0)
    with_weak = [frame for frame in frames if frame.has_weak]
    evidence = evidence_model(with_weak, rng)
    return evidence, path_model(with_weak, evidence, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms")
    parser.add_argument("--write", action="store_true", help="Replace the package's coefficients.")
    given = parser.parse_args()
    started = perf_counter()
    frames = list(tuning_frames(given.rooms))
    print(f"{len(frames)} frames after {perf_counter() - started:.0f} s", flush=True)
    evidence, paths = evidence_and_paths(frames)
    first = fill_model(list(samples_of(frames, evidence, paths, None)))
    fill = fill_model(list(samples_of(frames, evidence, paths, first)))
    print(f"models of all frames after {perf_counter() - started:.0f} s", flush=True)
    rooms = list(left_out(frames, FOLDS, first))
    sigma = sigma_model([room for room in rooms if "no weak" not in room.sample.name])
    show(rooms, sigma)
    if given.write:
        write_model(DenseModel(evidence, paths, fill, sigma))
    print(f"{sigma}, {perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
