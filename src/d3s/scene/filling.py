"""What a picture does not show: filled with what is beside it, mirrored at the border."""

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows
from d3s.types import Image

# What is known of a pixel of a layer.
HIDDEN = 0  # something nearer is in front: the layer may go on beneath it
SOURCE = 1  # the layer is seen, and may be copied from
KNOWN = 2  # stays as it is, and is not copied from
ABSENT = 3  # something farther is seen: the layer is not there, and does not reach across
_FILLED = 4

EVERYWHERE = 2**31 - 1


def fill(
    colour: Image, depth: Image, state: NDArray[np.uint8], reach_px: tuple[int, int]
) -> NDArray[np.bool_]:
    """Continue a layer beneath what hides it, in place, as far as (rows, cols) from what is seen.

    Along the row first, since that is how the other camera looks behind an edge; what has no source
    in its row is filled along the column. Colour is mirrored at the source, depth goes on evenly.
    Depth goes on where the layer is absent too, so that its edge has a depth on both sides.

    Returns
    -------
    Where the layer goes on beneath something.
    """
    reach_y, reach_x = reach_px
    over_rows(_fill_rows, colour.shape[0], colour, depth, state, reach_x)
    _fill_cols(colour, depth, state, reach_y)
    return np.asarray(state == _FILLED)


@compiled
def _nearer_source(before: int, after: int, place: int, reach: int) -> int:
    """The nearer of two sources (-1: none), or -1 when it is out of reach."""
    source = before
    if before < 0 or (after >= 0 and after - place < place - before):
        source = after
    return source if source >= 0 and abs(source - place) <= reach else -1


@compiled
def _fill_rows(
    start: int, stop: int, colour: Image, depth: Image, state: NDArray[np.uint8], reach: int
) -> None:
    cols = colour.shape[1]
    # The last source so far, at all and without anything absent between.
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
