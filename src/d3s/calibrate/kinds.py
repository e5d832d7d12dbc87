"""Kinds of values that the steps of a calibration hand to each other."""

from typing import Literal

Place = tuple[float, float]
"""x and y."""

Half = Literal["left", "right"]
"""One side of the raw frame."""
