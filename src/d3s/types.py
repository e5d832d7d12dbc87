"""Array and callback types that every package uses, each defined once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float32]
"""Linear intensities (rows, cols), full scale 1."""

Mask = NDArray[np.bool_]
"""Boolean mask (rows, cols)."""

FloatArray = NDArray[np.float64]
"""Double-precision array of any shape."""

Progress = Callable[[int, int], None]
"""Callback of a long job, called with (steps done, total steps)."""
