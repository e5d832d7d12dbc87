"""Pixels that hold no intensity, and what they touch."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from d3s.estimate.model import Array

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

    def distance(self, disparity_px: Array, cell_px: int) -> Array:
        """How far the nearest hole is from a cell or from its match, in cells, on a chessboard."""
        left, right = (_distance(mask, cell_px) for mask in self)
        rows, cols = right.shape
        there = np.rint(np.arange(cols) - np.clip(disparity_px / cell_px, -cols, cols))
        columns = np.clip(there, 0, cols - 1).astype(np.int64)
        return np.minimum(left, right[np.arange(rows)[:, None], columns])


def _distance(mask: Mask, cell_px: int) -> Array:
    padded = np.pad(mask, [(0, -size % cell_px) for size in mask.shape])
    rows, cols = (size // cell_px for size in padded.shape)
    cells = padded.reshape(rows, cell_px, cols, cell_px).any(axis=(1, 3))
    if not cells.any():
        return np.full((rows, cols), np.inf, dtype=np.float32)
    free = np.logical_not(cells).astype(np.uint8)
    return np.asarray(cv2.distanceTransform(free, cv2.DIST_C, 3))
