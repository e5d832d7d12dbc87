"""Preparation of the views in NumPy."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from d3s.types import FloatArray


def centre(
    left: NDArray[np.floating], right: NDArray[np.floating]
) -> tuple[FloatArray, FloatArray]:
    """Subtract the common mean, divide by a power of two, set non-finite pixels to 0."""
    views = np.stack([left, right]).astype(np.float64)
    known = np.isfinite(views)
    if known.any():
        views -= views[known].mean()
        largest = np.abs(views[known]).max()
        views /= 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    views[~known] = 0
    return views[0], views[1]


def smooth(image: FloatArray, sigma_px: float, step: int = 1) -> FloatArray:
    """Smooth by a Gaussian, then keep one pixel per `step` x `step` (1 or 2), at its centre."""
    reach = ceil(4.5 * sigma_px - 0.5 * (step - 1))
    places = np.arange(
        -reach, step + reach
    )  # pixels under the filter, from the first of its `step`
    distance = places - 0.5 * (step - 1)
    least = np.abs(distance).min()
    weights = np.exp(-0.5 * (distance**2 - least**2) / max(sigma_px**2, 1e-30))
    weights /= weights.sum()
    for _ in range(2):  # one axis after the other
        size = -(-image.shape[0] // step)
        padded = np.pad(image, ((reach, reach + step), (0, 0)), mode="symmetric")
        first = reach + step * np.arange(size)
        taps = zip(weights, places, strict=True)
        image = np.asarray(sum(weight * padded[first + place] for weight, place in taps)).T
    return image


def noise_variance(view: FloatArray, half: int) -> FloatArray:
    """Return the variance of white noise around each cell of 2 x 2 pixels.

    Over windows of 2 half + 1 cells, by second differences in both directions, which cancel a
    smooth image and give 36 times the variance of noise (Immerkær, "Fast noise variance
    estimation", CVIU 1996).
    """
    padded = np.pad(view, 1, mode="edge")
    across = padded[:, :-2] - 2 * padded[:, 1:-1] + padded[:, 2:]
    both = across[:-2] - 2 * across[1:-1] + across[2:]
    out = np.empty((-(-view.shape[0] // 2), -(-view.shape[1] // 2)))
    for row, col in np.ndindex(out.shape):
        top, side = 2 * max(row - half, 0), 2 * max(col - half, 0)
        window = both[top : 2 * (row + half + 1), side : 2 * (col + half + 1)]
        out[row, col] = np.mean(window**2) / 36
    return out
