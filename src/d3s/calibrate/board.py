"""The board: a plane that is tilted and slightly bent."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.rig import Optics
from d3s.types import FloatArray


class Board(NamedTuple):
    """Shape of the board: depth = Z + sx X + sy Y + a X² + b XY + c Y², with Z on the axis."""

    slopes: tuple[float, float] = (0.0, 0.0)  # dZ/dX and dZ/dY
    bend_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def depth_m(
        self,
        cols: ArrayLike,
        rows: ArrayLike,
        depth_m: float,
        shape: tuple[int, ...],
        optics: Optics,
    ) -> FloatArray:
        """Depth of the board at pixels of the left view, in metres.

        The pixels x and y broadcast; `depth_m` is that of the board in the middle of the view.
        """
        x = (np.asarray(cols) - 0.5 * (shape[1] - 1)) / optics.focal_length_px
        y = (np.asarray(rows) - 0.5 * (shape[0] - 1)) / optics.focal_length_px
        return self.depth_along_m(x, y, depth_m)

    def depth_along_m(self, x: ArrayLike, y: ArrayLike, depth_m: float) -> FloatArray:
        """Depth of the board in a direction, in metres.

        x and y are the tangents X / Z and Y / Z of the direction; `depth_m` is that on the axis.
        """
        across, down = np.asarray(x), np.asarray(y)
        plane = depth_m / (1.0 - self.slopes[0] * across - self.slopes[1] * down)
        a, b, c = self.bend_per_m
        bend = a * across * across + b * across * down + c * down * down
        return np.asarray(plane + bend * plane**2)
