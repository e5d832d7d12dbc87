"""OpenCV's two stereo matchers, `sgbm` and `bm`, given the best chance we know of.

Both take 8-bit images and give disparities in sixteenths of a pixel. What is done around them here:

- Both views get one common scale, from the darkest to the brightest of their pixels but a few, so
  that gain and offset do not matter.
- The views are continued at their sides. OpenCV gives nothing to columns from which the largest
  disparity would leave the frame, although most of them match well within it; a match that does
  lie outside is dropped afterwards.
- OpenCV rounds disparities up, and the mean of that is taken off.
- OpenCV knows no standard deviation. `sigma_m` is one constant disparity error, as it was on the
  tuning textures, and the rounding to sixteenths, taken to depth.

Neither knows of defocus: that the two views differ in blur is an error to them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options, Window
from d3s.peers.common import (
    SLACK_PX,
    Job,
    add_flag,
    eight_bits,
    flag_disparity,
    flag_invalid,
    flag_outer,
    is_constant,
    kernel_reach_px,
    scaled,
    sigma_m,
)
from d3s.rig import Optics, Rig
from d3s.types import Image

if TYPE_CHECKING:
    import cv2

_SUBPIXELS = 16  # OpenCV's disparities are whole numbers of this part of a pixel
_ROUNDING_SIGMA_PX = 1 / _SUBPIXELS / np.sqrt(12)
_LARGEST_DISPARITY_PX = 2000  # sixteenths are kept in 16 bits


def _odd(block_px: int) -> int:
    if block_px % 2 == 0:
        raise ValueError(f"must be odd: a block has a pixel at its centre. Try {block_px + 1}.")
    return block_px


class OpencvOptions(Options):
    """What both matchers of OpenCV can be told.

    The defaults are the best that we found on the tuning textures with 1 % noise
    (benchmarks/tune_peers.py): the log of the MAE on planes from 0.25 to 2 m and, at half the
    weight, on random scenes, with a penalty where less than 95 % (planes) or 90 % (scenes) of the
    textured pixels were retained. One setting for both, as for our own method. For sharp images of
    another camera see benchmarks/motorcycle.py.
    """

    unfiltered: ClassVar[dict[str, int]] = {
        "disp12_max_diff_px": -1,
        "uniqueness_percent": 0,
        "speckle_window_px": 0,
    }

    # Takes out what is seen in one view only; 2, or no check at all, gave the same but at edges.
    disp12_max_diff_px: int = Field(
        default=1, ge=-1, le=256, description="the most both ways may differ, -1 for no check"
    )
    # Smaller patches are mostly false matches, at edges and where the near blur left no texture.
    speckle_window_px: int = Field(
        default=400, ge=0, le=100_000, description="the pixels a patch must have, 0 for no check"
    )
    # OpenCV's own advice; the surfaces of this camera change by less from pixel to pixel.
    speckle_range_px: int = Field(
        default=1, ge=1, le=256, description="the step of disparity that ends a patch"
    )
    # Against noise, and against the rounding to 8 bits: without it the MAE beyond 1.2 m is 1.6 to
    # 1.9 times as large, and nearer than 0.4 m little is found. 2 and 3 px are as good.
    prefilter_sigma_px: float = Field(
        default=2.5, ge=0, le=10, description="the Gaussian that both views are smoothed with"
    )
    # OpenCV rounds up to the next sixteenth: always in bm, below a whole disparity in sgbm. So its
    # disparities are too large by 1/32 and 1/64 px on average, 0.5 and 0.3 cm at 2 m. 0 leaves them
    # as OpenCV has them.
    rounding_px: float = Field(
        default=1 / 32, ge=-1, le=1, description="what is subtracted from OpenCV's disparities"
    )
    # What two thirds of the errors on the tuning planes are below. In truth it grows from 0.04 px
    # where the views are sharp to 0.3 px at 0.25 m.
    disparity_sigma_px: float = Field(
        default=0.06, gt=0, le=100, description="the standard deviation of a disparity, for sigma_m"
    )


class SgbmOptions(OpencvOptions):
    """Choices for semi-global matching."""

    # The larger the better on planes, up to where OpenCV's 16-bit sums overflow, at 19 px with a
    # cap of 63 and at 25 px with a cap of 31.
    block_size_px: Annotated[int, Field(ge=1, le=51), AfterValidator(_odd)] = Field(
        default=21, description="the side of the block that is compared, odd"
    )
    # Hardly any: a penalty on single steps pulls depths to whole disparities. The usual
    # 8 * block_size_px ** 2 makes the MAE beyond 1 m 2 to 5 times as large, and smaller only
    # nearer than 0.35 m. OpenCV takes 0 for 2.
    p1: int = Field(default=1, ge=1, le=1_000_000, description="the penalty on a step of one pixel")
    # Of no effect on planes; on scenes anything from 100 to 2400 is alike, and 10000 overflows.
    p2: int = Field(
        default=2400,
        ge=1,
        le=1_000_000,
        validate_default=True,  # against a p1 that is given
        description="the penalty on a larger step, above p1",
    )
    # The higher the better, as far as the sums go: see block_size_px.
    pre_filter_cap: int = Field(
        default=31, ge=1, le=127, description="the gradient at which the prefilter is cut"
    )
    # Leaves out mistakes at edges; more of it costs density at 0.25 m.
    uniqueness_percent: int = Field(
        default=20, ge=0, le=100, description="the margin by which the best must win"
    )
    # All eight directions in two passes: as good as others on planes, a third better on scenes.
    mode: Literal["sgbm", "hh", "3way", "hh4"] = Field(
        default="hh", description="the paths that costs are gathered along"
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
    """Choices for block matching."""

    # As large as the window of the bound that all are held against. 41 px is a tenth better on
    # planes and a tenth worse on scenes, 21 px a fifth to a third worse beyond 1.5 m.
    block_size_px: Annotated[Window, Field(ge=5)] = Field(
        default=31, description="the side of the block that is compared, odd"
    )
    # Normalising amplifies the noise where the near blur left little texture: false matches.
    pre_filter: Literal["xsobel", "normalized"] = Field(
        default="xsobel", description="what makes the views alike before they are compared"
    )
    # OpenCV's own; of the normalized prefilter only.
    pre_filter_size_px: Annotated[Window, Field(ge=5)] = Field(
        default=9, description="the window of the normalized prefilter, odd"
    )
    # The highest that OpenCV takes: with 31, the MAE at 2 m is a quarter larger.
    pre_filter_cap: int = Field(
        default=63, ge=1, le=63, description="the value at which the prefilter is cut"
    )
    # OpenCV's own; 0 to 1000 made no difference.
    texture_threshold: int = Field(
        default=10, ge=0, le=1_000_000, description="the sum of gradients a block must have"
    )
    # Leaves out mistakes at edges: with 15, the MAE on scenes is half as large again. More of it
    # costs density at 0.25 m.
    uniqueness_percent: int = Field(
        default=25, ge=0, le=100, description="the margin by which the best must win"
    )


def estimate_sgbm(left: Image, right: Image, rig: Rig, options: SgbmOptions) -> DepthMap:
    """Semi-global matching: Birchfield-Tomasi costs in blocks, smoothed along several paths."""
    job = Job.start("sgbm", left, right, rig, options)
    return _estimate(job, options.block_size_px, _sgbm)


def estimate_bm(left: Image, right: Image, rig: Rig, options: BmOptions) -> DepthMap:
    """Block matching: the sum of absolute differences, each block for itself."""
    job = Job.start("bm", left, right, rig, options)
    return _estimate(job, options.block_size_px, _bm)


class _Search(NamedTuple):
    """Whole disparities to try: `number`, a multiple of 16, from `lowest` upwards."""

    lowest: int
    number: int

    @property
    def sides_px(self) -> tuple[int, int]:
        """Columns to add left and right, for every disparity to stay inside."""
        return max(self.lowest + self.number, 0), max(-self.lowest, 0)


def _sgbm(options: Any, search: _Search) -> "cv2.StereoMatcher":
    import cv2

    modes = {
        "sgbm": cv2.STEREO_SGBM_MODE_SGBM,
        "hh": cv2.STEREO_SGBM_MODE_HH,
        "3way": cv2.STEREO_SGBM_MODE_SGBM_3WAY,
        "hh4": cv2.STEREO_SGBM_MODE_HH4,
    }
    # To StereoSGBM a negative number is 1, whatever its manual says; so is 0.
    most_px = options.disp12_max_diff_px if options.disp12_max_diff_px >= 0 else search.number
    return cv2.StereoSGBM.create(
        minDisparity=search.lowest,
        numDisparities=search.number,
        blockSize=options.block_size_px,
        P1=options.p1,
        P2=options.p2,
        disp12MaxDiff=most_px,
        preFilterCap=options.pre_filter_cap,
        uniquenessRatio=options.uniqueness_percent,
        speckleWindowSize=options.speckle_window_px,
        speckleRange=options.speckle_range_px,
        mode=modes[options.mode],
    )


def _bm(options: Any, search: _Search) -> "cv2.StereoMatcher":
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
    job: Job, block_px: int, make: Callable[[Any, _Search], "cv2.StereoMatcher"]
) -> DepthMap:
    optics, options = job.rig.optics, job.options
    search = _search(optics, job.range_m, job.shape[1])
    levels = scaled(job.views)
    if levels is None:
        return job.nothing(Flag.LOW_TEXTURE)
    if search is None or min(job.shape) < block_px:
        return job.nothing(Flag.BORDER)
    grey = eight_bits(levels, options.prefilter_sigma_px)
    disparity = _disparity_px(make(options, search), grey, search) - options.rounding_px
    flags = np.zeros(job.shape, dtype=np.uint16)
    # OpenCV itself gives no reason.
    missing = np.isnan(disparity)
    inside = flag_outer(flags, block_px // 2, missing)
    add_flag(flags, Flag.INCONSISTENT, missing & inside)
    # The paths of sgbm carry disparities into what has no texture at all.
    add_flag(flags, Flag.LOW_TEXTURE, is_constant(levels[0], block_px))
    flag_disparity(flags, disparity, optics, job.range_m)
    reach_px = block_px // 2 + kernel_reach_px(options.prefilter_sigma_px)
    flag_invalid(flags, job.views, disparity, reach_px)
    depth_m = optics.depth_m(disparity)
    sigma_px = np.hypot(options.disparity_sigma_px, _ROUNDING_SIGMA_PX)
    confidence = (flags == 0).astype(np.float64)
    return job.finish(flags, depth_m, sigma_m(sigma_px, depth_m, optics), confidence)


def _search(optics: Optics, range_m: tuple[float, float], cols: int) -> _Search | None:
    """The disparities of a range of depths; None if a frame so narrow has no match at any."""
    nearest_px, farthest_px = (float(one) for one in optics.disparity_px(range_m))
    lowest = max(int(np.floor(farthest_px)) - SLACK_PX, 1 - cols)
    highest = min(int(np.ceil(nearest_px)) + SLACK_PX, cols - 1)
    if highest < lowest:
        return None
    if max(-lowest, highest) > _LARGEST_DISPARITY_PX:
        raise InputError(
            f"depth_range_m={range_m} needs disparities from {lowest} to {highest} px, and OpenCV "
            f"has them up to {_LARGEST_DISPARITY_PX} only. Narrow the range in the options."
        )
    return _Search(lowest, 16 * -(-(highest - lowest + 1) // 16))


def _disparity_px(
    matcher: "cv2.StereoMatcher",
    grey: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    search: _Search,
) -> NDArray[np.float64]:
    """Disparity of each pixel of the left view, NaN where OpenCV has none."""
    import cv2

    before, after = search.sides_px
    wider = [cv2.copyMakeBorder(v, 0, 0, before, after, cv2.BORDER_REPLICATE) for v in grey]
    sixteenths = matcher.compute(*wider)[:, before : before + grey[0].shape[1]]
    found = sixteenths >= _SUBPIXELS * search.lowest
    return np.where(found, sixteenths / float(_SUBPIXELS), np.nan)
