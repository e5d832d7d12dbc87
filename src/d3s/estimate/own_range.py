"""Depth range of a sharp pair, found in the pair itself."""

import numpy as np

from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.checked_pair import CheckedPair
from d3s.estimate.options import JointOptions
from d3s.rig import Rig
from d3s.types import Image

_COLS = 180  # of the views that are searched over all disparities: a few milliseconds
_SHARE = 0.5  # of the columns: the largest disparity that is looked for
_SURE = 0.8  # confidence of depths that count
_FEWEST = 40  # depths that have to be found
_PERCENT = 0.5  # of the depths, at either end, that do not count
_MARGIN = 0.1  # of the disparity; and two pixels of the shrunk views
_LEAST_PX = 0.5  # beyond the disparity at infinity
# Rows times columns times shifts: a third of what the search of `joint` may take.
_MOST_COSTS = 1.0e9


def range_of_pair(pair: CheckedPair, rig: Rig) -> tuple[float, float] | None:
    """Nearest and farthest depth in metres if a sharp pair shows any beyond the default range.

    The whole pair is matched at a small size, over all disparities. The default range is widened,
    never cut: what is small is not seen.
    """
    from d3s.estimate.joint.method import estimate_joint  # compiled loops: slow to import

    rows, cols = pair.left.shape
    step = max(round(cols / _COLS), 1)
    optics, infinity_px = rig.optics, rig.optics.disparity_offset_px
    most_px = min(_SHARE * cols, _MOST_COSTS / (rows * cols))
    if most_px <= infinity_px + step or min(rows, cols) < 8 * step:
        return None
    # A shorter baseline makes all disparities smaller, as larger pixels do.
    small = optics.replace(
        baseline_m=optics.baseline_m / step, disparity_offset_px=infinity_px / step
    )
    options = JointOptions(depth_range_m=optics.depth_range_m((infinity_px, most_px)), rounds=1)
    left, right = (_shrunk(view, step) for view in pair)
    found = estimate_joint(left, right, Rig(optics=small), options)
    known = found.disparity_px[found.valid & (found.confidence > _SURE)]
    if known.size < _FEWEST:
        return None
    low, high = step * np.percentile(known, (_PERCENT, 100 - _PERCENT))
    largest, smallest = optics.disparity_px(default_depth_range_m(optics))
    if low >= smallest and high <= largest:
        return None
    low -= _MARGIN * (low - infinity_px) + 2 * step
    high += _MARGIN * (high - infinity_px) + 2 * step
    low = max(min(low, smallest), infinity_px + _LEAST_PX)
    return optics.depth_range_m((float(low), float(max(high, largest))))


def _shrunk(view: Image, step: int) -> Image:
    """Means of squares of pixels; NaN where one is missing."""
    import cv2  # imported here: slow to load

    rows, cols = (size // step for size in view.shape)
    whole = view[: rows * step, : cols * step]
    return np.asarray(cv2.resize(whole, (cols, rows), interpolation=cv2.INTER_AREA))
