"""Depths to look at, so that boards are among them; and those at which depth is good."""

from collections.abc import Sequence

from d3s.estimate.candidates import default_depth_range_m
from d3s.rig import Optics

ACCURATE_M = 0.01
"""A depth at which the mean absolute error is below this is in the working range."""

# The ends of a range are found to half a per cent, and the truth is not known better.
_AT_THE_END = 0.005
# Of 1/Z: a depth at the end of the range has nothing beyond it to be told from, and a tilted board
# is nearer on one side.
_MARGIN = 0.1


def reach_m(optics: Optics, depths_m: Sequence[float]) -> tuple[float, float] | None:
    """Nearest and farthest depth to look for; None where the default of the camera will do.

    The default ends where a hundredth of the depth is a tenth of a pixel, which with large pixels
    is nearer than boards may well be.
    """
    nearest_m, farthest_m = default_depth_range_m(optics)
    is_nearer = min(depths_m) < nearest_m * (1 - _AT_THE_END)
    is_farther = max(depths_m) > farthest_m * (1 + _AT_THE_END)
    if not is_nearer and not is_farther:
        return None
    return (
        min(depths_m) / (1 + _MARGIN) if is_nearer else nearest_m,
        max(depths_m) / (1 - _MARGIN) if is_farther else farthest_m,
    )


def working_range_m(
    depths_m: Sequence[float], accurate: Sequence[bool]
) -> tuple[float, float] | None:
    """First and last depth of the longest continuous run of accurate ones; None if there is none.

    The longest in metres; of equally long ones the nearest.
    """
    best: tuple[float, float] | None = None
    start: float | None = None
    for depth_m, is_accurate in zip(depths_m, accurate, strict=True):
        if not is_accurate:
            start = None
            continue
        start = depth_m if start is None else start
        if best is None or depth_m - start > best[1] - best[0]:
            best = (start, depth_m)
    return best
