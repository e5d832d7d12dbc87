"""A pair as it comes from a user, made into what the kernels take."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError

Image = NDArray[np.float32]

_LARGEST_PX = 64_000_000
# How far out a value is no intensity but a fault, in widths of what most pixels have.
_FARTHEST_OUT = 1e4


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
    first, second = _checked(left, "left"), _checked(right, "right")
    if first.shape != second.shape:
        raise InputError(
            f"left has shape {first.shape} and right {second.shape}: they must be alike. "
            "Are both views rectified and cut to one size?"
        )
    if not (_is_single(first) and _is_single(second)):
        first, second = _scaled(first, second)
    return CheckedPair(_plain(first), _plain(second))


def _is_single(values: NDArray[Any]) -> bool:
    """Whether single precision holds these numbers as they are."""
    if values.dtype in (np.float32, np.float16, np.bool_) or values.itemsize < 3:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.array_equal(values.astype(np.float32), values, equal_nan=True))


def _scaled(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Views about their common mean and not far from one, so that single precision holds them."""
    views = [np.asarray(view, dtype=np.float64) for view in (left, right)]
    known = np.concatenate([view[np.isfinite(view)] for view in views])
    if not known.size:
        return views[0], views[1]
    with np.errstate(over="ignore", invalid="ignore"):
        about = [view - known.mean() for view in views]
        largest = float(np.ptp(known))
        unit = 2.0 ** np.floor(np.log2(largest)) if 0 < largest < np.inf else 1.0
        return about[0] / unit, about[1] / unit


def _plain(values: NDArray[Any]) -> Image:
    """Contiguous float32 with NaN where there is no number, or one that no sensor would give."""
    with np.errstate(over="ignore"):
        plain = np.array(values, dtype=np.float32, order="C")
    plain[~np.isfinite(plain)] = np.nan
    some = plain[::3, ::3]
    known = some[np.isfinite(some)]
    if known.size:
        low, middle, high = np.percentile(known, (1, 50, 99))
        if high > low:
            with np.errstate(invalid="ignore", over="ignore"):
                plain[np.abs(plain - middle) > _FARTHEST_OUT * (high - low)] = np.nan
    return plain


def _checked(image: Any, name: str) -> NDArray[Any]:
    if isinstance(image, np.ma.MaskedArray) and image.dtype.kind in "buif":
        image = np.ma.filled(image.astype(np.float64), np.nan)
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
    return values
