"""Ground truth of a simulated pair, and which of its pixels are judged."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.lab.evaluate.cameras import TypicalPair
from d3s.lab.twin.pair import Pair
from d3s.optics.information import depth_bound_map
from d3s.types import FloatArray, Mask

WINDOW_PX = 31
"""Side of the window whose bound decides whether a pixel is textured; half of it is the border."""
TEXTURED_BELOW_M = 0.006
"""A pixel is textured if the Cramér-Rao bound of the window around it is below this."""
EDGE_REACH_PX = 16
"""Pixels within this distance of a jump of depth are near an edge: half the window."""
JUMP_PX = 1.0
"""Least difference of disparity between neighbours at an edge."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """Ground truth of a pair on the pixels of the left view; all arrays are (rows, cols)."""

    depth_m: FloatArray
    bound_m: FloatArray  # Cramér-Rao bound of the window around each pixel, both cues; or NaN
    judged: Mask  # the window and its match lie in the frames; other pixels are never counted
    visible: Mask  # the right view shows the point
    near_edge: Mask  # within a distance of a jump of depth, `EDGE_REACH_PX` if not told otherwise

    @property
    def textured(self) -> Mask:
        """Judged pixels that both views show, with a bound below `TEXTURED_BELOW_M`."""
        with np.errstate(invalid="ignore"):
            return self.judged & self.visible & (self.bound_m < TEXTURED_BELOW_M)

    @property
    def regions(self) -> dict[str, Mask]:
        """Overlapping parts of the judged pixels by name; the first is all of them."""
        textured = self.textured
        return {
            "all": self.judged,
            "textured": textured,
            "flat": self.judged & self.visible & ~textured,
            "occluded": self.judged & ~self.visible,
            "near edges": self.judged & self.near_edge,
            "interior": self.judged & ~self.near_edge,
        }


def truth_of(
    clean: Pair | TypicalPair, noise_sigma: float, *, edge_reach_px: float = EDGE_REACH_PX
) -> Truth:
    """Truth of a pair without noise, to which noise of a standard deviation will be added.

    The bound is that of the clean images with this noise. It is a standard deviation: the mean
    absolute error of an estimator that meets it with Gaussian errors is 0.8 times the bound.

    Parameters
    ----------
    clean
        Pair without noise, such as a `Pair` of the twin.
    noise_sigma
        Standard deviation of the noise, of full scale.
    edge_reach_px
        Pixels within this distance of a jump of depth are near an edge.
    """
    optics = clean.rig.optics
    bound = depth_bound_map(
        clean.left,
        clean.right,
        clean.depth_m,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
        alpha_px2_m=optics.alpha_px2_m,
        noise_sigma=noise_sigma,
        window_px=WINDOW_PX,
    )
    disparity = optics.disparity_px(clean.depth_m).astype(np.float32)
    return Truth(
        depth_m=clean.depth_m.astype(np.float64),
        bound_m=bound.total_m,
        judged=within_frames(disparity, WINDOW_PX // 2),
        visible=~clean.occluded,
        near_edge=near_jumps(disparity, edge_reach_px),
    )


def within_frames(disparity_px: NDArray[Any], border_px: int) -> Mask:
    """Mask of the pixels whose distance to the ends of the view is at least a border.

    Their matches in the right view keep the same distance to its ends.
    """
    rows, cols = disparity_px.shape
    inside = np.zeros((rows, cols), dtype=np.bool_)
    inside[border_px : rows - border_px, border_px : cols - border_px] = True
    column = np.arange(cols) - disparity_px
    return np.asarray(inside & (column >= border_px) & (column <= cols - 1 - border_px))


def near_jumps(disparity_px: NDArray[np.float32], reach_px: float) -> Mask:
    """Mask of the pixels within a distance of a jump of disparity by more than 1 px."""
    import cv2

    far = np.ones(disparity_px.shape, dtype=np.uint8)
    across = np.abs(np.diff(disparity_px, axis=1)) > JUMP_PX
    down = np.abs(np.diff(disparity_px, axis=0)) > JUMP_PX
    for jump, sides in ((across, (far[:, :-1], far[:, 1:])), (down, (far[:-1], far[1:]))):
        for side in sides:
            side[jump] = 0
    if far.all():  # without any edge, OpenCV's distance is not infinite
        return np.zeros(far.shape, dtype=np.bool_)
    distance = cv2.distanceTransform(far, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(distance <= reach_px)
