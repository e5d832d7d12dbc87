"""Pixels without an intensity, missing or clipped, and the distance of cells to them."""

from typing import NamedTuple

import numpy as np

from d3s.estimate.joint.types import Array
from d3s.types import Mask


class Holes(NamedTuple):
    """Pixels of both views without an intensity; an empty mask stands for a view without any."""

    left: Mask
    right: Mask

    @property
    def exist(self) -> bool:
        """Whether either view has holes."""
        return bool(self.left.any() or self.right.any())

    def distance(self, disparity_px: Array, cell_px: int) -> Array:
        """Return the chessboard distance from each cell, or its match, to a hole, in cells."""
        shape = disparity_px.shape[0], disparity_px.shape[1]
        left, right = (_distance(mask, cell_px, shape) for mask in self)
        rows, cols = shape
        matches = np.rint(np.arange(cols) - np.clip(disparity_px / cell_px, -cols, cols))
        columns = np.clip(matches, 0, cols - 1).astype(np.int64)
        return np.minimum(left, right[np.arange(rows)[:, None], columns])


def _distance(mask: Mask, cell_px: int, shape: tuple[int, int]) -> Array:
    if not mask.any():
        return np.full(shape, np.inf, dtype=np.float32)
    import cv2  # imported here: slow to load, and most pictures have no holes

    padded = np.pad(mask, [(0, -size % cell_px) for size in mask.shape])
    cells = padded.reshape(shape[0], cell_px, shape[1], cell_px).any(axis=(1, 3))
    free = np.logical_not(cells).astype(np.uint8)
    return np.asarray(cv2.distanceTransform(free, cv2.DIST_C, 3))
