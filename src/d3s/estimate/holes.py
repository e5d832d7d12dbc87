"""Pixels that hold no intensity, and what they touch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.operations import Array, Operations

Mask = NDArray[np.bool_]


class Holes(NamedTuple):
    """Pixels of both views that are missing, or clipped."""

    left: Mask
    right: Mask

    @property
    def exist(self) -> bool:
        """Whether there are any."""
        return bool(self.left.any() or self.right.any())

    def __or__(self, other: "Holes") -> "Holes":
        """Pixels of either kind."""
        return Holes(self.left | other.left, self.right | other.right)

    def near(self, reach_px: int, disparity_px: Array, step: int, ops: Operations) -> Mask:
        """Whether a hole is within reach of a pixel or of its match; of every `step`-th pixel."""
        left, right = (
            (ops.window_sums(mask.astype(ops.dtype), reach_px) > 0.5)[::step, ::step]
            for mask in self
        )
        cols = right.shape[1]
        there = np.rint(np.arange(cols) - np.clip(disparity_px / step, -cols, cols))
        moved = np.take_along_axis(right, np.clip(there, 0, cols - 1).astype(np.int64), axis=1)
        return np.asarray(left | moved)
