"""A pair as it comes from a user, made into what the kernels take."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.runtime.parallel import over_rows, together
from d3s.runtime.scratch import Memory
from d3s.types import Image

_LARGEST_PX = 64_000_000
# How far out a value is no intensity but a fault, in widths of what most pixels have.
_FARTHEST_OUT = 1e4
_SAMPLES_EACH_WAY = 140  # pixels that tell what most have
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


class CheckedPair(NamedTuple):
    """Two views as contiguous float32 of one shape; what is no finite number is NaN.

    They may be the caller's own arrays: nobody writes to them.
    """

    left: Image
    right: Image


class _Limits(NamedTuple):
    """Values that a sensor would give."""

    low: float
    high: float


def checked_pair(left: Any, right: Any, memory: Memory | None = None) -> CheckedPair:
    """Both views, copied where they must be changed; the caller's arrays stay as they are.

    Any real numbers will do, in any unit: the estimators do not depend on gain and offset. Copies
    come out of the memory if there is one.

    Raises
    ------
    InputError
        Naming the view that is no grey image of at least a pixel, or the shapes that differ.
    """
    given = _checked(left, "left"), _checked(right, "right")
    if given[0].shape != given[1].shape:
        raise InputError(
            f"left has shape {given[0].shape} and right {given[1].shape}: they must be alike. "
            "Are both views rectified and cut to one size?"
        )
    views = [values if _is_single(values) else _empty(values.shape, memory) for values in given]
    if not all(_cast(values, view) for values, view in zip(given, views, strict=True)):
        for i, values in enumerate(given):
            views[i] = _empty(values.shape, memory) if views[i] is values else views[i]
        _scale(given, views)
    limits = together(*(lambda view=view: _limits_to_keep(view) for view in views))
    return CheckedPair(
        *(
            view if limit is None else _within(view, limit, view is not values, memory)
            for values, view, limit in zip(given, views, limits, strict=True)
        )
    )


def _is_single(values: NDArray[Any]) -> bool:
    # The loops are compiled for arrays that can be written to, and for no others.
    return bool(values.dtype == np.float32 and values.flags.carray)


def _cast(values: NDArray[Any], out: Image) -> bool:
    """Copy into single precision; whether that holds the numbers as they are."""
    if out is values:
        return True
    if values.itemsize < 3 or (values.dtype.kind == "f" and values.itemsize == 4):
        over_rows(_copy_rows, values.shape[0], values, out)
        return True
    from d3s.estimate.joint.numba_backend.prefilter import rounded

    is_exact = np.zeros(values.shape[0], dtype=np.bool_)
    over_rows(rounded, values.shape[0], _as_double(values), out, is_exact)
    return bool(is_exact.all())


def _copy_rows(start: int, stop: int, values: NDArray[Any], out: Image) -> None:
    out[start:stop] = values[start:stop]


def _as_double(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype == np.float64 and values.flags.carray:
        return values
    with np.errstate(over="ignore"):
        return np.array(values, dtype=np.float64, order="C")


def _scale(given: tuple[NDArray[Any], ...], out: list[Image]) -> None:
    """Views about their common mean and not far from one, so that single precision holds them."""
    from d3s.estimate.joint.numba_backend.prefilter import (
        about,
        common_mean,
        finite_ends,
        power_of_two,
    )

    views = [_as_double(values) for values in given]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = common_mean(views)
    ends = together(*(lambda view=view: finite_ends(view) for view in views))
    scale = 1.0 / power_of_two(max(high for _, high in ends) - min(low for low, _ in ends))
    for view, scaled in zip(views, out, strict=True):
        over_rows(about, view.shape[0], view, mean, scale, np.float32(np.nan), scaled)


def _limits_to_keep(view: Image) -> _Limits | None:
    """Beyond which a value is no intensity, if there may be one or one is not finite."""
    down, along = (-(-size // _SAMPLES_EACH_WAY) for size in view.shape)
    some = view[::down, ::along]
    known = np.sort(some[np.isfinite(some)].astype(np.float64))
    limits = _Limits(-_LARGEST_SINGLE, _LARGEST_SINGLE)
    if known.size:
        low, middle, high = known[[known.size // 100, known.size // 2, -1 - known.size // 100]]
        reach = _FARTHEST_OUT * (high - low)
        if reach > 0:
            limits = _Limits(max(middle - reach, limits.low), min(middle + reach, limits.high))
    # No comparison holds for NaN.
    return None if limits.low <= view.min() and view.max() <= limits.high else limits


def _within(view: Image, limits: _Limits, is_ours: bool, memory: Memory | None) -> Image:
    """The view with NaN for all that is not within limits."""
    from d3s.estimate.joint.numba_backend.prefilter import within

    out = view if is_ours else _empty(view.shape, memory)
    over_rows(within, view.shape[0], view, *np.array(limits, dtype=np.float32), out)
    return out


def _empty(shape: tuple[int, ...], memory: Memory | None) -> Image:
    return np.empty(shape, dtype=np.float32) if memory is None else memory.empty(shape)


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
