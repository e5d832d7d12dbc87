"""Inpainting: continue a layer beneath nearer surfaces, with its own texture mirrored."""

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image, Mask

# State of a pixel of a layer.
HIDDEN = 0  # a nearer surface is in front: the layer may continue beneath it
SOURCE = 1  # the layer is visible, and may be copied from
KNOWN = 2  # the layer is visible, and is not copied from
ABSENT = 3  # a farther surface is visible: the layer ends here
_FILLED = 4

EVERYWHERE = 2**31 - 1


def fill_hidden(
    colour: Image, depth: Image, state: NDArray[np.uint8], reach_px: tuple[int, int]
) -> Mask:
    """Continue a layer beneath nearer surfaces, in place.

    Rows are filled first, because the other camera looks behind an edge along the row. Pixels
    without a source in their row are filled along the column. Colour is mirrored at the nearest
    source, depth is constant. Depth is also continued where the layer is absent, so that an edge
    has a depth on both sides.

    Parameters
    ----------
    colour
        (rows, cols) image, changed in place.
    depth
        (rows, cols) disparity or depth, changed in place.
    state
        (rows, cols) HIDDEN, SOURCE, KNOWN or ABSENT; changed in place.
    reach_px
        Largest distance from a source, (rows, cols); EVERYWHERE for no limit.

    Returns
    -------
    ndarray
        (rows, cols) pixels that were filled.
    """
    reach_y, reach_x = reach_px
    run_over_rows(_fill_rows, colour.shape[0], colour, depth, state, reach_x)
    _fill_cols(colour, depth, state, reach_y)
    return np.asarray(state == _FILLED)


@compiled
def _nearer_source(before: int, after: int, place: int, reach: int) -> int:
    """Nearer of two sources (-1: none), or -1 if it is out of reach."""
    source = before
    if before < 0 or (after >= 0 and after - place < place - before):
        source = after
    return source if source >= 0 and abs(source - place) <= reach else -1


@compiled
def _fill_rows(
    start: int, stop: int, colour: Image, depth: Image, state: NDArray[np.uint8], reach: int
) -> None:
    cols = colour.shape[1]
    # Last source so far: any, and without an ABSENT pixel in between.
    before = np.empty(cols, dtype=np.int64)
    open_before = np.empty(cols, dtype=np.int64)
    for i in range(start, stop):
        last = open_last = -1
        for j in range(cols):
            if state[i, j] == SOURCE:
                last = open_last = j
            elif state[i, j] == ABSENT:
                open_last = -1
            before[j], open_before[j] = last, open_last
        after = open_after = -1
        for j in range(cols - 1, -1, -1):
            if state[i, j] == SOURCE:
                after = open_after = j
            elif state[i, j] == ABSENT:
                open_after = -1
                source = _nearer_source(before[j], after, j, reach)
                if source >= 0:
                    depth[i, j] = depth[i, source]
            if state[i, j] != HIDDEN:
                continue
            source = _nearer_source(open_before[j], open_after, j, reach)
            if source < 0:
                continue
            mirror = 2 * source - j
            if mirror < 0 or mirror >= cols or state[i, mirror] != SOURCE:
                mirror = source
            colour[i, j] = colour[i, mirror]
            depth[i, j] = depth[i, source]
            state[i, j] = _FILLED


@compiled
def _fill_cols(colour: Image, depth: Image, state: NDArray[np.uint8], reach: int) -> None:
    rows, cols = colour.shape
    above = np.full((rows, cols), -1, dtype=np.int32)
    for i in range(rows):
        for j in range(cols):
            if state[i, j] == SOURCE or state[i, j] == _FILLED:
                above[i, j] = i
            elif i and state[i, j] != ABSENT:
                above[i, j] = above[i - 1, j]
    below = np.full(cols, -1, dtype=np.int32)
    taken = np.zeros((rows, cols), dtype=np.bool_)
    for i in range(rows - 1, -1, -1):
        for j in range(cols):
            if state[i, j] == SOURCE or state[i, j] == _FILLED:
                below[j] = i
            elif state[i, j] == ABSENT:
                below[j] = -1
            if state[i, j] != HIDDEN:
                continue
            source = _nearer_source(above[i, j], below[j], i, reach)
            if source < 0:
                continue
            mirror = 2 * source - i
            if mirror < 0 or mirror >= rows or above[mirror, j] != mirror:
                mirror = source
            colour[i, j] = colour[mirror, j]
            depth[i, j] = depth[source, j]
            taken[i, j] = True
    for i in range(rows):
        for j in range(cols):
            if taken[i, j]:
                state[i, j] = _FILLED
