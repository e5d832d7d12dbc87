"""Which depths to look at, when the user does not say."""

import numpy as np

from d3s.optics.thin_lens import vergence_dpt
from d3s.rig import Optics
from d3s.types import FloatArray

# Nearer than where its blur disk is so wide, a view has nothing left that a window could hold.
_WIDEST_BLUR_PX = 35.0
# A sharp camera sees nearer; but a wider search finds more false matches than objects.
_LARGEST_DISPARITY_PX = 128.0
# Farther than this a tenth of a pixel is more than a hundredth of the depth.
_SMALLEST_DISPARITY_PX = 9.3


def default_depth_range_m(optics: Optics) -> tuple[float, float]:
    """Nearest and farthest depth worth looking for: 0.25 to 2.5 m for the prototype."""
    per_dpt = optics.focal_length_px * optics.baseline_m
    nearest_dpt = _LARGEST_DISPARITY_PX / per_dpt
    gain_px = 2.0 * float(optics.blur_radius_px(0.5, 0) - optics.blur_radius_px(1.0, 0))
    if gain_px > 0:
        sharp_dpt = max(1.0 / distance_m for distance_m in optics.focus_distances_m)
        nearest_dpt = min(nearest_dpt, sharp_dpt + _WIDEST_BLUR_PX / gain_px)
    farthest_dpt = min(_SMALLEST_DISPARITY_PX / per_dpt, 0.5 * nearest_dpt)
    return 1.0 / nearest_dpt, 1.0 / farthest_dpt


def even_candidates_m(depth_range_m: tuple[float, float], count: int) -> FloatArray:
    """Depths from the nearest to the farthest, even in inverse depth, where stereo is even."""
    nearest_dpt, farthest_dpt = vergence_dpt(depth_range_m)
    return np.asarray(1.0 / np.linspace(nearest_dpt, farthest_dpt, count))
