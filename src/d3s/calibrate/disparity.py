"""Disparity of single frames: at the left anchor, and over the picture.

A tilted board has 1 / Z, and so disparity, even over the picture: d = d∞ + (K / Z_j) (1 - t·u).
Lenses that distort bend that, so a square is fitted with it, and its value at the anchor counts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from d3s.calibrate.kinds import Place
from d3s.calibrate.matches import PairMatches
from d3s.calibrate.rectify import Rectification
from d3s.calibrate.robust import robust_sigma, robust_sigmas

_ROUNDS = 5
_OUTLIER_SIGMAS = 5.0
_LARGEST_TILT_CHANGE_RAD = np.radians(1.0)


class FrameDisparity(NamedTuple):
    """Disparity of one frame at the left anchor, and how it changes over the picture."""

    frame: int
    disparity_px: float
    sigma_px: float
    per_px: Place
    per_px_sigma: Place
    residual_px: float  # RMS of the windows


def frame_disparity(
    pair: PairMatches, rectification: Rectification, anchors: tuple[Place, Place]
) -> FrameDisparity:
    """A square through the disparities of a frame, robustly; its value at the left anchor."""
    left, right = rectification.rectified(pair.first_px, pair.second_px, anchors)
    apart = left[:, 0] - right[:, 0]
    size = float(np.abs(left).max())
    x, y = left.T / size
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)
    keep = np.ones(len(left), dtype=np.bool_)
    for _ in range(_ROUNDS):
        weights = keep / pair.sigma_px
        rows = terms * weights[:, np.newaxis]
        values = np.linalg.lstsq(rows, apart * weights, rcond=None)[0]
        away = apart - terms @ values
        sizes = np.abs(away) / pair.sigma_px
        spread = max(robust_sigma(sizes[keep]), 1e-9)
        keep = sizes < _OUTLIER_SIGMAS * spread
    sigma = spread * np.sqrt(np.diag(np.linalg.pinv(rows.T @ rows, hermitian=True)))
    return FrameDisparity(
        frame=pair.first,
        disparity_px=float(values[0]),
        sigma_px=float(sigma[0]),
        per_px=(float(values[1]) / size, float(values[2]) / size),
        per_px_sigma=(float(sigma[1]) / size, float(sigma[2]) / size),
        residual_px=float(np.sqrt(np.mean(away[keep] ** 2))),
    )


def tilted_frames(disparities: Sequence[FrameDisparity], focal_length_px: float) -> dict[int, str]:
    """Frames whose board is tilted otherwise than in most."""
    tilts = np.array([one.per_px for one in disparities]) * -focal_length_px
    sigmas = np.array([one.per_px_sigma for one in disparities]) * focal_length_px
    size = np.array([one.disparity_px for one in disparities])[:, np.newaxis]
    tilts, sigmas = tilts / size, np.abs(sigmas / size)
    away = tilts - np.median(tilts, axis=0)
    # Between frames the board's own unevenness and the lens add to what the windows scatter.
    spread = robust_sigmas(away)
    limit = np.maximum(_LARGEST_TILT_CHANGE_RAD, _OUTLIER_SIGMAS * np.hypot(sigmas, spread))
    return {
        one.frame: "the board is tilted by "
        f"{np.degrees(turn[0]):+.1f}° sideways and {np.degrees(turn[1]):+.1f}° up and down against "
        "the other frames"
        for one, turn, is_out in zip(
            disparities, away, np.any(np.abs(away) > limit, axis=1), strict=True
        )
        if is_out
    }
