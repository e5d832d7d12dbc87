"""Colour in the twin: coloured textures, and the light behind the filters of a colour sensor.

A scene has three channels, red, green and blue. The camera renders them one after the other, and a
colour sensor keeps at each pixel the one of its filter.
"""

from collections.abc import Callable

import numpy as np

from d3s.lab.twin.sampling import Raster
from d3s.rig.bayer import site_channels
from d3s.types import Image

CHANNELS = 3
# Seeds of the colours of a pattern, beside its own.
_SEED_STEP = 1_000_003
_LARGEST_SEED = 2**63


def channel_seed(seed: int, channel: int) -> int:
    """Seed of what a pattern adds in one channel: 0 red, 1 green, 2 blue."""
    return (seed + (channel + 1) * _SEED_STEP) % _LARGEST_SEED


def mixed_raster(
    draw: Callable[[int], Raster], seed: int, colour: float, channel: int | None
) -> Raster:
    """Texels of a coloured pattern: a grey part that all channels share, and one of their own.

    Parameters
    ----------
    draw
        Texels of the pattern, by seed.
    seed
        Seed of the grey part.
    colour
        Share of the part that each channel has for itself, 0 to 1.
    channel
        0 red, 1 green, 2 blue; None for their mean, as a mono sensor sees it.
    """
    grey = draw(seed)
    own = range(CHANNELS) if channel is None else (channel,)
    parts = [draw(channel_seed(seed, one)).values for one in own]
    mean = np.mean(parts, axis=0, dtype=np.float32)
    values = np.float32(1 - colour) * grey.values + np.float32(colour) * mean
    return grey._replace(values=np.asarray(values, dtype=np.float32))


def behind_filters(lights: list[Image], order: str, shares: tuple[float, float, float]) -> Image:
    """Light on the pixels of a colour sensor.

    Parameters
    ----------
    lights
        Light of the red, green and blue channel on the whole sensor, (rows, cols) each.
    order
        Colours of the first 2 x 2 pixels, such as "RGGB".
    shares
        Share of the light of each channel that its filter lets through.
    """
    out = np.empty_like(lights[0])
    sites = site_channels(order)
    for i, j in np.ndindex(2, 2):
        channel = sites[i, j]
        out[i::2, j::2] = np.float32(shares[channel]) * lights[channel][i::2, j::2]
    return out
