"""Kinds of values that the steps of a calibration hand to each other."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float32]
Mask = NDArray[np.bool_]

Place = tuple[float, float]
"""x and y."""

Half = Literal["left", "right"]
"""One side of the raw frame."""

Progress = Callable[[int, int], None]
"""Called with how many frames are done, and how many there are."""
