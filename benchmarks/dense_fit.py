"""Fits for `tune_dense.py`: logistic models, and small networks with a ridge."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from d3s.lab.dense.network import LARGEST, Network
from d3s.types import FloatArray, Image

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
