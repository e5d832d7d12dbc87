"""Foreground fattening: background beside an object that gets the depth of the object."""

from dataclasses import dataclass

import numpy as np

from d3s.estimate import DepthMap, Flag
from d3s.lab.evaluate.metrics import count_pixels, ratio
from d3s.lab.evaluate.table import Figure, SweepTable
from d3s.lab.evaluate.truth import JUMP_PX, Truth
from d3s.rig import Optics
from d3s.types import FloatArray, Mask

REACH_PX = 25
"""Pixels within this distance of an object that stands before them count as background beside it.

About half of the widest window of `joint`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Beside:
    """Background beside objects, from the true disparity; arrays are (rows, cols)."""

    mask: Mask  # background within `REACH_PX` of an object
    disparity_px: FloatArray  # of the background
    object_px: FloatArray  # disparity of the nearest object


@dataclass(frozen=True, kw_only=True)
class Fattening:
    """Numbers of judged pixels of the background beside objects, also outside the texture."""

    beside: int  # all that both views show
    beside_retained: int  # those that have a depth
    beside_carried: int  # those that have a depth with the flag CARRIED
    fattened: int  # depth nearer to that of the object, in disparity
    fattened_unflagged: int  # of these, those without the flag CARRIED


def background_beside(truth: Truth, optics: Optics, reach_px: float = REACH_PX) -> Beside:
    """Find the background beside objects.

    The near side of each jump of disparity is the outline of an object. A pixel belongs to the
    background of the nearest outline if it is farther away by more than half the jump.

    Parameters
    ----------
    truth
        Truth of the pair.
    optics
        Optics of the camera, which turn depth into disparity.
    reach_px
        Largest distance to the object, in pixels.
    """
    from scipy.ndimage import distance_transform_edt

    disparity_px = optics.disparity_px(truth.depth_m)
    jump_px = _jump_to_background(disparity_px)
    is_outline = jump_px > 0
    if not is_outline.any():
        return Beside(mask=is_outline, disparity_px=disparity_px, object_px=disparity_px)
    distance_px, (row, col) = distance_transform_edt(~is_outline, return_indices=True)
    object_px = disparity_px[row, col]
    is_behind = disparity_px < object_px - jump_px[row, col] / 2
    return Beside(
        mask=(distance_px <= reach_px) & is_behind & truth.visible,
        disparity_px=disparity_px,
        object_px=object_px,
    )


def _jump_to_background(disparity_px: FloatArray) -> FloatArray:
    """Largest fall of disparity to a neighbour, (rows, cols); 0 where it is no jump."""
    jump_px = np.zeros(disparity_px.shape)
    down, across = np.diff(disparity_px, axis=0), np.diff(disparity_px, axis=1)
    for side, fall in (
        (jump_px[:-1], -down),
        (jump_px[1:], down),
        (jump_px[:, :-1], -across),
        (jump_px[:, 1:], across),
    ):
        np.maximum(side, np.where(fall > JUMP_PX, fall, 0.0), out=side)
    return jump_px


def fattening_of(
    depth_map: DepthMap, truth: Truth, beside: Beside, region: Mask | None = None
) -> Fattening:
    """Count the background beside objects that has the depth of the object.

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    beside
        Background beside objects, as `background_beside` finds it.
    region
        Mask, (rows, cols), to restrict the judged pixels; all judged pixels if left out.
    """
    judged = truth.judged & beside.mask
    judged = judged if region is None else judged & region
    kept = judged & depth_map.valid
    found_px = depth_map.rig.optics.disparity_px(depth_map.depth_m[kept].astype(np.float64))
    to_object = np.abs(found_px - beside.object_px[kept])
    is_fattened = to_object < np.abs(found_px - beside.disparity_px[kept])
    is_carried = (depth_map.flags[kept] & np.uint16(Flag.CARRIED)) != 0
    return Fattening(
        beside=count_pixels(judged),
        beside_retained=count_pixels(kept),
        beside_carried=count_pixels(is_carried),
        fattened=count_pixels(is_fattened),
        fattened_unflagged=count_pixels(is_fattened & ~is_carried),
    )


def _share_of_beside(column: str) -> Figure:
    def share(rows: SweepTable) -> float:
        return ratio(sum(rows.column(column)), sum(rows.column("beside")))

    return share


SHARES_BESIDE: dict[str, Figure] = {
    name: _share_of_beside(name)
    for name in ("beside_retained", "beside_carried", "fattened", "fattened_unflagged")
}
"""Shares of the background beside objects, all rows together."""
