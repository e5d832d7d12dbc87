"""Robust regression over the blocks of many frames, with a sigma from the scatter of the frames.

Errors of blocks of one frame are alike: the same wrong depth, the same lens error at its depth. So
sigma is from fits that leave out one frame after the other (the jackknife); with few frames, one
ninth of a frame after the other. Terms may have a prior standard deviation around zero: what lenses
add that no calibration describes. It enters sigma too.
"""

from typing import NamedTuple

import numpy as np

from d3s.types import FloatArray

_ROUNDS = 6
_BISQUARE = 4.685  # Tukey's constant: 95 % as precise as least squares if errors are normal
_MAD_TO_SIGMA = 1.4826


class Samples(NamedTuple):
    """Measured values of the blocks of all frames, with the terms that explain them."""

    terms: FloatArray  # (blocks, terms)
    values: FloatArray  # (blocks,)
    sigmas: FloatArray  # (blocks,)
    groups: FloatArray  # (blocks,): number of the frame, or of the part of a frame, from 0


class Fit(NamedTuple):
    """Factors of the terms; each has a standard deviation."""

    values: FloatArray  # (terms,)
    sigmas: FloatArray  # (terms,)


def fit_groups(samples: Samples, prior_sigmas: FloatArray) -> Fit | None:
    """Fit the terms to all groups; None with fewer than two groups.

    `prior_sigmas` (terms,) are the standard deviations of each factor around zero before any
    measurement; infinite for a factor of which nothing is known.
    """
    numbers, group = np.unique(samples.groups, return_inverse=True)
    if numbers.size < 2:
        return None
    prior = np.diag(1 / np.square(prior_sigmas))
    terms = samples.terms / samples.sigmas[:, np.newaxis]
    target = samples.values / samples.sigmas
    values, weight, scale = _robust(terms, target, prior)
    normals = np.zeros((numbers.size, prior.shape[0], prior.shape[0]))
    rights = np.zeros(normals.shape[:2])
    weighted = weight[:, np.newaxis] * terms / scale**2
    for number in range(numbers.size):
        own = group == number
        normals[number] = weighted[own].T @ terms[own]
        rights[number] = weighted[own].T @ target[own]
    whole = np.linalg.pinv(normals.sum(axis=0) + prior, hermitian=True)
    without = np.stack(
        [
            np.linalg.pinv(normals.sum(axis=0) - one + prior, hermitian=True)
            @ (rights.sum(axis=0) - right)
            for one, right in zip(normals, rights, strict=True)
        ]
    )
    count = numbers.size
    scatter = (count - 1) / count * np.square(without - without.mean(axis=0)).sum(axis=0)
    # Both hold the noise of blocks; the second also the prior, the first common errors of frames.
    return Fit(values, np.sqrt(np.maximum(scatter, np.diag(whole))))


def _robust(
    terms: FloatArray, target: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Factors, weights of the blocks, and the size of errors over their sigmas, at least 1."""
    weight, scale = np.ones(target.size), 1.0
    for _ in range(_ROUNDS):
        normal = terms.T @ (weight[:, np.newaxis] * terms) / scale**2 + prior
        right = terms.T @ (weight * target) / scale**2
        values = np.linalg.pinv(normal, hermitian=True) @ right
        residual = target - terms @ values
        scale = max(_MAD_TO_SIGMA * float(np.median(np.abs(residual))), 1.0)
        weight = np.square(np.maximum(1 - np.square(residual / (_BISQUARE * scale)), 0))
    return values, weight, scale
