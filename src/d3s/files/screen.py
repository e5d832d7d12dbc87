"""Colours for screens: levels of 8 bits by the sRGB curve."""

import numpy as np
from numpy.typing import NDArray

from d3s.types import Image

# Percentile of the intensity that becomes white, for pictures without a white of their own.
_WHITE_PERCENT = 99.5


def for_screens(colour: Image, white: float | None = 1.0) -> NDArray[np.uint8]:
    """Colours of 8 bits by the sRGB curve, which screens expect; black for NaN.

    Parameters
    ----------
    colour
        Linear intensity of any shape.
    white
        Intensity that becomes white; None for the 99.5th percentile.
    """
    if white is None:
        known = colour[np.isfinite(colour)]
        white = float(np.percentile(known, _WHITE_PERCENT)) if known.size else 1.0
    linear = np.clip(np.nan_to_num(colour) / max(white, 1e-30), 0, 1)
    curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    levels: NDArray[np.uint8] = np.rint(255 * curved).astype(np.uint8)
    return levels
