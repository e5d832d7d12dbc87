"""Flags of a pixel, such as why it has no depth: the only table of their bits and reasons."""

from enum import IntFlag

import numpy as np
from numpy.typing import NDArray


class Flag(IntFlag):
    """Reason why a pixel has no depth, or a remark on its depth; its text is `__doc__`.

    A pixel may have several flags. A measured depth has none but CARRIED, and ENCLOSED if it was
    asked for. A depth that `DepthMap.densify` has filled in has FILLED, and the reasons why none
    was measured.
    """

    def __new__(cls, bit: int, reason: str) -> "Flag":
        """Make a flag of its bit and its reason in words."""
        flag = int.__new__(cls, bit)
        flag._value_ = bit
        flag.__doc__ = reason
        return flag

    BORDER = 1, "the window, or its match, leaves the frame"
    INVALID_INPUT = 2, "a pixel of the window is NaN or infinite, in either view"
    SATURATED = 4, "a pixel of the window is clipped, white or black, in either view"
    LOW_TEXTURE = 8, "the window holds too little texture to be told from noise"
    AMBIGUOUS = 16, "another depth fits about as well"
    OUT_OF_RANGE = 32, "the best depth lies outside the range searched, or at its very end"
    OCCLUDED = 64, "the right view shows something nearer where this point should be"
    INCONSISTENT = 128, "the views do not fit at this depth, or the neighbourhood has several"
    LOW_CONFIDENCE = 256, "confidence is below the threshold"
    LARGE_SIGMA = 512, "the standard deviation is above the threshold"
    CARRIED = 1024, "depth rests on texture elsewhere in the window"
    FILLED = 2048, "depth is filled in from its surroundings, not measured"
    ENCLOSED = (
        4096,
        "a plain gap between texture, or its edge: the depth may be that of the texture",
    )


def describe(flags: int) -> tuple[str, ...]:
    """Return the reasons in words for the flags of one pixel; empty if it has none."""
    return tuple(str(flag.__doc__) for flag in Flag if flags & flag)


def share_of_each(flags: NDArray[np.uint16]) -> dict[str, float]:
    """Return the share of the pixels that have a flag, 0 to 1, by the name of the flag."""
    return {str(flag.name): float(np.mean((flags & flag) != 0)) for flag in Flag}
