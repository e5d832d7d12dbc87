"""What the methods of others share: scales, ranges, the reasons for no depth, and the result."""

import time
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options
from d3s.optics.stereo import depth_error_m
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image, Mask

Flags = NDArray[np.uint16]
_Real = TypeVar("_Real", np.float32, np.float64)

SLACK_PX = 1
"""How far beyond the range a disparity may be: a depth at the very end has errors to both sides."""
KERNEL_SIGMAS = 4
"""How far a Gaussian reaches, as OpenCV cuts it."""

# What is beyond is clipped: a few glints must not take the grey levels from all the rest.
_DARKEST_PERCENT, _BRIGHTEST_PERCENT = 0.1, 99.9
# A window whose contrast is a smaller share of full scale is constant, but for rounding.
_LEAST_CONTRAST = 1e-4


class Job(NamedTuple):
    """One call of a method: what it was given, and when."""

    method: str
    views: tuple[Image, Image]
    rig: Rig
    options: Any
    started_s: float

    @classmethod
    def start(cls, method: str, left: Image, right: Image, rig: Rig, options: Options) -> "Job":
        """The clock runs from here."""
        return cls(method, (left, right), rig, options, time.perf_counter())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a view."""
        rows, cols = self.views[0].shape
        return rows, cols

    @property
    def range_m(self) -> tuple[float, float]:
        """The nearest and the farthest depth to look for."""
        if self.options.candidates_m is not None:
            return self.options.candidates_m[0], self.options.candidates_m[-1]
        return self.options.depth_range_m or default_depth_range_m(self.rig.optics)

    def finish(
        self, flags: Flags, depth_m: FloatArray, sigma_m: FloatArray, confidence: FloatArray
    ) -> DepthMap:
        """The result: depth where there is no flag, and a flag where there is no depth."""
        is_known = np.isfinite(depth_m) & np.isfinite(sigma_m)
        add_flag(flags, Flag.INCONSISTENT, ~is_known & (flags == 0))
        found = flags == 0
        return DepthMap(
            depth_m=np.where(found, depth_m, np.nan).astype(np.float32),
            sigma_m=np.where(found, sigma_m, np.nan).astype(np.float32),
            confidence=np.clip(np.nan_to_num(confidence), 0, 1).astype(np.float32),
            flags=flags,
            rig=self.rig,
            method=self.method,
            options=self.options,
            timings_s={"all": time.perf_counter() - self.started_s},
        )

    def nothing(self, reason: Flag) -> DepthMap:
        """The result when no pixel can have a depth, all for one reason."""
        flags = np.full(self.shape, reason, dtype=np.uint16)
        for view in self.views:
            add_flag(flags, Flag.INVALID_INPUT, ~np.isfinite(view))
        unknown = np.full(self.shape, np.nan)
        return self.finish(flags, unknown, unknown, np.zeros(self.shape))


def scaled(views: tuple[Image, Image]) -> tuple[FloatArray, FloatArray] | None:
    """Both views on one scale, dark 0 and bright 1, holes filled; None if there is one level only.

    From the darkest to the brightest of their pixels but a few, so that gain and offset do not
    matter.
    """
    known = np.concatenate([view[np.isfinite(view)] for view in views]).astype(np.float64)
    if known.size == 0:
        return None
    dark, middle, bright = np.percentile(known, (_DARKEST_PERCENT, 50, _BRIGHTEST_PERCENT))
    if not bright > dark:
        return None
    left, right = (
        np.asarray((np.where(np.isfinite(view), view, middle) - dark) / (bright - dark))
        for view in views
    )
    return left, right


def smoothed(view: FloatArray, sigma_px: float) -> FloatArray:
    """A view after a Gaussian; itself for a sigma of 0."""
    import cv2

    if sigma_px <= 0:
        return view
    return np.asarray(cv2.GaussianBlur(view, (0, 0), sigma_px))


def eight_bits(
    levels: tuple[FloatArray, FloatArray], sigma_px: float
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Views of `scaled` after a Gaussian, as OpenCV's matchers take them."""
    left, right = (
        np.clip(np.rint(smoothed(255 * view, sigma_px)), 0, 255).astype(np.uint8) for view in levels
    )
    return left, right


def box_mean(values: NDArray[_Real], window_px: int) -> NDArray[_Real]:
    """Mean over the odd square window around each pixel, the image mirrored at its borders."""
    import cv2

    size = (window_px, window_px)
    mean = cv2.boxFilter(values, -1, size, borderType=cv2.BORDER_REFLECT)
    return np.asarray(mean, dtype=values.dtype)


def is_constant(view: FloatArray, window_px: int) -> Mask:
    """Where the window around a pixel of `scaled` has one level only."""
    mean = box_mean(view, window_px)
    return np.asarray(box_mean((view - mean) ** 2, window_px) < _LEAST_CONTRAST**2)


def add_flag(flags: Flags, flag: Flag, where: Mask | bool = True) -> None:
    """Set a flag in place."""
    np.bitwise_or(flags, np.uint16(flag), out=flags, where=where)


def flag_outer(flags: Flags, half_px: int, where: Mask | bool = True) -> Mask:
    """Set BORDER in place where a window leaves the frame; give the pixels where it does not."""
    rows, cols = flags.shape
    inside = np.zeros(flags.shape, dtype=np.bool_)
    inside[half_px : max(rows - half_px, 0), half_px : max(cols - half_px, 0)] = True
    add_flag(flags, Flag.BORDER, ~inside & where)
    return inside


def flag_disparity(
    flags: Flags, disparity_px: FloatArray, optics: Optics, range_m: tuple[float, float]
) -> None:
    """Set flags in place where a disparity leads out of the frame or of the range."""
    cols = flags.shape[1]
    column = np.arange(cols) - disparity_px
    add_flag(flags, Flag.BORDER, (column < 0) | (column > cols - 1))
    nearest_px, farthest_px = optics.disparity_px(range_m)
    is_out = (disparity_px > nearest_px + SLACK_PX) | (disparity_px < farthest_px - SLACK_PX)
    add_flag(flags, Flag.OUT_OF_RANGE, is_out | (disparity_px <= optics.disparity_offset_px))


def flag_invalid(
    flags: Flags, views: tuple[Image, Image], disparity_px: FloatArray, reach_px: int
) -> None:
    """Mark what a pixel without a value reaches, in the left view or where the match is."""
    left, right = (spread(~np.isfinite(view), reach_px) for view in views)
    add_flag(flags, Flag.INVALID_INPUT, left)
    if right.any():
        cols = flags.shape[1]
        column = np.arange(cols) - np.nan_to_num(disparity_px)
        matched = np.clip(np.rint(column), 0, cols - 1).astype(np.intp)
        add_flag(flags, Flag.INVALID_INPUT, np.take_along_axis(right, matched, axis=1))


def spread(mask: Mask, reach_px: int) -> Mask:
    """A mask, and all that is so near to it, up, down and to the sides."""
    import cv2

    if not mask.any():
        return mask
    kernel = np.ones((2 * reach_px + 1, 2 * reach_px + 1), dtype=np.uint8)
    return cv2.dilate(mask.astype(np.uint8), kernel).astype(np.bool_)


def kernel_reach_px(sigma_px: float) -> int:
    """How far a Gaussian reaches, in whole pixels."""
    return int(np.ceil(KERNEL_SIGMAS * sigma_px))


def sigma_m(disparity_sigma_px: Any, depth_m: FloatArray, optics: Optics) -> FloatArray:
    """Standard deviation of depth, from that of disparity."""
    return depth_error_m(
        disparity_sigma_px,
        depth_m,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
    )
