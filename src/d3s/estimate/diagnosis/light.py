"""Light and rows of both views compared: robust regression over matched patches.

With b the detail of a patch, m its mean, (x, y) its place, and s and b' means over both views, the
right view less the left one is::

    b_right - b_left = s (g + g_x x + g_y y + g_m (m - m_0)) + v b'_y + v_x x b'_y + v_y y b'_y
                       + u b'_x

g is a difference of gain, g_x and g_y are shading, g_m a tone curve, v a vertical shift that may
change over the frame, and u what is left of the disparity. Both views enter alike, so noise of
equal strength in both biases nothing. A brightness that differs by a constant has no effect: the
detail does not contain it.
"""

from typing import NamedTuple

import numpy as np

from d3s.estimate.diagnosis.patches import Patches, PatchStatistic
from d3s.types import FloatArray

_FEWEST = 80  # patches for a regression of eight numbers
_ROUNDS = 6
_BISQUARE = 4.685  # 95 % as precise as least squares if errors are normal
_MAD_TO_SIGMA = 1.4826


class Value(NamedTuple):
    """A measured number and its standard deviation."""

    value: float
    sigma: float

    def exceeds(self, limit: float, sigmas: float) -> bool:
        """Return whether the size is above a limit, and above a number of sigmas."""
        return abs(self.value) > max(limit, sigmas * self.sigma)


class ViewDifferences(NamedTuple):
    """Differences of the right view from the left one; 0 if both are alike."""

    gain: Value  # log of the ratio of the contrasts
    shading_x: Value  # change of the log ratio from the middle to the right edge
    shading_y: Value  # from the middle to the bottom
    tone: Value  # change of the log ratio from patches of medium brightness to bright ones
    rows_px: Value  # rows by which the right view lies lower, in the middle
    rows_x_px: Value  # change of it from the middle to the right edge
    rows_y_px: Value  # and to the bottom


def compare(patches: Patches) -> ViewDifferences | None:
    """Compare the views; None if there are too few patches with detail.

    Parameters
    ----------
    patches
        Matched patches of a pair.
    """
    if patches.x.size < _FEWEST:
        return None
    left, right = patches.left, patches.right
    both = 0.5 * (left + right)
    mean = both[:, PatchStatistic.MEAN]
    low, middle, high = np.percentile(mean, (10, 50, 90))
    spread = max(0.5 * (high - low), 1e-6 * float(np.abs(mean).max()), 1e-30)
    bright = np.clip((mean - middle) / spread, -2, 2)
    detail, across, down = (
        both[:, one]
        for one in (PatchStatistic.DETAIL, PatchStatistic.DETAIL_X, PatchStatistic.DETAIL_Y)
    )
    terms = np.stack(
        [
            detail,
            detail * patches.x,
            detail * patches.y,
            detail * bright,
            down,
            down * patches.x,
            down * patches.y,
            across,
        ],
        axis=1,
    )
    # Errors grow with the detail, so each patch counts relative to its own.
    size = np.sqrt(detail**2 + 6 * (across**2 + down**2))
    size += 0.5 * np.median(size) + 1e-30
    difference = right[:, PatchStatistic.DETAIL] - left[:, PatchStatistic.DETAIL]
    found = robust_fit(terms / size[:, None], difference / size)
    if found is None:
        return None
    values = [Value(float(value), float(sigma)) for value, sigma in zip(*found, strict=True)]
    # Vertical: a right view that lies lower by v has b_right = b_left - v b_y.
    rows = [Value(-one.value, one.sigma) for one in values[4:7]]
    return ViewDifferences(*values[:4], *rows)


def robust_fit(terms: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Fit by least squares with Tukey's weights.

    Parameters
    ----------
    terms
        Regressors (samples, coefficients).
    target
        Values to explain (samples,).

    Returns
    -------
    Coefficients and their standard deviations; None if they cannot be told apart.
    """
    weight = np.ones(target.size)
    for _ in range(_ROUNDS):
        normal = terms.T @ (weight[:, None] * terms)
        try:
            inverse = np.linalg.inv(normal)
        except np.linalg.LinAlgError:
            return None
        fit = inverse @ (terms.T @ (weight * target))
        residual = target - terms @ fit
        scale = _MAD_TO_SIGMA * float(np.median(np.abs(residual)))
        if not scale > 0:
            break
        weight = np.square(np.maximum(1 - np.square(residual / (_BISQUARE * scale)), 0))
    # The sandwich estimate: errors of the patches need not be alike.
    scores = terms * (weight * residual)[:, None]
    covariance = inverse @ (scores.T @ scores) @ inverse
    sigma = np.sqrt(np.diag(covariance))
    if not (np.isfinite(fit).all() and np.isfinite(sigma).all()):
        return None
    return fit, sigma
