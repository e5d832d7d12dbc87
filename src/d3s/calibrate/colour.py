"""Colour sensors in a calibration: the order of the colours, the gains, and the noise of green.

The steps of a calibration work with the luminance of the frames, as with frames of a mono sensor.
Only the noise is measured in the raw frame, where that of one pixel does not depend on another.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from d3s.errors import InputError
from d3s.rig.bayer import (
    MONO,
    Bayer,
    LuminanceNoise,
    channel_means,
    check_order,
    gains_of_means,
    luminance_noise,
    on_sites,
)
from d3s.rig.find_bayer import FoundBayer, find_bayer, swapped
from d3s.types import Image

_FRAMES = 5  # frames that are looked at, from the nearest to the farthest

# Second differences along both diagonals of the lattice of green pixels: 6² times the variance of
# white noise.
GREEN_DIFFERENCES = np.array(
    [
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, -2.0, 0.0, -2.0, 0.0],
        [1.0, 0.0, 4.0, 0.0, 1.0],
        [0.0, -2.0, 0.0, -2.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
    ]
)


class ColourSensor(NamedTuple):
    """Order of the colours of a sensor, and the gains that make grey even."""

    order: Bayer
    gains: tuple[float, float, float]
    remark: str = ""

    @property
    def noise(self) -> LuminanceNoise:
        """Noise of the luminance, over that of a green pixel."""
        return luminance_noise(self.gains)

    def green_frame(self, raw: Image) -> Image:
        """Green pixels of a raw frame with their gain, and 0 at the others."""
        shape = raw.shape[0], raw.shape[1]
        return raw * on_sites((0.0, self.gains[1], 0.0), self.order, shape)


def find_sensor(read: Callable[[int], Image], count: int, bayer: str | None) -> ColourSensor | None:
    """Find the colours of a sensor; None for a mono sensor.

    `read` gives a raw frame by its number. Frames that cannot be read are passed over.
    """
    if bayer == MONO:
        return None
    order = None if bayer is None else check_order(bayer)
    frames = list(_some_frames(read, count))
    remark = ""
    if order is None:
        order = _found_order([find_bayer(frame) for frame in frames])
        if order is None:
            return None
        remark = _remark(order)
    means = [channel_means(frame, order) for frame in frames]
    known = [one for one in means if np.isfinite(one).all()]
    if not known:
        return ColourSensor(order, (1.0, 1.0, 1.0), remark)  # each frame is refused by itself
    return ColourSensor(order, gains_of_means(np.mean(known, axis=0)), remark)


def _some_frames(read: Callable[[int], Image], count: int) -> Sequence[Image]:
    numbers = np.unique(np.linspace(0, count - 1, _FRAMES).round().astype(int)).tolist()
    frames = []
    for number in numbers:
        try:
            frames.append(read(number))
        except InputError:
            continue
    return frames


def _found_order(found: Sequence[FoundBayer]) -> Bayer | None:
    """Order in most of the frames; None for a mono sensor."""
    coloured = [one for one in found if one.is_bayer]
    if 2 * len(coloured) <= len(found):
        return None
    orders = [one.order for one in coloured if one.order is not None]
    greens = {"RGGB": "RGGB", "BGGR": "RGGB", "GRBG": "GRBG", "GBRG": "GRBG"}
    kinds = {greens[one] for one in orders}
    if len(kinds) == 1 and 2 * len(orders) > len(coloured):
        return check_order(max(sorted(set(orders)), key=orders.count))
    raise InputError(
        "the frames are those of a colour sensor, and the order of its colours is not clear. Say "
        "it: --bayer RGGB, BGGR, GRBG or GBRG on the command line, bayer in Python; the data sheet "
        'has it. If the sensor is a mono one, say "none".'
    )


def _remark(order: str) -> str:
    return (
        f"The frames are those of a colour sensor, taken as {order}. Red and blue cannot be told "
        f"apart from the frames; {swapped(order)} gives the same depth. Say the order with "
        "--bayer, or --bayer none for a mono sensor."
    )
