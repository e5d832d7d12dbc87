"""CSV: points as text, a line each, for tables and small programs."""

import numpy as np

from d3s.files.depth_image import Points

_ROWS = 50_000  # that are made into text at once


def encode(points: Points) -> bytes:
    """CSV file of points: their names with units, then seven digits of each number."""
    columns = points.columns
    table = np.stack(list(columns.values()), axis=1)
    line = ",".join(["%.7g"] * len(columns)) + "\n"
    blocks = [
        line * len(block) % tuple(block.ravel().tolist())
        for block in (table[row : row + _ROWS] for row in range(0, len(table), _ROWS))
    ]
    return (",".join(columns) + "\n" + "".join(blocks)).encode("ascii")
