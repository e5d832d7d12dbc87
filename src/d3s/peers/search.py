"""What methods that compare windows share: their options, and the reasons for no depth."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options, Window
from d3s.peers.common import (
    Flags,
    Job,
    add_flag,
    flag_disparity,
    flag_invalid,
    flag_outer,
    is_constant,
    kernel_reach_px,
    scaled,
    sigma_m,
)
from d3s.peers.hypotheses import Hypotheses
from d3s.rig import Optics
from d3s.types import FloatArray


class CheckedOptions(Options):
    """What a method can be told of what it believes."""

    unfiltered: ClassVar[dict[str, float]] = {"consistency_px": -1.0, "min_confidence": 0.0}

    # What makes two thirds of the errors on the tuning planes smaller than sigma.
    sigma_factor: float = Field(
        default=1.0, gt=0, le=100, description="what the predicted deviation is multiplied by"
    )
    # Takes out what is seen in one view only, as OpenCV's matchers do. The papers have no such
    # check; without it a method answers for what it cannot see.
    consistency_px: float = Field(
        default=1.0, ge=-1, le=256, description="the most both ways may differ, -1 for no check"
    )
    min_confidence: float = Field(
        default=0.0, ge=0, le=1, description="the confidence that a depth must reach"
    )


class SearchOptions(CheckedOptions):
    """What a method that tries one depth after another can be told."""

    window_px: Window = Field(default=31, description="the side of the window of the costs, odd")
    prefilter_sigma_px: float = Field(
        default=1.0, ge=0, le=10, description="the Gaussian that both views are smoothed with"
    )
    # A parabola through costs that are a pixel apart is too coarse where the views are sharp: up to
    # twice the error at 0.9 m.
    step_px: float = Field(
        default=0.5, ge=0.1, le=4, description="the disparity from one depth to the next"
    )


class Found(NamedTuple):
    """What a comparison of windows gives for each pixel."""

    disparity_px: FloatArray  # NaN where there is none
    disagreement_px: FloatArray  # with the right view; NaN where that is not known
    sigma_px: FloatArray
    confidence: FloatArray


def widest_blur_px(optics: Optics, tried: Hypotheses) -> float:
    """Radius of the widest blur of both cameras, among all depths."""
    depth_m = optics.depth_m(tried.disparity_px)
    return float(max(np.abs(optics.blur_radius_px(depth_m, camera)).max() for camera in (0, 1)))


Views = tuple[FloatArray, FloatArray]
Search = Callable[[Views, Hypotheses, Optics, Any], tuple[Found, float]]
"""From scaled views and what is tried: what was found, and how far a blur reached."""


def searched(job: Job, search: Search) -> DepthMap:
    """The result of a search, if there is something to see and room for a window."""
    levels = scaled(job.views)
    if levels is None:
        return job.nothing(Flag.LOW_TEXTURE)
    options, optics = job.options, job.rig.optics
    tried = Hypotheses.of(optics, job.range_m, options.step_px, job.shape[1])
    if tried is None or min(job.shape) < options.window_px:
        return job.nothing(Flag.BORDER)
    found, kernel_px = search(levels, tried, optics, options)
    reach_px = kernel_reach_px(options.prefilter_sigma_px) + int(np.ceil(kernel_px))
    flags = flagged(job, levels[0], found, options.window_px, reach_px)
    # No parabola: the best is the first or the last, or no better than its neighbours.
    add_flag(flags, Flag.OUT_OF_RANGE, np.isnan(found.disparity_px) & (flags == 0))
    return measured(job, flags, found)


def measured(job: Job, flags: Flags, found: Found) -> DepthMap:
    """The result of a method that measures disparity."""
    optics = job.rig.optics
    depth_m = optics.depth_m(found.disparity_px)
    deviation_px = job.options.sigma_factor * found.sigma_px
    return job.finish(flags, depth_m, sigma_m(deviation_px, depth_m, optics), found.confidence)


def flagged(job: Job, left: FloatArray, found: Found, window_px: int, reach_px: int) -> Flags:
    """Why a pixel has no depth; `reach_px` is how far a pixel reaches beyond a window."""
    options = job.options
    flags = np.zeros(job.shape, dtype=np.uint16)
    # Views are mirrored at their borders: half of a window is enough.
    flag_outer(flags, window_px // 4)
    add_flag(flags, Flag.LOW_TEXTURE, is_constant(left, window_px | 1))
    flag_disparity(flags, found.disparity_px, job.rig.optics, job.range_m)
    if options.consistency_px >= 0:
        add_flag(flags, Flag.INCONSISTENT, found.disagreement_px > options.consistency_px)
    add_flag(flags, Flag.LOW_CONFIDENCE, ~(found.confidence >= options.min_confidence))
    flag_invalid(flags, job.views, found.disparity_px, window_px // 2 + reach_px)
    return flags
