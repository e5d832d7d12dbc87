"""A raster of texels on a surface."""

from typing import NamedTuple

import numpy as np

from d3s.types import FloatArray


class Grid(NamedTuple):
    """Square texels, numbered from the origin of the surface.

    Texel (i, j) is centred at (x, y) = (j, i) times the pitch, so that two grids of one pitch agree
    about their common texels.
    """

    first_row: int
    first_col: int
    rows: int
    cols: int
    pitch_m: float

    @property
    def x_m(self) -> FloatArray:
        """Centre of each column, in metres to the right of the origin."""
        return self.pitch_m * np.arange(
            self.first_col, self.first_col + self.cols, dtype=np.float64
        )

    @property
    def y_m(self) -> FloatArray:
        """Centre of each row, in metres below the origin."""
        return self.pitch_m * np.arange(
            self.first_row, self.first_row + self.rows, dtype=np.float64
        )
