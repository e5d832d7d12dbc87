"""Default depth range of a camera, and candidate depths over a range."""

import numpy as np

from d3s.optics.thin_lens import vergence_dpt
from d3s.rig import Optics
from d3s.types import FloatArray

WIDEST_BLUR_PX = 35.0
"""Diameter of the blur disk beyond which a window holds no texture that could be compared."""

# A sharp camera could see nearer, but a wider search finds more false matches than objects.
_LARGEST_DISPARITY_PX = 128.0
# At a smaller disparity, an error of 0.1 px is more than 1 % of the depth.
_SMALLEST_DISPARITY_PX = 9.3


def default_depth_range_m(optics: Optics) -> tuple[float, float]:
    """Nearest and farthest depth to search, in metres; 0.25 and 2.5 m for the prototype.

    The nearest depth is limited by blur and by disparity, the farthest by disparity. Views that
    were cropped to converge (a negative disparity at infinity) are searched from a shift of 0 on.
    """
    per_dpt_px = optics.focal_length_px * optics.baseline_m
    converging_px = max(-optics.disparity_offset_px, 0.0)
    nearest_dpt = (_LARGEST_DISPARITY_PX + converging_px) / max(per_dpt_px, 1e-9)
    # Vergence differs by 1 dpt between 0.5 m and 1 m, so this is the diameter in pixels per dpt.
    blur_per_dpt_px = 2.0 * float(optics.blur_radius_px(0.5, 0) - optics.blur_radius_px(1.0, 0))
    if blur_per_dpt_px > 0:
        sharp_dpt = max(1.0 / distance_m for distance_m in optics.focus_distances_m)
        nearest_dpt = min(nearest_dpt, sharp_dpt + WIDEST_BLUR_PX / blur_per_dpt_px)
    if per_dpt_px == 0:  # a camera without baseline
        return 1.0 / nearest_dpt, 10.0 / nearest_dpt
    smallest_px = max(_SMALLEST_DISPARITY_PX, converging_px)
    farthest_dpt = min(smallest_px / per_dpt_px, max(0.5 * nearest_dpt, converging_px / per_dpt_px))
    return 1.0 / nearest_dpt, 1.0 / farthest_dpt


def even_candidates_m(depth_range_m: tuple[float, float], count: int) -> FloatArray:
    """Depths (count,) in metres from the nearest to the farthest, evenly spaced in 1 / depth.

    Disparity is proportional to 1 / depth, so the spacing is even in disparity too.
    """
    nearest_dpt, farthest_dpt = vergence_dpt(depth_range_m)
    return np.asarray(1.0 / np.linspace(nearest_dpt, farthest_dpt, count))
