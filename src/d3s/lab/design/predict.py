"""Prediction of a camera: error by depth, working range, and what follows from its geometry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.errors import DesignError, InputError
from d3s.estimate.candidates import WIDEST_BLUR_PX, default_depth_range_m
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.design.error_model import MAE_PER_SIGMA, error_model
from d3s.lab.design.limits import WAVELENGTH_M, texture_bound
from d3s.lab.design.wall import Lighting, Wall
from d3s.lab.design.window_fit import FitErrors, window_errors
from d3s.optics.information import DepthBound
from d3s.optics.psf import airy_radius_px
from d3s.types import FloatArray

DEPTHS = 28
"""Number of depths of a prediction."""
LEAST_DENSITY = 0.5
"""Share of the textured pixels that have a depth within a working range."""

_SIDE_PX = 384  # of the picture of the texture: that of the table
_CONFUSION_PX = 1.0  # diameter of a blur disk that counts as sharp


class ErrorLimit(NamedTuple):
    """Largest mean absolute error that is wished for: a length, a share of the depth, or both.

    With both, the larger of the two holds.
    """

    error_m: float = 0.0
    share: float = 0.0

    def limit_m(self, depth_m: ArrayLike) -> FloatArray:
        """Largest error at a depth, in metres."""
        return np.maximum(self.error_m, self.share * np.asarray(depth_m, dtype=np.float64))

    def __str__(self) -> str:
        parts = [f"{100 * self.error_m:g} cm"] if self.error_m else []
        return " or ".join(parts + ([f"{100 * self.share:g} %"] if self.share else []))


ONE_CENTIMETRE = ErrorLimit(error_m=0.01)
"""Error of the working range of the paper."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Predicted errors of `joint` on a plane at several depths; one value per depth.

    Sigma is the standard deviation of Gaussian errors with the mean absolute error of the
    estimator.
    """

    camera: Camera
    light: Lighting
    wall: Wall
    depth_m: FloatArray
    noise_sigma: float  # of a pixel, of full scale
    disparity_px: FloatArray
    blur_radius_px: tuple[FloatArray, FloatArray]
    noise_m: FloatArray  # part of sigma by noise
    misfit_m: FloatArray  # part of sigma that noise does not make: the model of the blur
    sigma_m: FloatArray
    scatter: FloatArray  # standard deviation of the logarithm of sigma from camera to camera
    density: FloatArray  # share of the textured pixels that keep a depth
    bound: DepthBound

    @property
    def mae_m(self) -> FloatArray:
        """Mean absolute error."""
        return MAE_PER_SIGMA * self.sigma_m

    @property
    def over_bound(self) -> FloatArray:
        """Sigma over the Cramér-Rao bound of the same windows."""
        return np.asarray(self.sigma_m / self.bound.total_m)

    @property
    def by_cue_m(self) -> tuple[FloatArray, FloatArray]:
        """Sigma that stereo alone and defocus alone would leave, at the same share of the bound."""
        return self.over_bound * self.bound.stereo_m, self.over_bound * self.bound.defocus_m

    def working_range_m(self, wish: ErrorLimit = ONE_CENTIMETRE) -> tuple[float, float] | None:
        """Longest interval of depths whose error is below a wish, of those predicted."""
        return working_range_m(self.depth_m, self.mae_m, self.density, wish)

    @property
    def depth_of_field_m(self) -> tuple[float, float]:
        """Depths between which both views are blurred by at most a pixel, from the sharpest on.

        NaN if there is none.
        """
        optics = self.camera.optics
        half_dpt = 0.5 * _CONFUSION_PX / (optics.focal_length_px * optics.aperture_radius_m)
        focus_dpt = [1 / one for one in optics.focus_distances_m]
        nearest, farthest = min(focus_dpt) + half_dpt, max(focus_dpt) - half_dpt
        if nearest < farthest:
            return np.nan, np.nan
        return 1 / nearest, 1 / farthest if farthest > 0 else np.inf

    @property
    def airy_radius_px(self) -> float:
        """Radius of the spot of a perfect lens in focus, in pixels."""
        return airy_radius_px(self.camera.optics.lens(0), WAVELENGTH_M)


def predict(
    camera: Camera,
    *,
    reach_m: tuple[float, float] | None = None,
    depths_m: Sequence[float] | FloatArray | None = None,
    light: Lighting = Lighting(),  # noqa: B008 - immutable
    wall: Wall = Wall(),  # noqa: B008 - immutable
) -> Prediction:
    """Predict the errors of `joint` on walls at several depths.

    Parameters
    ----------
    camera
        Camera on paper.
    reach_m
        Nearest and farthest depth; those that `joint` searches by default if left.
    depths_m
        Depths to predict, increasing; 28 over the reach, even in 1/depth, if left.
    light
        Noise or light level.
    wall
        Texture.

    Raises
    ------
    InputError
        If the depths are not positive and increasing.
    DesignError
        If the camera cannot see them, with the rule.
    """
    optics, model, noise = camera.optics, error_model(), light.of_camera(camera)
    depths = checked_depths(depths_m, reach_m or default_depth_range_m(optics))
    check_reach(camera, (float(depths[0]), float(depths[-1])))
    options = JointOptions(depth_range_m=(0.9 * depths[0], min(1.2 * depths[-1], 1e4)))
    plan = make_plan(optics, options, (_SIDE_PX, _SIDE_PX))
    window_px = plan.windows_px[-1]
    found = []
    for depth in map(float, depths):
        picture = wall.picture(optics, depth, _SIDE_PX)
        bound = texture_bound(picture, depth, optics, window_px=window_px, noise_sigma=noise)
        found.append((*window_errors(picture, depth, plan).means, *bound))
    columns = [np.array(one) for one in zip(*found, strict=True)]
    errors = FitErrors(*columns[:6])
    disparity = optics.disparity_px(depths)
    sigma_m = (
        depths**2 / (optics.focal_length_px * optics.baseline_m) * model.sigma_px(errors, noise)
    )
    noise_m = sigma_m * errors.noise_px(noise) / np.maximum(errors.total_px(noise), 1e-30)
    return Prediction(
        camera=camera,
        light=light,
        wall=wall,
        depth_m=depths,
        noise_sigma=noise,
        disparity_px=disparity,
        blur_radius_px=(optics.blur_radius_px(depths, 0), optics.blur_radius_px(depths, 1)),
        noise_m=noise_m,
        misfit_m=np.sqrt(np.maximum(sigma_m**2 - noise_m**2, 0)),
        sigma_m=sigma_m,
        scatter=model.scatter_of(errors),
        density=model.density(errors, noise, disparity),
        bound=DepthBound(*columns[6:]),
    )


def checked_depths(
    depths_m: Sequence[float] | FloatArray | None, reach_m: tuple[float, float]
) -> FloatArray:
    """Depths, increasing; even in 1/depth over the reach if none are given.

    Raises an InputError if they are not positive, finite and increasing.
    """
    if depths_m is None:
        near, far = reach_m
        if not 0 < near < far < np.inf:
            raise InputError(
                f"reach_m={reach_m} must be the nearest depth, above 0, then a larger one: they "
                "are in metres."
            )
        return np.asarray(1 / np.linspace(1 / near, 1 / far, DEPTHS))
    depths = np.asarray(depths_m, dtype=np.float64)
    is_good = depths.ndim == 1 and depths.size > 0 and np.all(np.isfinite(depths) & (depths > 0))
    if not is_good or np.any(np.diff(depths) <= 0):
        raise InputError(f"depths_m={depths_m!r} must be positive and increasing, in metres.")
    return depths


def check_reach(camera: Camera, reach_m: tuple[float, float]) -> None:
    """Refuse a camera that cannot see the depths of its reach, by a DesignError with the rule."""
    optics = camera.optics
    rows, cols = camera.view_px
    near, far = reach_m
    disparity = float(optics.disparity_px(near))
    if disparity > 0.75 * cols:
        raise DesignError(
            f"reach_m={reach_m} begins too near: a point at {near:g} m is {disparity:.0f} px apart "
            f"in the two views, which are {cols} px wide, and they share less than a quarter. "
            "Begin farther away, or shorten the baseline or the focal length."
        )
    blur = 2 * max(abs(float(optics.blur_radius_px(near, one))) for one in (0, 1))
    if blur > min(rows, cols):
        raise DesignError(
            f"reach_m={reach_m} begins too near: a point at {near:g} m is blurred over "
            f"{blur:.0f} px, and the field is {cols} x {rows} px. Focus nearer, begin farther "
            "away, or choose a larger f-number."
        )
    radii = np.array([[optics.blur_radius_px(z, one) for z in reach_m] for one in (0, 1)])
    # A lens whose radius changes its sign is sharp somewhere within the reach.
    sharpest = float(np.min(np.where(np.prod(radii, axis=1) <= 0, 0, 2 * np.abs(radii).T)))
    if sharpest > WIDEST_BLUR_PX:
        focus = " and ".join(f"{one:.3g} m" for one in optics.focus_distances_m)
        raise DesignError(
            f"focus at {focus} is beyond the reach of {near:g} to {far:g} m: nowhere in it is a "
            f"point blurred over less than {sharpest:.0f} px, and {WIDEST_BLUR_PX:g} px are the "
            "most that depth is found with. Focus within the reach, or choose a larger f-number."
        )


def working_range_m(
    depth_m: FloatArray, mae_m: FloatArray, density: FloatArray, wish: ErrorLimit
) -> tuple[float, float] | None:
    """Longest interval of depths whose error is below a wish; ends are interpolated.

    Errors are NaN where there is no depth; `density` is the share of the textured pixels with one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.log(mae_m / wish.limit_m(depth_m))
    over = np.where(np.isfinite(over) & (density >= LEAST_DENSITY), over, 9.0)
    changes = np.flatnonzero(np.diff([False, *(over <= 0), False]))
    ranges = [
        (_crossing(depth_m, over, first, first - 1), _crossing(depth_m, over, after - 1, after))
        for first, after in zip(changes[::2], changes[1::2], strict=True)
    ]
    return max(ranges, key=lambda ends: ends[1] - ends[0], default=None)


def _crossing(depth_m: FloatArray, over: FloatArray, inside: int, outside: int) -> float:
    """Depth between two neighbours at which the error is at its limit."""
    if not 0 <= outside < depth_m.size or over[outside] >= 9.0:
        return float(depth_m[inside])
    share = over[inside] / (over[inside] - over[outside])
    logs = np.log(depth_m[[inside, outside]])
    return float(np.exp(logs[0] + share * (logs[1] - logs[0])))
