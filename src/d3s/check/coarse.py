"""Rows that are pixels apart, by blocks looked for all over the right view.

A lens that has moved by pixels leaves few places with a depth. Blocks are then looked for by
correlation, on other rows too, and what they say is taken out before the first measurement.
"""

from collections.abc import Sequence

import numpy as np

from d3s.estimate.diagnosis.blocks import match_blocks
from d3s.estimate.diagnosis.light import robust_fit
from d3s.types import Image

_FEWEST_BLOCKS = 10
_LEAST_PX = 0.4  # less is measured better where depth is known
_SIGMAS = 5.0


def coarse_drift(views: Sequence[tuple[Image, Image]]) -> dict[str, float]:
    """Rows, roll and scale by the blocks of all frames; empty if they agree or nothing is found."""
    found = [(blocks, pair[0].shape) for pair in views if (blocks := match_blocks(*pair))]
    parts = [
        np.stack(
            [one.x * shape[1] / 2 - one.disparity_px, one.y * shape[0] / 2, one.rows_px], axis=1
        )[one.is_sure]
        for one, shape in found
    ]
    places = np.concatenate(parts) if parts else np.empty((0, 3))
    if len(places) < _FEWEST_BLOCKS:
        return {}
    side = max(views[0][0].shape) / 2
    terms = np.column_stack([np.ones(len(places)), places[:, :2] / side])
    fit = robust_fit(terms, places[:, 2])
    if fit is None:
        return {}
    units = {"rows_px": 1.0, "roll_rad": 1 / side, "scale": 1 / side}
    return {
        name: float(value * unit)
        for (name, unit), value, sigma in zip(units.items(), *fit, strict=True)
        if abs(value) > max(_LEAST_PX, _SIGMAS * sigma)
    }
