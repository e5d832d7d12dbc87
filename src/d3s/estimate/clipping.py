"""Pixels that a sensor could not tell from its white or its black."""

import numpy as np
from numpy.typing import NDArray

# Of the nine pixels of a 3x3 block. A plateau with noise on it still has most of them; noise that
# touches the limit here and there does not, and does no harm that a depth would show.
_FEWEST_IN_BLOCK = 5


def clipped(image: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Where a view lies on a plateau at its largest or its smallest value.

    A pixel is clipped if it has exactly that value and so have most of the block of 3x3 around
    it, or around a neighbour that has it too. This needs no full scale to be known, and does not
    depend on gain and offset. A constant view is clipped all over; the tops of very smooth
    noiseless views of few grey levels are too.
    """
    return _plateau(image, np.fmax.reduce(image, axis=None)) | _plateau(
        image, np.fmin.reduce(image, axis=None)
    )


def _plateau(image: NDArray[np.floating], limit: np.floating) -> NDArray[np.bool_]:
    at_limit = image == limit
    if np.count_nonzero(at_limit) < min(_FEWEST_IN_BLOCK, image.size):
        return np.zeros(image.shape, dtype=np.bool_)
    core = at_limit & (_count_around(at_limit) >= _FEWEST_IN_BLOCK)
    return np.asarray(at_limit & (_count_around(core) > 0))  # with the corners of the plateau


def _count_around(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """How many of the 3x3 pixels around each are in a mask."""
    # The edge repeats, so that a plateau does not end where the frame does.
    padded = np.pad(mask.astype(np.uint8), 1, mode="edge")
    threes = padded[2:] + padded[1:-1] + padded[:-2]
    return np.asarray(threes[:, 2:] + threes[:, 1:-1] + threes[:, :-2])
