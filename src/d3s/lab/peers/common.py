"""Shared by all rivals: input and result of a call, intensity scaling, filters and flags."""

import time
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.lens_field import lens_field
from d3s.optics.stereo import depth_error_m
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Mask

NormalisedPair = tuple[FloatArray, FloatArray]
"""Left and right view (rows, cols) on one intensity scale, without NaN; see `normalise_pair`."""
Float32Array = NDArray[np.float32]
"""Numbers of any shape in single precision."""
Flags = NDArray[np.uint16]
"""Bits of `Flag` per pixel (rows, cols); 0 where there is a depth."""
_Real = TypeVar("_Real", np.float32, np.float64)

RANGE_MARGIN_PX = 1
"""Disparity allowed beyond the depth range: errors at the ends of the range go both ways."""
GAUSSIAN_RADIUS_SIGMAS = 4
"""Radius at which OpenCV truncates a Gaussian, in standard deviations."""

# Intensities outside these percentiles are clipped, so that a few highlights do not use up the
# grey levels.
_BLACK_PERCENTILE, _WHITE_PERCENTILE = 0.1, 99.9
# A window with a smaller standard deviation, relative to full scale, is constant up to rounding.
_MIN_CONTRAST = 1e-4


@dataclass(frozen=True)
class MethodCall:
    """One call of a method: its input and its options; makes flags and the result."""

    method: str  # name in the result
    views: tuple[Image, Image]  # left and right (rows, cols), NaN where there is no value
    rig: Rig
    options: Any
    started_s: float = field(default_factory=time.perf_counter)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a view."""
        rows, cols = self.views[0].shape
        return rows, cols

    @property
    def range_m(self) -> tuple[float, float]:
        """Nearest and farthest depth of the search, in metres."""
        if self.options.candidates_m is not None:
            return self.options.candidates_m[0], self.options.candidates_m[-1]
        return self.options.depth_range_m or default_depth_range_m(self.rig.optics)

    @property
    def limits_px(self) -> tuple[float, float]:
        """Smallest and largest disparity of the depth range, with a margin, in px."""
        nearest_px, farthest_px = self.rig.optics.disparity_px(self.range_m)
        return float(farthest_px) - RANGE_MARGIN_PX, float(nearest_px) + RANGE_MARGIN_PX

    def flag_disparity(self, flags: Flags, disparity_px: FloatArray) -> None:
        """Set BORDER and OUT_OF_RANGE in place where a match lies outside the frame or the range.

        Disparities (rows, cols) are those of the left view in px; NaN sets no flag.
        """
        cols = flags.shape[1]
        column = np.arange(cols) - disparity_px
        flags[(column < 0) | (column > cols - 1)] |= np.uint16(Flag.BORDER)
        lowest_px, highest_px = self.limits_px
        is_outside = (disparity_px < lowest_px) | (disparity_px > highest_px)
        is_beyond_infinity = disparity_px <= self.rig.optics.disparity_offset_px
        flags[is_outside | is_beyond_infinity] |= np.uint16(Flag.OUT_OF_RANGE)

    def flag_invalid(self, flags: Flags, disparity_px: FloatArray, radius_px: int) -> None:
        """Set INVALID_INPUT in place near NaN pixels of the left view and of the match.

        A NaN pixel affects results up to `radius_px` from it; NaN in `disparity_px` counts as 0.
        """
        left, right = (dilate(~np.isfinite(view), radius_px) for view in self.views)
        flags[left] |= np.uint16(Flag.INVALID_INPUT)
        if right.any():
            cols = flags.shape[1]
            column = np.arange(cols) - np.nan_to_num(disparity_px)
            matched = np.clip(np.rint(column), 0, cols - 1).astype(np.intp)
            flags[np.take_along_axis(right, matched, axis=1)] |= np.uint16(Flag.INVALID_INPUT)

    def finish_disparity(
        self,
        flags: Flags,
        disparity_px: FloatArray,
        sigma_px: FloatArray | float,
        confidence: FloatArray,
    ) -> DepthMap:
        """Result of a stereo matcher; depth and its standard deviation follow from disparity.

        Disparity that the lenses add, if the calibration of the rig knows it, is subtracted before.

        `sigma_px` is one value, or (rows, cols); `disparity_px` is NaN where there is none.
        """
        optics = self.rig.optics
        depth_m = optics.depth_m(disparity_px - self._lens_disparity_px(disparity_px))
        sigma_m = depth_error_m(
            sigma_px, depth_m, focal_length_px=optics.focal_length_px, baseline_m=optics.baseline_m
        )
        return self.finish(flags, depth_m, sigma_m, confidence)

    def _lens_disparity_px(self, disparity_px: FloatArray) -> FloatArray | float:
        """Disparity (rows, cols) that the lenses add in px; 0 if they are alike everywhere."""
        field = lens_field(self.rig, self.shape)
        if field is None or not field.changes_disparity:
            return 0.0
        x, y = field.places(self.shape, 1)
        vergence_dpt = field.vergence_dpt(disparity_px)
        return field.lenses.remaining_disparity_px(x, y, vergence_dpt, field.optics)

    def finish(
        self, flags: Flags, depth_m: FloatArray, sigma_m: FloatArray, confidence: FloatArray
    ) -> DepthMap:
        """Result with NaN depth exactly where a flag is set.

        `flags` are reasons for no depth. Pixels without one whose depth or sigma is not finite get
        INCONSISTENT, in place. Confidence is clipped to 0..1; NaN becomes 0.
        """
        is_finite = np.isfinite(depth_m) & np.isfinite(sigma_m)
        flags[~is_finite & (flags == 0)] |= np.uint16(Flag.INCONSISTENT)
        has_depth = flags == 0
        return DepthMap(
            depth_m=np.where(has_depth, depth_m, np.nan).astype(np.float32),
            sigma_m=np.where(has_depth, sigma_m, np.nan).astype(np.float32),
            confidence=np.clip(np.nan_to_num(confidence), 0, 1).astype(np.float32),
            flags=flags,
            rig=self.rig,
            method=self.method,
            options=self.options,
            timings_s={"all": time.perf_counter() - self.started_s},
        )

    def finish_empty(self, reason: Flag) -> DepthMap:
        """Result without any depth: every pixel has the flag `reason`."""
        flags = np.full(self.shape, reason, dtype=np.uint16)
        for view in self.views:
            flags[~np.isfinite(view)] |= np.uint16(Flag.INVALID_INPUT)
        unknown = np.full(self.shape, np.nan)
        return self.finish(flags, unknown, unknown, np.zeros(self.shape))


# Images -------------------------------------------------------------------------------------------


def normalise_pair(views: tuple[Image, Image]) -> NormalisedPair | None:
    """Scale both views by one gain and offset; None if they are constant or all NaN.

    The 0.1th percentile of both views becomes 0, the 99.9th becomes 1, so that the result does not
    depend on gain and offset. NaN pixels get the median.
    """
    known = np.concatenate([view[np.isfinite(view)] for view in views]).astype(np.float64)
    if known.size == 0:
        return None
    black, median, white = np.percentile(known, (_BLACK_PERCENTILE, 50, _WHITE_PERCENTILE))
    if not white > black:
        return None
    left, right = (
        np.asarray((np.where(np.isfinite(view), view, median) - black) / (white - black))
        for view in views
    )
    return left, right


def gaussian_blur(view: FloatArray, sigma_px: float) -> FloatArray:
    """View convolved with a Gaussian; the view itself for a sigma of 0."""
    import cv2

    if sigma_px <= 0:
        return view
    return np.asarray(cv2.GaussianBlur(view, (0, 0), sigma_px))


def gaussian_radius_px(sigma_px: float) -> int:
    """Radius of a truncated Gaussian, rounded up to whole pixels."""
    return int(np.ceil(GAUSSIAN_RADIUS_SIGMAS * sigma_px))


def to_8_bit(pair: NormalisedPair, sigma_px: float) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Blur a normalised pair and round it to 0..255, the input of OpenCV's matchers."""
    left, right = (
        np.clip(np.rint(gaussian_blur(255 * view, sigma_px)), 0, 255).astype(np.uint8)
        for view in pair
    )
    return left, right


def box_mean(values: NDArray[_Real], window_px: int) -> NDArray[_Real]:
    """Mean over the odd square window around each pixel; the image is mirrored at its borders."""
    import cv2

    size = (window_px, window_px)
    mean = cv2.boxFilter(values, -1, size, borderType=cv2.BORDER_REFLECT)
    return np.asarray(mean, dtype=values.dtype)


def is_constant(view: FloatArray, window_px: int) -> Mask:
    """Mask of pixels whose window in a normalised view has no contrast."""
    mean = box_mean(view, window_px)
    return np.asarray(box_mean((view - mean) ** 2, window_px) < _MIN_CONTRAST**2)


def dilate(mask: Mask, radius_px: int) -> Mask:
    """Mask dilated by a square of side 2 `radius_px` + 1."""
    import cv2

    if not mask.any():
        return mask
    kernel = np.ones((2 * radius_px + 1, 2 * radius_px + 1), dtype=np.uint8)
    return cv2.dilate(mask.astype(np.uint8), kernel).astype(np.bool_)


def inside_frame(shape: tuple[int, int], half_px: int) -> Mask:
    """Mask of pixels whose window of side 2 `half_px` + 1 lies inside the frame."""
    rows, cols = shape
    inside = np.zeros(shape, dtype=np.bool_)
    inside[half_px : max(rows - half_px, 0), half_px : max(cols - half_px, 0)] = True
    return inside
