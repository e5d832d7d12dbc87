"""Array and callback types that every package uses, each defined once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float32]
"""Intensities (rows, cols), linear, full scale 1."""

Mask = NDArray[np.bool_]
"""True where a statement about a pixel holds (rows, cols)."""

FloatArray = NDArray[np.float64]
"""Numbers of any shape in double precision."""

Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all) while a long job runs."""
