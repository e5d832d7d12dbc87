"""Check the views that a user passes, and convert them to float32 for the kernels."""

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.depth_image import for_screens
from d3s.files.images import as_colour, as_grey, samples_of
from d3s.runtime.parallel import run_over_rows, run_together
from d3s.types import Image

_LARGEST_PX = 64_000_000
# A value farther than this from the median is a fault, not an intensity; in units of the range
# from the 1st to the 99th percentile.
_MAX_DISTANCE_IN_RANGES = 1e4
# Pixels per axis from which these percentiles are taken.
_SAMPLES_PER_AXIS = 140
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


class CheckedPair(NamedTuple):
    """Two views (rows, cols) of one shape, contiguous float32; NaN where there is no intensity.

    The views may be the caller's own arrays and must not be written to.
    """

    left: Image
    right: Image


def checked_pair(left: Any, right: Any) -> CheckedPair:
    """Check a pair of views and convert it to float32.

    Views are copied where values or layout must change; the caller's arrays are never written to.
    The unit of the values does not matter, since the estimators do not depend on gain and offset.
    If float32 cannot hold all values exactly, the mean of both views is subtracted and both are
    divided by the same power of two.

    Parameters
    ----------
    left, right
        Grey images (rows, cols) of real numbers of any type, or RGB (rows, cols, 3).
        Masked pixels, infinities and values much larger than all others become NaN.

    Raises
    ------
    InputError
        If a view is no grey image of 1 to 64 million pixels, or the shapes differ.
    """
    given = _checked(_grey(left), "left"), _checked(_grey(right), "right")
    if given[0].shape != given[1].shape:
        raise InputError(
            f"left has shape {given[0].shape} and right {given[1].shape}: they must be alike. "
            "Are both views rectified and cut to one size?"
        )
    # The kernels are compiled for contiguous, aligned, writeable arrays only.
    views = [
        values if values.dtype == np.float32 and values.flags.carray else _empty(values.shape)
        for values in given
    ]
    if not all(_cast(values, view) for values, view in zip(given, views, strict=True)):
        for i, values in enumerate(given):
            views[i] = _empty(values.shape) if views[i] is values else views[i]
        _scale(given, views)
    limits = run_together(*(lambda view=view: _limits_to_keep(view) for view in views))
    return CheckedPair(
        *(
            view if limit is None else _within(view, limit, is_copy=view is not values)
            for values, view, limit in zip(given, views, limits, strict=True)
        )
    )


def _cast(values: NDArray[Any], out: Image) -> bool:
    """Copy to float32; return whether float32 holds all values exactly."""
    if out is values:
        return True
    if values.itemsize < 3 or (values.dtype.kind == "f" and values.itemsize == 4):
        run_over_rows(_copy_rows, values.shape[0], values, out)
        return True
    from d3s.estimate.intensity import to_single_precision

    is_exact = np.zeros(values.shape[0], dtype=np.bool_)
    run_over_rows(to_single_precision, values.shape[0], _as_double(values), out, is_exact)
    return bool(is_exact.all())


def _copy_rows(start: int, stop: int, values: NDArray[Any], out: Image) -> None:
    out[start:stop] = values[start:stop]


def _as_double(values: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.require(values, np.float64, ["C", "A", "W"])


def _scale(given: tuple[NDArray[Any], ...], out: list[Image]) -> None:
    """Subtract the common mean, divide by a power of two, set non-finite pixels to NaN."""
    from d3s.estimate.intensity import centre_and_scale, common_mean, finite_ends, power_of_two

    views = [_as_double(values) for values in given]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = common_mean(views)
    ends = run_together(*(lambda view=view: finite_ends(view) for view in views))
    scale = 1.0 / power_of_two(max(high for _, high in ends) - min(low for low, _ in ends))
    for view, scaled in zip(views, out, strict=True):
        run_over_rows(
            centre_and_scale, view.shape[0], view, mean, scale, np.float32(np.nan), scaled
        )


def _limits_to_keep(view: Image) -> tuple[float, float] | None:
    """Smallest and largest value that counts as an intensity; None if no value is outside."""
    row_step, col_step = (-(-size // _SAMPLES_PER_AXIS) for size in view.shape)
    samples = view[::row_step, ::col_step]
    known = np.sort(samples[np.isfinite(samples)].astype(np.float64))
    lowest, highest = -_LARGEST_FLOAT32, _LARGEST_FLOAT32
    if known.size:
        low, middle, high = known[[known.size // 100, known.size // 2, -1 - known.size // 100]]
        reach = _MAX_DISTANCE_IN_RANGES * (high - low)
        if reach > 0:
            lowest, highest = max(middle - reach, lowest), min(middle + reach, highest)
    # Both comparisons are false if the view holds a NaN.
    return None if lowest <= view.min() and view.max() <= highest else (lowest, highest)


def _within(view: Image, limits: tuple[float, float], *, is_copy: bool) -> Image:
    """View with NaN for values outside of the limits; in place if it is a copy."""
    from d3s.estimate.intensity import mask_outside

    out = view if is_copy else _empty(view.shape)
    run_over_rows(mask_outside, view.shape[0], view, *np.array(limits, dtype=np.float32), out)
    return out


def _empty(shape: tuple[int, ...]) -> Image:
    return np.empty(shape, dtype=np.float32)


def is_colour_array(image: Any) -> bool:
    """Whether an argument is an image in colour, (rows, cols, 3 or 4) of real numbers."""
    return (
        isinstance(image, np.ndarray)
        and image.ndim == 3
        and image.shape[2] in (3, 4)
        and image.size > 0
        and image.dtype.kind in "uif"
    )


def colour_of(image: Any) -> NDArray[np.uint8] | None:
    """Colours of a view as screens show them, (rows, cols, 3); None for a grey view."""
    if not is_colour_array(image):
        return None
    values = np.ma.filled(image[:, :, :3], 0)
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    linear = as_colour(samples_of(values))
    return for_screens(linear, white=1.0 if values.dtype == np.uint16 else None)


def _grey(image: Any) -> Any:
    """Luminance of a view in colour, by the rule for files; any other argument as it is."""
    if not is_colour_array(image):
        return image
    grey = as_grey(samples_of(np.asarray(image)), linear=None, allow_nan=True)
    if isinstance(image, np.ma.MaskedArray):
        grey[np.ma.getmaskarray(image)[:, :, :3].any(axis=2)] = np.nan
    return grey


def _checked(image: Any, name: str) -> NDArray[Any]:
    """Check type and shape of one view; masked pixels become NaN."""
    if isinstance(image, str | os.PathLike):
        raise InputError(
            f"{name}={os.fspath(image)!r} is a path, and a view is an array of (rows, cols). Read "
            "both files first: pair = d3s.load_pair(left, right), then estimate pair.left and "
            "pair.right."
        )
    if isinstance(image, np.ma.MaskedArray) and image.dtype.kind in "buif":
        image = np.ma.filled(image.astype(np.float64), np.nan)
    try:
        values = np.asarray(image)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an image, an array of (rows, cols).") from error
    if values.dtype.kind not in "buif":
        raise InputError(f"{name} has dtype {values.dtype}: it must be real numbers.")
    if values.ndim != 2:
        remedy = ", or (rows, cols, 3) in colour" if values.ndim == 3 else ""
        raise InputError(f"{name} has shape {values.shape}: it must be (rows, cols){remedy}.")
    if not 0 < values.size <= _LARGEST_PX:
        remedy = " Shrink both views, and the focal length of the rig with them."
        raise InputError(
            f"{name} has {values.size} pixels: it must have 1 to {_LARGEST_PX}."
            f"{remedy if values.size else ''}"
        )
    return values
