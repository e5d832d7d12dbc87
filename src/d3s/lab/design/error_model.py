"""From the computed errors of the fit to those of the whole estimator: ratios measured on the twin.

A search that is off, smaller windows where a large one does not agree, and interpolation add to
what the fit of the largest window alone would have. benchmarks/design.py simulates cameras drawn at
random with the tuning textures, and writes what remains into a small file.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from d3s.lab.design.window_fit import FitErrors
from d3s.types import FloatArray

MODEL_FILE = Path(__file__).with_name("error_model.toml")
"""Ratios, written by benchmarks/design.py."""

MAE_PER_SIGMA = float(np.sqrt(2 / np.pi))
"""Mean absolute error over the standard deviation, of Gaussian errors."""

# Sigma at which the confidence of `joint` is a half, and the least confidence of its filter, leave
# depths up to about this share of that sigma.
_HALF_PX, _HALF_PER_PX = 0.09, 3e-4


@dataclass(frozen=True, kw_only=True)
class ErrorModel:
    """Ratio of measured to computed errors, by the scale of the fit, and its scatter."""

    ratio: Mapping[int, float]
    scatter: Mapping[int, float]  # standard deviation of the logarithm of the ratio
    floor_px: float  # error that remains without noise
    density_limit: float  # stated sigma over that of half confidence at which half is kept
    density_power: float  # how fast the share of kept depths falls beyond
    cameras: int
    points: int

    def sigma_px(self, errors: FitErrors, noise_sigma: ArrayLike) -> FloatArray:
        """Standard deviation of the disparity of the estimator, in pixels."""
        return np.hypot(self._of(self.ratio, errors) * errors.total_px(noise_sigma), self.floor_px)

    def scatter_of(self, errors: FitErrors) -> FloatArray:
        """Standard deviation of the logarithm of sigma from camera to camera."""
        return self._of(self.scatter, errors)

    def density(
        self, errors: FitErrors, noise_sigma: ArrayLike, disparity_px: ArrayLike
    ) -> FloatArray:
        """Share of the textured pixels that keep a depth, 0 to 1."""
        half = np.maximum(_HALF_PX, _HALF_PER_PX * np.square(disparity_px))
        stated = errors.stated_px(noise_sigma) / (self.density_limit * half)
        return np.asarray(1 / (1 + np.minimum(stated, 1e3) ** self.density_power))

    @staticmethod
    def _of(values: Mapping[int, float], errors: FitErrors) -> FloatArray:
        scale = np.asarray(errors.scale)
        return np.select([scale == one for one in values], list(values.values()))

    @classmethod
    def load(cls, path: Path = MODEL_FILE) -> "ErrorModel":
        """Read the model of a file."""
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        for name in ("ratio", "scatter"):
            values[name] = {int(scale): one for scale, one in values[name].items()}
        return cls(**values)


@cache
def error_model() -> ErrorModel:
    """Model of the package."""
    return ErrorModel.load()
