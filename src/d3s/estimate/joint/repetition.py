"""Repetition: texture that fits at several shifts, such as a fence, blinds or bricks.

Paths add up the smallest preference, such as that for a period that happens to be nearer to a whole
shift, until it looks like certainty. So repetition is judged by the matching costs themselves: over
a block, their mean at each distance from the chosen shift. Noise makes single costs low by chance,
but not a mean over a block.
"""

import numpy as np

from d3s.estimate.joint.types import Array, Indices
from d3s.types import Mask

BLOCK = 24  # side of a block in pixels of the search
STRIDE = 4  # every fourth pixel in both directions: costs are means over 3 x 3 pixels
# Least mean cost of other shifts beyond that of the chosen one, in units of the matching cost: on
# plain walls no shift costs less than others.
_MIN_CONTRAST = 40.0
# A repetition costs more than the chosen shift by less than this share of what other shifts do: for
# waves 0.05 or less, for nearly all blocks of other textures 0.3 or more.
_MAX_SHARE = 0.1
# Share of a block's pixels that must have a cost at a distance.
_MIN_COUNT = 0.5


def find_repetition(sums: Indices, counts: Indices) -> Mask:
    """Return the blocks whose texture fits about as well at another shift.

    Blocks without a second valley, as at the border, follow their neighbours.

    Parameters
    ----------
    sums
        Sums of costs (rows, cols, distances) of each block, from `SearchOperations.aligned_costs`.
    counts
        Number of costs in each sum.
    """
    middle = sums.shape[2] // 2
    is_known = counts >= np.maximum(_MIN_COUNT * counts[:, :, middle, None], 1)
    mean = sums / np.maximum(counts, 1)
    is_other = is_known & (np.abs(np.arange(sums.shape[2]) - middle) > 1)
    typical = (mean * is_other).sum(axis=2) / np.maximum(is_other.sum(axis=2), 1)
    chosen = mean[:, :, middle]
    contrast = typical - chosen
    lowest = np.where(is_other & _valleys(mean, is_known), mean, np.inf).min(axis=2)
    is_repeated = (contrast >= _MIN_CONTRAST) & (lowest - chosen < _MAX_SHARE * contrast)
    return np.asarray(is_repeated | (np.isinf(lowest) & _beside(is_repeated)))


def _valleys(mean: Array, is_known: Mask) -> Mask:
    """Return where neither neighbour along the last axis is lower, and both are known."""
    wide = np.pad(np.where(is_known, mean, -1), ((0, 0), (0, 0), (1, 1)), constant_values=-1)
    middle = wide[:, :, 1:-1]
    return np.asarray((middle <= wide[:, :, :-2]) & (middle <= wide[:, :, 2:]))


def _beside(mask: Mask) -> Mask:
    """Return the blocks with a neighbour in the mask, above, below or to either side."""
    wide = np.pad(mask, 1)
    return np.asarray(wide[2:, 1:-1] | wide[:-2, 1:-1] | wide[1:-1, 2:] | wide[1:-1, :-2])
