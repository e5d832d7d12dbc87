"""OpenCV's stereo matchers `sgbm` and `bm`, with the best settings that we found.

Papers: Hirschmüller, "Stereo processing by semiglobal matching and mutual information" (IEEE
Transactions on Pattern Analysis and Machine Intelligence 30, 2008), in OpenCV's `StereoSGBM`; plain
block matching by sums of absolute differences, in OpenCV's `StereoBM`. Neither uses the defocus: a
difference in blur between the views is an error source to both.

Taken from OpenCV: the matchers as they are. They take 8-bit images and give disparities in
sixteenths of a pixel. `StereoSGBM` itself differs from the paper: it matches blocks by
Birchfield-Tomasi costs instead of mutual information.

Added here:

- One gain and offset for both views, from the 0.1th to the 99.9th percentile of their intensities.
- The views are extended at their sides. OpenCV gives no disparity to columns from which the largest
  disparity would leave the frame, although most of them match inside it. A match outside the frame
  is rejected afterwards.
- OpenCV rounds disparities up; the mean rounding error is subtracted.
- OpenCV gives no standard deviation. `sigma_m` is a constant disparity error, found on the tuning
  textures, plus the rounding to sixteenths, converted to depth. `confidence` is 1 where there is a
  depth.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options, PrefilterSigma, Window, odd
from d3s.lab.peers.common import (
    RANGE_MARGIN_PX,
    MethodCall,
    gaussian_radius_px,
    inside_frame,
    is_constant,
    normalise_pair,
    to_8_bit,
)
from d3s.rig import Optics, Rig
from d3s.types import Image

if TYPE_CHECKING:
    import cv2

_SUBPIXELS = 16  # OpenCV's disparities are whole multiples of a sixteenth of a pixel
_ROUNDING_SIGMA_PX = 1 / _SUBPIXELS / np.sqrt(12)
_LARGEST_DISPARITY_PX = 2000  # OpenCV stores sixteenths in 16 bits


class OpencvOptions(Options):
    """Options of both OpenCV matchers.

    The defaults minimise, on the tuning textures with 1 % noise (benchmarks/tune_peers.py), the log
    of the MAE on planes from 0.25 to 2 m plus half the log of the MAE on random scenes, with a
    penalty where less than 95 % (planes) or 90 % (scenes) of the textured pixels have a depth. One
    setting serves planes and scenes, as for our own method.
    """

    unfiltered: ClassVar[dict[str, int]] = {
        "disp12_max_diff_px": -1,
        "uniqueness_percent": 0,
        "speckle_window_px": 0,
    }

    # Rejects pixels visible in one view only; 2, or no check, changed the result at edges only.
    disp12_max_diff_px: int = Field(
        default=1, ge=-1, le=256, description="the largest left-right difference, -1 for no check"
    )
    # Smaller patches are mostly false matches, at edges and where the near blur left no texture.
    speckle_window_px: int = Field(
        default=400,
        ge=0,
        le=100_000,
        description="the pixels that a patch must have, 0 for no check",
    )
    # OpenCV's advice; surfaces seen by this camera change by less from pixel to pixel.
    speckle_range_px: int = Field(
        default=1, ge=1, le=256, description="the step of disparity that ends a patch"
    )
    # Reduces noise and the rounding to 8 bits: without it the MAE beyond 1.2 m is 1.6 to 1.9 times
    # as large, and few pixels nearer than 0.4 m have a depth. 2 and 3 px are as good.
    prefilter_sigma_px: PrefilterSigma = 2.5
    # OpenCV rounds up to the next sixteenth: always in bm, below a whole disparity in sgbm. So its
    # disparities are too large by 1/32 and 1/64 px on average, 0.5 and 0.3 cm at 2 m. 0 keeps
    # OpenCV's disparities.
    rounding_px: float = Field(
        default=1 / 32, ge=-1, le=1, description="what is subtracted from OpenCV's disparities"
    )
    # Two thirds of the errors on the tuning planes are smaller. The true value grows from 0.04 px
    # where the views are sharp to 0.3 px at 0.25 m.
    disparity_sigma_px: float = Field(
        default=0.06, gt=0, le=100, description="the standard deviation of a disparity, for sigma_m"
    )


class SgbmOptions(OpencvOptions):
    """Options of semi-global matching."""

    # Larger is better on planes until OpenCV's 16-bit sums overflow: at 19 px with a cap of 63, at
    # 25 px with a cap of 31.
    block_size_px: Annotated[int, Field(ge=1, le=51), AfterValidator(odd)] = Field(
        default=21, description="the side of the block that is compared, odd"
    )
    # As small as possible: a penalty on single steps pulls depths to whole disparities. The usual
    # 8 * block_size_px ** 2 makes the MAE beyond 1 m 2 to 5 times as large, and smaller only
    # nearer than 0.35 m. OpenCV reads 0 as 2.
    p1: int = Field(default=1, ge=1, le=1_000_000, description="the penalty on a step of one pixel")
    # No effect on planes; on scenes 100 to 2400 are equal, and 10000 overflows.
    p2: int = Field(
        default=2400,
        ge=1,
        le=1_000_000,
        validate_default=True,  # a given p1 may exceed the default
        description="the penalty on a larger step, above p1",
    )
    # Higher is better until the sums overflow: see block_size_px.
    pre_filter_cap: int = Field(
        default=31, ge=1, le=127, description="the gradient at which the prefilter is clipped"
    )
    # Rejects errors at edges; a higher value costs density at 0.25 m.
    uniqueness_percent: int = Field(
        default=20, ge=0, le=100, description="the margin of the smallest cost over the next"
    )
    # Eight directions in two passes: equal to the others on planes, a third better on scenes.
    mode: Literal["sgbm", "hh", "3way", "hh4"] = Field(
        default="hh", description="the paths along which costs are aggregated"
    )
    rounding_px: float = Field(
        default=1 / 64, ge=-1, le=1, description="what is subtracted from OpenCV's disparities"
    )
    disparity_sigma_px: float = Field(
        default=0.12, gt=0, le=100, description="the standard deviation of a disparity, for sigma_m"
    )

    @field_validator("p2")
    @classmethod
    def _is_larger(cls, p2: int, info: ValidationInfo) -> int:
        p1 = info.data.get("p1")
        if p1 is not None and p2 <= p1:
            raise ValueError(f"must be above p1={p1}.")
        return p2


class BmOptions(OpencvOptions):
    """Options of block matching."""

    # The window of the Cramér-Rao bound that all methods are compared with. 41 px is a tenth better
    # on planes and a tenth worse on scenes, 21 px a fifth to a third worse beyond 1.5 m.
    block_size_px: Annotated[Window, Field(ge=5)] = Field(
        default=31, description="the side of the block that is compared, odd"
    )
    # Normalising amplifies noise where the near blur leaves little texture: false matches.
    pre_filter: Literal["xsobel", "normalized"] = Field(
        default="xsobel", description="the filter of both views before they are compared"
    )
    # OpenCV's default; used by the normalized prefilter only.
    pre_filter_size_px: Annotated[Window, Field(ge=5)] = Field(
        default=9, description="the window of the normalized prefilter, odd"
    )
    # OpenCV's maximum: with 31 the MAE at 2 m is a quarter larger.
    pre_filter_cap: int = Field(
        default=63, ge=1, le=63, description="the value at which the prefilter is clipped"
    )
    # OpenCV's default; 0 to 1000 made no difference.
    texture_threshold: int = Field(
        default=10, ge=0, le=1_000_000, description="the sum of gradients that a block must have"
    )
    # Rejects errors at edges: with 15 the MAE on scenes is half as large again. A higher value
    # costs density at 0.25 m.
    uniqueness_percent: int = Field(
        default=25, ge=0, le=100, description="the margin of the smallest cost over the next"
    )


def estimate_sgbm(left: Image, right: Image, rig: Rig, options: SgbmOptions) -> DepthMap:
    """Semi-global matching: Birchfield-Tomasi costs in blocks, aggregated along several paths.

    Raises an InputError when the depth range needs disparities beyond 2000 px.
    """
    return _estimate(MethodCall("sgbm", (left, right), rig, options), _make_sgbm)


def estimate_bm(left: Image, right: Image, rig: Rig, options: BmOptions) -> DepthMap:
    """Block matching: the smallest sum of absolute differences, without smoothing.

    Raises an InputError when the depth range needs disparities beyond 2000 px.
    """
    return _estimate(MethodCall("bm", (left, right), rig, options), _make_bm)


class _DisparityRange(NamedTuple):
    """Whole disparities to try: `number`, a multiple of 16, from `lowest` upwards."""

    lowest: int
    number: int

    @property
    def padding_px(self) -> tuple[int, int]:
        """Columns to add left and right so that every disparity stays inside the frame."""
        return max(self.lowest + self.number, 0), max(-self.lowest, 0)


def _make_sgbm(options: Any, search: _DisparityRange) -> "cv2.StereoMatcher":
    import cv2

    modes = {
        "sgbm": cv2.STEREO_SGBM_MODE_SGBM,
        "hh": cv2.STEREO_SGBM_MODE_HH,
        "3way": cv2.STEREO_SGBM_MODE_SGBM_3WAY,
        "hh4": cv2.STEREO_SGBM_MODE_HH4,
    }
    # StereoSGBM reads a negative number as 1, unlike its manual; 0 too.
    largest_px = options.disp12_max_diff_px if options.disp12_max_diff_px >= 0 else search.number
    return cv2.StereoSGBM.create(
        minDisparity=search.lowest,
        numDisparities=search.number,
        blockSize=options.block_size_px,
        P1=options.p1,
        P2=options.p2,
        disp12MaxDiff=largest_px,
        preFilterCap=options.pre_filter_cap,
        uniquenessRatio=options.uniqueness_percent,
        speckleWindowSize=options.speckle_window_px,
        speckleRange=options.speckle_range_px,
        mode=modes[options.mode],
    )


def _make_bm(options: Any, search: _DisparityRange) -> "cv2.StereoMatcher":
    import cv2

    kinds = {
        "xsobel": cv2.STEREO_BM_PREFILTER_XSOBEL,
        "normalized": cv2.STEREO_BM_PREFILTER_NORMALIZED_RESPONSE,
    }
    matcher = cv2.StereoBM.create(search.number, options.block_size_px)
    matcher.setMinDisparity(search.lowest)
    matcher.setDisp12MaxDiff(options.disp12_max_diff_px)
    matcher.setSpeckleWindowSize(options.speckle_window_px)
    matcher.setSpeckleRange(options.speckle_range_px)
    matcher.setPreFilterType(kinds[options.pre_filter])
    matcher.setPreFilterSize(options.pre_filter_size_px)
    matcher.setPreFilterCap(options.pre_filter_cap)
    matcher.setTextureThreshold(options.texture_threshold)
    matcher.setUniquenessRatio(options.uniqueness_percent)
    return matcher


def _estimate(
    call: MethodCall, make_matcher: Callable[[Any, _DisparityRange], "cv2.StereoMatcher"]
) -> DepthMap:
    options, block_px = call.options, call.options.block_size_px
    search = _disparity_range(call.rig.optics, call.range_m, call.shape[1])
    pair = normalise_pair(call.views)
    if pair is None:
        return call.finish_empty(Flag.LOW_TEXTURE)
    if search is None or min(call.shape) < block_px:
        return call.finish_empty(Flag.BORDER)
    grey = to_8_bit(pair, options.prefilter_sigma_px)
    disparity_px = _disparity_px(make_matcher(options, search), grey, search) - options.rounding_px
    flags = np.zeros(call.shape, dtype=np.uint16)
    # OpenCV gives no reason for a missing disparity.
    missing = np.isnan(disparity_px)
    inside = inside_frame(call.shape, block_px // 2)
    flags[missing & ~inside] |= np.uint16(Flag.BORDER)
    flags[missing & inside] |= np.uint16(Flag.INCONSISTENT)
    # The paths of sgbm carry disparities into regions without texture.
    flags[is_constant(pair[0], block_px)] |= np.uint16(Flag.LOW_TEXTURE)
    call.flag_disparity(flags, disparity_px)
    radius_px = block_px // 2 + gaussian_radius_px(options.prefilter_sigma_px)
    call.flag_invalid(flags, disparity_px, radius_px)
    sigma_px = float(np.hypot(options.disparity_sigma_px, _ROUNDING_SIGMA_PX))
    return call.finish_disparity(flags, disparity_px, sigma_px, (flags == 0).astype(np.float64))


def _disparity_range(
    optics: Optics, range_m: tuple[float, float], cols: int
) -> _DisparityRange | None:
    """Disparities of a depth range; None if no disparity of the range fits into the frame."""
    nearest_px, farthest_px = (float(one) for one in optics.disparity_px(range_m))
    lowest = max(int(np.floor(farthest_px)) - RANGE_MARGIN_PX, 1 - cols)
    highest = min(int(np.ceil(nearest_px)) + RANGE_MARGIN_PX, cols - 1)
    if highest < lowest:
        return None
    if max(-lowest, highest) > _LARGEST_DISPARITY_PX:
        raise InputError(
            f"depth_range_m={range_m} needs disparities from {lowest} to {highest} px, and OpenCV "
            f"has them up to {_LARGEST_DISPARITY_PX} only. Narrow the range in the options."
        )
    return _DisparityRange(lowest, 16 * -(-(highest - lowest + 1) // 16))


def _disparity_px(
    matcher: "cv2.StereoMatcher",
    grey: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    search: _DisparityRange,
) -> NDArray[np.float64]:
    """Disparity (rows, cols) of the left view in px, NaN where OpenCV gives none."""
    import cv2

    before, after = search.padding_px
    padded = [cv2.copyMakeBorder(v, 0, 0, before, after, cv2.BORDER_REPLICATE) for v in grey]
    sixteenths = matcher.compute(*padded)[:, before : before + grey[0].shape[1]]
    found = sixteenths >= _SUBPIXELS * search.lowest
    return np.where(found, sixteenths / float(_SUBPIXELS), np.nan)
