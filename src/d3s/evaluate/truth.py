"""What is true of a pair, and which of its pixels count."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.optics.information import depth_bound_map
from d3s.scene.pair import Pair
from d3s.types import FloatArray, Mask

WINDOW_PX = 31
"""Side of the window whose bound says whether a pixel is textured, and that sets the border."""
TEXTURED_BELOW_M = 0.006
"""A pixel is textured if the Cramér-Rao bound of the window around it is below this."""
EDGE_REACH_PX = 16
"""How near a jump of depth a pixel counts as near an edge: half the window."""
_JUMP_PX = 1.0  # of disparity between neighbours


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """What is true of a pair, on the pixels of the left view, all arrays (rows, cols)."""

    depth_m: FloatArray
    bound_m: FloatArray  # Cramér-Rao bound of the window around each pixel, both cues; or NaN
    judged: Mask  # the window and its match lie in the frames; all other pixels count nowhere
    visible: Mask  # the right view shows the point
    near_edge: Mask

    @property
    def textured(self) -> Mask:
        """Judged pixels that both views show, with a window that holds depth enough."""
        with np.errstate(invalid="ignore"):
            return self.judged & self.visible & (self.bound_m < TEXTURED_BELOW_M)

    @property
    def regions(self) -> dict[str, Mask]:
        """Parts of the judged pixels, by name, which overlap; the first is all of them."""
        textured = self.textured
        return {
            "all": self.judged,
            "textured": textured,
            "flat": self.judged & self.visible & ~textured,
            "occluded": self.judged & ~self.visible,
            "near edges": self.judged & self.near_edge,
            "interior": self.judged & ~self.near_edge,
        }


def truth_of(clean: Pair, noise_sigma: float) -> Truth:
    """The truth of a pair without noise, to which noise of this standard deviation is added.

    The bound is of the clean images and the true noise. Note that it is a standard deviation: the
    mean absolute error of an estimator that meets it, with Gaussian errors, is 0.8 of it.
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
    disparity = clean.disparity_px
    return Truth(
        depth_m=clean.depth_m.astype(np.float64),
        bound_m=bound.total_m,
        judged=within_frames(disparity, WINDOW_PX // 2),
        visible=~clean.occluded,
        near_edge=_near_edges(disparity),
    )


def within_frames(disparity_px: NDArray[Any], border_px: int) -> Mask:
    """Pixels that are so far from the ends of the left view, and their matches from the right's."""
    rows, cols = disparity_px.shape
    inside = np.zeros((rows, cols), dtype=np.bool_)
    inside[border_px : rows - border_px, border_px : cols - border_px] = True
    column = np.arange(cols) - disparity_px
    return np.asarray(inside & (column >= border_px) & (column <= cols - 1 - border_px))


def _near_edges(disparity_px: NDArray[np.float32]) -> Mask:
    import cv2

    far = np.ones(disparity_px.shape, dtype=np.uint8)
    across = np.abs(np.diff(disparity_px, axis=1)) > _JUMP_PX
    down = np.abs(np.diff(disparity_px, axis=0)) > _JUMP_PX
    for jump, sides in ((across, (far[:, :-1], far[:, 1:])), (down, (far[:-1], far[1:]))):
        for side in sides:
            side[jump] = 0
    if far.all():  # the distance to nothing is not infinite in OpenCV
        return np.zeros(far.shape, dtype=np.bool_)
    distance = cv2.distanceTransform(far, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(distance <= EDGE_REACH_PX)
