"""The error bar of the joint method: as wide as the errors are, and wider where they are."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import d3s

RIG = d3s.Rig.paper_prototype()
# None of them was used to choose a number of the method.
TEXTURES = ("gravel", "bark", "grass", "carpet")
DEPTHS_M = (0.3, 0.4, 0.5, 0.7, 0.85, 1.0, 1.3, 1.6, 2.0)


class Sample(NamedTuple):
    """Errors and what was said of them, one entry a pixel that has a depth."""

    error_m: np.ndarray
    sigma_m: np.ndarray
    confidence: np.ndarray

    @classmethod
    def of(cls, found: d3s.DepthMap, truth_m: np.ndarray, where: np.ndarray) -> "Sample":
        kept = found.valid & where
        parts = (found.depth_m - truth_m, found.sigma_m, found.confidence)
        return cls(*(part[kept].astype(np.float64) for part in parts))

    @classmethod
    def joined(cls, samples: list["Sample"]) -> "Sample":
        return cls(*(np.concatenate(parts) for parts in zip(*samples, strict=True)))

    @property
    def coverage(self) -> float:
        return float((np.abs(self.error_m) < self.sigma_m).mean())

    @property
    def typical_ratio(self) -> float:
        """Sigma over the spread of the errors, of the typical pixel.

        Few pixels have a sigma that counts the chance of a wrong surface, which a plane does not
        have; they would rule the mean square.
        """
        return float(np.median(self.sigma_m) / (1.4826 * np.median(np.abs(self.error_m))))


def _match_in_frame(pair: d3s.Pair) -> np.ndarray:
    """Where the right view shows the point: who looks beyond can only be wrong."""
    return np.arange(pair.left.shape[1]) - pair.disparity_px >= 4


# Sigma is true ------------------------------------------------------------------------------------


@cache
def _drawn(depth_m: float) -> Sample:
    """Each of 200 draws has its own part of a texture, and its own noise."""
    samples = []
    for draw in range(200):
        texture = d3s.Texture(pattern=TEXTURES[draw % len(TEXTURES)], seed=1000 + draw)
        scene = d3s.Plane(depth_m=depth_m, texture=texture)
        shape = (80, int(RIG.optics.disparity_px(depth_m)) + 120)
        pair = d3s.simulate(scene, RIG, noise=0.01, seed=draw, shape=shape)
        found = d3s.estimate(pair.left, pair.right, RIG)
        samples.append(Sample.of(found, pair.depth_m, _match_in_frame(pair)))
    return Sample.joined(samples)


@pytest.mark.slow
@pytest.mark.parametrize("depth_m", DEPTHS_M)
def test_sigma_is_the_spread_of_many(depth_m):
    sample = _drawn(depth_m)
    # Nearer than 0.4 m, where the views are shrunk to a quarter, sigma is on the safe side. Of the
    # typical pixel: sigma also counts the chance of a wrong surface, which a plane does not have.
    highest = 1.25 if depth_m >= 0.4 else 1.35
    assert 0.8 < sample.typical_ratio < highest
    assert abs(sample.error_m.mean()) < depth_m / 150


@pytest.mark.slow
def test_coverage_of_many():
    # Of all depths alike, however many pixels each has.
    assert 0.65 < np.mean([_drawn(depth_m).coverage for depth_m in DEPTHS_M]) < 0.75


# Sigma and confidence rank the errors -------------------------------------------------------------


def _away_from_steps(pair: d3s.Pair, reach_px: int = 16) -> np.ndarray:
    from scipy.ndimage import maximum_filter

    jump = np.zeros(pair.left.shape, dtype=bool)
    jump[:, 1:] |= np.abs(np.diff(pair.disparity_px, axis=1)) > 1
    jump[1:] |= np.abs(np.diff(pair.disparity_px, axis=0)) > 1
    return ~maximum_filter(jump, size=2 * reach_px + 1)


def _planes(depths_m: tuple[float, ...], textures: tuple[str, ...], **tilt: float) -> list:
    scene = d3s.TiltedPlane if tilt else d3s.Plane
    return [scene(depth_m=z, texture=texture, **tilt) for z in depths_m for texture in textures]


def _seen(scenes: list, shape: tuple[int, int] = (160, 340)) -> Sample:
    """Pixels of several scenes, away from steps in depth."""
    samples = []
    for seed, scene in enumerate(scenes):
        pair = d3s.simulate(scene, RIG, noise=0.01, seed=seed, shape=shape)
        found = d3s.estimate(pair.left, pair.right, RIG)
        where = _match_in_frame(pair) & _away_from_steps(pair)
        samples.append(Sample.of(found, pair.depth_m, where))
    return Sample.joined(samples)


def _deciles_m(sample: Sample, score: np.ndarray) -> np.ndarray:
    """Mean size of the errors, from the tenth that is said to be best to the worst."""
    parts = np.array_split(np.argsort(score, kind="stable"), 10)
    return np.array([np.abs(sample.error_m[part]).mean() for part in parts])


def _gain(sample: Sample, score: np.ndarray) -> float:
    """What is won by leaving out the pixels with the highest score, over what could be won."""
    size = np.abs(sample.error_m)

    def mean_of_best(order: np.ndarray) -> float:
        return float((np.cumsum(size[order]) / np.arange(1, size.size + 1)).mean())

    by_score, by_error = (mean_of_best(np.argsort(by, kind="stable")) for by in (score, size))
    return float((size.mean() - by_score) / (size.mean() - by_error))


def _scores(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    return sample.sigma_m, 1 - sample.confidence


def test_errors_rise_with_sigma():
    sample = _seen(_planes((0.4, 0.7, 1.0, 1.6), ("gravel", "grass")))
    for score in _scores(sample):
        assert (np.diff(_deciles_m(sample, score)[::2]) > 0).all()
        assert _gain(sample, score) > 0.6


@pytest.mark.slow
def test_errors_rise_with_sigma_over_deciles():
    # Beside a step in depth the blur of the nearer side lets the farther one shine through, and
    # its depth is found with a good sigma where the truth is the nearer: that is left out here.
    textures = (*TEXTURES, "brick", "text")
    random = [d3s.RandomScene(seed=100 + i, patterns=textures) for i in range(12)]
    tilted = _planes((0.6, 1.0, 1.5), textures, tilt_x_rad=1.0, tilt_y_rad=0.5)
    sample = Sample.joined(
        [_seen(_planes(DEPTHS_M, textures)), _seen(tilted), _seen(random, (300, 500))]
    )
    for score in _scores(sample):
        assert (np.diff(_deciles_m(sample, score)) > 0).all()
        assert _gain(sample, score) > 0.75
