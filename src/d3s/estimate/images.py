"""A pair as it comes from a user, made into what the kernels take."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError

Image = NDArray[np.float32]

_LARGEST_PX = 64_000_000


class CheckedPair(NamedTuple):
    """Two views as contiguous float32 of one shape; what is no finite number is NaN."""

    left: Image
    right: Image


def checked_pair(left: Any, right: Any) -> CheckedPair:
    """Both views, copied where they must be changed; the caller's arrays stay as they are.

    Any real numbers will do, in any unit: the estimators do not depend on gain and offset.

    Raises
    ------
    InputError
        Naming the view that is no grey image of at least a pixel, or the shapes that differ.
    """
    pair = CheckedPair(_checked(left, "left"), _checked(right, "right"))
    if pair.left.shape != pair.right.shape:
        raise InputError(
            f"left has shape {pair.left.shape} and right {pair.right.shape}: they must be alike. "
            "Are both views rectified and cut to one size?"
        )
    return pair


def _checked(image: Any, name: str) -> Image:
    try:
        values = np.asarray(image)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an image, an array of (rows, cols).") from error
    if values.dtype.kind not in "buif":
        raise InputError(f"{name} has dtype {values.dtype}: it must be real numbers.")
    if values.ndim != 2:
        remedy = " Turn colour into grey first." if values.ndim == 3 else ""
        raise InputError(f"{name} has shape {values.shape}: it must be (rows, cols).{remedy}")
    if not 0 < values.size <= _LARGEST_PX:
        raise InputError(f"{name} has {values.size} pixels: it must have 1 to {_LARGEST_PX}.")
    with np.errstate(over="ignore"):
        plain = np.array(values, dtype=np.float32, order="C")
    plain[~np.isfinite(plain)] = np.nan
    return plain
