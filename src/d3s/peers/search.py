"""What methods that try one depth after another share: their options, and how they end."""

from typing import NamedTuple

import numpy as np
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options, Window
from d3s.optics.lens import FloatArray
from d3s.peers.common import (
    Job,
    Mask,
    add_flag,
    flag_disagreement,
    flag_disparity,
    flag_invalid,
    flag_outer,
    is_constant,
    kernel_reach_px,
    sigma_m,
)
from d3s.peers.hypotheses import Hypotheses
from d3s.rig import Optics


class SearchOptions(Options):
    """What a method that tries depths can be told."""

    window_px: Window = Field(default=31, description="the side of the window of the costs, odd")
    prefilter_sigma_px: float = Field(
        default=1.0, ge=0, le=10, description="the Gaussian that both views are smoothed with"
    )
    # A parabola through costs that are a pixel apart is too coarse where the views are sharp.
    step_px: float = Field(
        default=0.5, ge=0.1, le=4, description="the disparity from one depth to the next"
    )
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


class Found(NamedTuple):
    """What a search gives for each pixel."""

    disparity_px: FloatArray  # NaN where there is none
    sigma_px: FloatArray
    confidence: FloatArray
    is_inner: Mask  # the best is neither the first nor the last that was tried
    disagreement_px: FloatArray  # with the right view


def hypotheses(job: Job) -> Hypotheses | None:
    """The disparities to try; None if the frame is too small for any, or for the window."""
    if min(job.shape) < job.options.window_px:
        return None
    return Hypotheses.of(job.rig.optics, job.range_m, job.options.step_px, job.shape[1])


def widest_blur_px(optics: Optics, tried: Hypotheses) -> float:
    """Radius of the widest blur of both cameras, among all depths."""
    depth_m = optics.depth_m(tried.disparity_px)
    return float(max(np.abs(optics.blur_radius_px(depth_m, camera)).max() for camera in (0, 1)))


def ended(job: Job, left: FloatArray, found: Found, kernel_px: float) -> DepthMap:
    """The result, with the reasons for no depth; `kernel_px` is how far a blur reaches."""
    options, optics = job.options, job.rig.optics
    flags = np.zeros(job.shape, dtype=np.uint16)
    # Views are mirrored at their borders: half of a window is enough.
    flag_outer(flags, options.window_px // 4)
    add_flag(flags, Flag.LOW_TEXTURE, is_constant(left, options.window_px))
    add_flag(flags, Flag.OUT_OF_RANGE, ~found.is_inner)
    flag_disparity(flags, found.disparity_px, optics, job.range_m)
    flag_disagreement(flags, found.disagreement_px, options.consistency_px)
    add_flag(flags, Flag.LOW_CONFIDENCE, ~(found.confidence >= options.min_confidence))
    reach_px = options.window_px // 2 + kernel_reach_px(options.prefilter_sigma_px)
    flag_invalid(flags, job.views, found.disparity_px, reach_px + int(np.ceil(kernel_px)))
    depth_m = optics.depth_m(found.disparity_px)
    deviation_px = options.sigma_factor * found.sigma_px
    return job.finish(flags, depth_m, sigma_m(deviation_px, depth_m, optics), found.confidence)
