"""Errors of the estimator from those of its window fit: a table of the fit, and measured ratios.

On a texture that looks alike at every distance, the errors of a fit in pixels depend on three
numbers: the mean blur radius of both views, the difference of their radii, and the cut-off of
diffraction, all in pixels; and on the scale at which the method fits, for which there is one table
each. A fourth, the slope of the defocus over the disparity, adds a misfit in proportion to it. A
search over thousands of cameras and the page in the browser look errors up.

A search that is off, smaller windows where a large one does not agree, and interpolation add to
what the fit of the largest window alone would have. benchmarks/design.py simulates cameras drawn at
random with the tuning textures, and writes what remains into a small file.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s.estimate.joint.plan import make_plan
from d3s.estimate.lens_field import BLUR_RADIUS_PX, DEFOCUS_PX2
from d3s.estimate.options import JointOptions
from d3s.lab.design.limits import WAVELENGTH_M
from d3s.lab.design.wall import Wall
from d3s.lab.design.window_fit import FitErrors, window_errors
from d3s.rig import Optics
from d3s.types import FloatArray, Progress

NATURAL_FILE = Path(__file__).with_name("natural_texture.json")
"""Table of the natural texture, written by benchmarks/design.py."""

_SIDE_PX = 384  # of the picture
_DEPTH_M = 1.0  # of the plane; any would do
_RADIUS_PX: Mapping[int, tuple[float, ...]] = {
    1: tuple(np.arange(0, 5.01, 0.5)),
    2: (0.0, 0.7, 1.4, 2.1, 2.8, 3.4, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5),
    4: (0.0, 1.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.5, 11.0, 12.5, 14.0, 16.0, 18.0),
}
_DIFFERENCE_PX = (0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0)
_CUTOFF = tuple(np.geomspace(0.12, 7.0, 12))

LARGEST_DIFFERENCE_PX = _DIFFERENCE_PX[-1]
"""Largest difference of the blur radii of both views in the table."""
LARGEST_RADIUS_PX = _RADIUS_PX[4][-1]
"""Largest mean blur radius in the table."""


class Axes(NamedTuple):
    """Values at which errors are tabulated, increasing."""

    radius_px: tuple[float, ...]
    difference_px: tuple[float, ...]
    cutoff: tuple[float, ...]


FULL_AXES = {scale: Axes(radii, _DIFFERENCE_PX, _CUTOFF) for scale, radii in _RADIUS_PX.items()}
"""Axes of the table of the natural texture, by scale."""


@dataclass(frozen=True, kw_only=True)
class ErrorTable:
    """Root mean square errors of the fit, by scale; arrays (5, radii, differences, cut-offs).

    The five are the fields of `FitErrors`. Errors by noise are stored as logarithms.
    """

    axes: Mapping[int, Axes]
    values: Mapping[int, FloatArray]

    def at(
        self,
        radius_px: tuple[ArrayLike, ArrayLike],
        cutoff: ArrayLike,
        slope_px: ArrayLike = 0.0,
        contrast: float = 1.0,
    ) -> FitErrors:
        """Errors at blur radii and cut-offs, which broadcast; ends of the table hold beyond it.

        Radii are signed, of the left and the right view; the cut-off of the lenses is in cycles/px;
        the slope is that of `defocus_slope_px`; contrast is over that of the table.
        """
        from scipy.interpolate import interpn  # here, to keep `import d3s` fast

        left, right, logs = np.broadcast_arrays(*radius_px, np.log(cutoff))
        scale = scale_of(left, right)
        numbers = np.stack([0.5 * np.abs(left + right), np.abs(left - right), logs], axis=-1)
        found = np.zeros((5, *scale.shape))
        for one, tabulated in self.axes.items():
            here, axes = scale == one, (*tabulated[:2], np.log(tabulated.cutoff))
            low, high = ([axis[end] for axis in axes] for end in (0, -1))
            at = np.clip(numbers[here], low, high)
            found[:, here] = interpn(axes, np.moveaxis(self.values[one], 0, -1), at).T
        return FitErrors(
            np.exp(found[0]) / contrast,
            np.exp(found[1]) / contrast**2,
            np.hypot(found[2], found[4] * np.asarray(slope_px)),
            found[3] * contrast,
            found[4],
            scale,
        )

    def as_json(self) -> dict[str, Any]:
        """Table as JSON can hold it, with four digits."""
        return {
            str(scale): {
                **self.axes[scale]._asdict(),
                "values": [float(f"{one:.5g}") for one in self.values[scale].ravel()],
            }
            for scale in self.axes
        }

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "ErrorTable":
        """Table from `as_json`."""
        axes = {
            int(scale): Axes(*(tuple(one[name]) for name in Axes._fields))
            for scale, one in document.items()
        }
        values = {
            scale: np.reshape(document[str(scale)]["values"], (5, *map(len, one)))
            for scale, one in axes.items()
        }
        return cls(axes=axes, values=values)


def defocus_slope_px(optics: Optics) -> float:
    """Change of half the difference of the blur variances per pixel of disparity, in pixels."""
    per_dpt_px = optics.focal_length_px * optics.baseline_m
    return abs(optics.alpha_px2_m) / per_dpt_px


def scale_of(left_px: FloatArray, right_px: FloatArray) -> NDArray[np.int64]:
    """Scale at which views with these signed blur radii are fitted: 1, 2 or 4.

    The rule of the plan of `joint`, for radii in place of disparities.
    """
    widest = np.maximum(np.abs(left_px), np.abs(right_px))
    half_difference = np.abs(right_px**2 - left_px**2) / 8
    scale: NDArray[np.int64] = np.ones(widest.shape, dtype=np.int64)
    for coarser, limit_px in sorted(BLUR_RADIUS_PX.items()):
        is_coarse = (widest > limit_px) | (half_difference > DEFOCUS_PX2 * (coarser / 2) ** 2)
        scale[is_coarse] = coarser
    return scale


def build_table(
    wall: Wall,
    axes: Mapping[int, Axes] = FULL_AXES,
    *,
    side_px: int = _SIDE_PX,
    progress: Progress | None = None,
) -> ErrorTable:
    """Tabulate the errors of the fit on a texture that looks alike at every distance.

    `progress` is called with the number of finished cells, and of all.
    """
    cells = [(scale, at) for scale, one in axes.items() for at in np.ndindex(*map(len, one))]
    values = {scale: np.zeros((5, *map(len, one))) for scale, one in axes.items()}
    for done, (scale, place) in enumerate(cells, start=1):
        radius, difference, cutoff = (
            axis[index] for axis, index in zip(axes[scale], place, strict=True)
        )
        optics = _optics_with(radius, difference, cutoff)
        plan = make_plan(optics, JointOptions(), (side_px, side_px))
        # A plan that fits every disparity at this scale.
        ends = {one: (-np.inf if one > scale else np.inf) for one in plan.finer_px}
        plan = plan._replace(finer_px={one: (end, -end) for one, end in ends.items()})
        errors = window_errors(wall.picture(optics, _DEPTH_M, side_px), _DEPTH_M, plan).means
        noise = np.log(errors.per_noise_px), np.log(errors.per_noise2_px)
        rest = errors.misfit_px, errors.residual, errors.per_slope
        values[scale][(slice(None), *place)] = *noise, *rest
        if progress is not None:
            progress(done, len(cells))
    return ErrorTable(axes=dict(axes), values=values)


@cache
def natural_table() -> ErrorTable:
    """Table of the natural texture of contrast 0.15."""
    import json

    return ErrorTable.of_json(json.loads(NATURAL_FILE.read_text(encoding="utf-8")))


def _optics_with(radius_px: float, difference_px: float, cutoff: float) -> Optics:
    """Optics that have given blur radii at `_DEPTH_M`, and a cut-off; the baseline is long.

    The fit knows the defocus at each disparity. With a long baseline its slope over the disparity
    vanishes, as it nearly does for every camera.
    """
    sensor_m, pitch_m = 10e-3, 2e-6
    aperture_m = 0.5 * sensor_m * WAVELENGTH_M * cutoff / pitch_m
    per_dpt_px = sensor_m * aperture_m / pitch_m
    left, right = (
        1 / _DEPTH_M - (radius_px + sign * difference_px / 2) / per_dpt_px for sign in (1, -1)
    )
    return Optics(
        sensor_distance_m=sensor_m,
        aperture_radius_m=aperture_m,
        baseline_m=0.4,
        optical_power_left_dpt=left + 1 / sensor_m,
        optical_power_right_dpt=right + 1 / sensor_m,
        pixel_pitch_m=pitch_m,
        aperture_gaussian_width=0.5,
        disparity_offset_px=0.0,
    )


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
