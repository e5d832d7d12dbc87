"""Small networks: one layer of hidden units beside a linear model, for odds and sizes of errors."""

from typing import NamedTuple

import numpy as np

from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image

LARGEST = np.float32(4)
"""Standard deviations from the mean at which features end, so that none counts without bounds."""

_AT_ONCE = 128  # cells whose features fit into fast memory


class Network(NamedTuple):
    """Coefficients of a network with one output, float32."""

    mean: Image  # of each feature
    scale: Image  # of each feature, one over its standard deviation
    linear: Image  # of each scaled feature
    bias: np.float32
    hidden: Image  # (features, units)
    hidden_bias: Image  # of each unit
    output: Image  # of each unit


def outputs_of(network: Network, features: Image) -> Image:
    """Output for each row of features (cells, features)."""
    scaled = np.clip((features - network.mean) * network.scale, -LARGEST, LARGEST)
    units = scaled @ network.hidden + network.hidden_bias
    units /= 1 + np.abs(units)
    return np.asarray(scaled @ network.linear + units @ network.output + network.bias, np.float32)


def compiled_outputs(network: Network, features: Image) -> Image:
    """Output for each row of features (cells, features), by compiled loops and all threads."""
    out = np.empty(len(features), np.float32)
    run_over_rows(_outputs, len(features), network, features, out)
    return out


@compiled
def _outputs(start: int, stop: int, network: Network, features: Image, out: Image) -> None:
    some = np.empty((network.mean.size, _AT_ONCE), np.float32)
    unit = np.empty(_AT_ONCE, np.float32)
    for first in range(start, stop, _AT_ONCE):
        count = min(_AT_ONCE, stop - first)
        for cell in range(count):
            for one in range(network.mean.size):
                some[one, cell] = features[first + cell, one]
        scale_features(some, count, network)
        write_outputs(network, some, unit, out[first : first + count])


@part
def scale_features(features: Image, count: int, network: Network) -> None:
    """Scale and bound the features of some cells in place.

    Features are (features, cells), a row for each: loops go over the cells, which SIMD takes.
    """
    for one in range(network.mean.size):
        mean, scale = network.mean[one], network.scale[one]
        for cell in range(count):
            scaled = (features[one, cell] - mean) * scale
            features[one, cell] = min(max(scaled, -LARGEST), LARGEST)


@part
def write_outputs(network: Network, scaled: Image, unit: Image, out: Image) -> None:
    """Write the outputs of a network for some cells.

    Features are as `scale_features` leaves them; `unit` is room for one hidden unit of each cell.
    """
    cells = out.size
    for cell in range(cells):
        out[cell] = network.bias
    for one in range(network.mean.size):
        for cell in range(cells):
            out[cell] += network.linear[one] * scaled[one, cell]
    for number in range(network.output.size):
        for cell in range(cells):
            unit[cell] = network.hidden_bias[number]
        for one in range(network.mean.size):
            share = network.hidden[one, number]
            for cell in range(cells):
                unit[cell] += share * scaled[one, cell]
        for cell in range(cells):
            out[cell] += network.output[number] * unit[cell] / (np.float32(1) + abs(unit[cell]))
