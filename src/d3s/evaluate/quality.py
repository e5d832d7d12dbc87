"""Figures that users of depth cameras know: those of the RealSense depth quality tool.

A camera looks at a plane. Definitions after Intel's tool (librealsense, tools/depth-quality: its
readme, `depth-metrics.h` and `rs-depth-quality.cpp`), worked out here anew:

- fill rate: pixels with a depth, of all pixels of the region;
- Z-accuracy: median of the signed error, over the true distance; positive is too far. The plane
  through the depths is turned to face the camera first, about where it meets the optical axis, so
  that a camera that is not quite square to the wall is not blamed;
- plane-fit RMS: root mean square of the distances from the plane through the depths;
- sub-pixel RMS: the same in pixels of disparity: focal length times baseline over the depth of a
  point, less that over the depth of its foot on the plane;
- temporal noise: standard deviation of a pixel's depth over repeated frames, the median over the
  pixels that have a depth in all of them. The tool does not show it, but tests of such cameras do.

As in the tool, 0.5 % of the points at either end of depth are left out of the three middle ones
after the plane was fitted. The region is that of the caller; depth is along the optical axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.evaluate.metrics import ratio
from d3s.record import shown
from d3s.rig import Optics
from d3s.types import FloatArray, Mask

_END_PARTS = 200  # one in so many points is left out at either end
_LEAST_POINTS = 3


@dataclass(frozen=True, kw_only=True)
class PlaneQuality:
    """One frame of a plane; shares are from 0 to 1, and NaN where there are too few points."""

    fill_rate: float
    z_accuracy: float  # of the distance, signed; NaN if the distance is not known
    plane_fit_rms_m: float
    plane_fit_rms: float  # of the distance
    subpixel_rms_px: float


@dataclass(frozen=True, kw_only=True)
class TemporalNoise:
    """How much depth flickers over repeated frames."""

    temporal_noise_m: float
    temporal_noise: float  # of the distance
    steady: int  # pixels that have a depth in all frames


class FittedPlane(NamedTuple):
    """A plane in space, x right, y down, z forward."""

    point: FloatArray
    normal: FloatArray  # of length 1, pointing away from the camera

    @classmethod
    def through(cls, points: FloatArray) -> "FittedPlane":
        """The plane with the least squares of what points, (count, 3), are beyond it in depth.

        As the tool has it for a wall in front of the camera: errors are along the axis.
        """
        middle = points.mean(axis=0)
        sides, depths = np.split(points - middle, [2], axis=1)
        slopes = np.linalg.lstsq(sides, depths, rcond=None)[0].ravel()
        normal = np.array([-slopes[0], -slopes[1], 1.0])
        return cls(middle, normal / np.linalg.norm(normal))

    @property
    def axis_depth_m(self) -> float:
        """Where it meets the optical axis."""
        return float(self.normal @ self.point / self.normal[2])

    def distances_m(self, points: FloatArray) -> FloatArray:
        """How far points are beyond it."""
        return np.asarray((points - self.point) @ self.normal)


def central_region(shape: tuple[int, int], share: float) -> Mask:
    """The middle of a frame, with this share of its height and of its width.

    Raises
    ------
    InputError
        When the share is not above 0, up to 1.
    """
    if not 0 < share <= 1:
        raise InputError(f"share={shown(share)} must be above 0, up to 1: the part of each side.")
    region = np.zeros(shape, dtype=np.bool_)
    rows, cols = ((size - max(round(share * size), 1)) // 2 for size in shape)
    region[rows : shape[0] - rows, cols : shape[1] - cols] = True
    return region


def plane_quality(
    depth_map: DepthMap, distance_m: float | None = None, region: Mask | None = None
) -> PlaneQuality:
    """The figures of one frame of a plane.

    Parameters
    ----------
    depth_map
        Of a plane, seen about square.
    distance_m
        Of the plane along the optical axis, as it is known from elsewhere. If left there is no
        Z-accuracy, and shares of the distance are of that of the plane through the depths.
    region
        Which pixels to look at; all if left.
    """
    everywhere = np.ones(depth_map.depth_m.shape, dtype=np.bool_) if region is None else region
    kept = everywhere & depth_map.valid
    fill_rate = ratio(int(np.count_nonzero(kept)), int(np.count_nonzero(everywhere)))
    points = _points_m(depth_map, kept)
    if len(points) < _LEAST_POINTS:
        nothing = float("nan")
        return PlaneQuality(
            fill_rate=fill_rate, z_accuracy=nothing, plane_fit_rms_m=nothing,
            plane_fit_rms=nothing, subpixel_rms_px=nothing,
        )  # fmt: skip
    plane = FittedPlane.through(points)
    points = _without_ends(points)
    beyond_m = plane.distances_m(points)
    rms_m = _rms(beyond_m)
    true_m = plane.axis_depth_m if distance_m is None else distance_m
    error_m = float(np.median(plane.axis_depth_m + beyond_m - true_m))
    return PlaneQuality(
        fill_rate=fill_rate,
        z_accuracy=float("nan") if distance_m is None else error_m / true_m,
        plane_fit_rms_m=rms_m,
        plane_fit_rms=rms_m / true_m,
        subpixel_rms_px=_rms(_disparity_residuals_px(points, beyond_m, plane, depth_map)),
    )


def temporal_noise(depth_maps: Sequence[DepthMap], region: Mask | None = None) -> TemporalNoise:
    """Flicker over frames of a scene in which nothing moves.

    Raises
    ------
    InputError
        When there are fewer than two frames, or they are not of one size.
    """
    if len(depth_maps) < 2 or len({one.depth_m.shape for one in depth_maps}) != 1:
        raise InputError(
            f"depth_maps has {len(depth_maps)} frames: there must be at least two, of one size."
        )
    depth_m = np.stack([one.depth_m for one in depth_maps]).astype(np.float64)
    steady = np.isfinite(depth_m).all(axis=0)
    if region is not None:
        steady &= region
    if not steady.any():
        return TemporalNoise(temporal_noise_m=float("nan"), temporal_noise=float("nan"), steady=0)
    some = depth_m[:, steady]
    spread = some.std(axis=0, ddof=1)
    return TemporalNoise(
        temporal_noise_m=float(np.median(spread)),
        temporal_noise=float(np.median(spread / some.mean(axis=0))),
        steady=int(np.count_nonzero(steady)),
    )


def _points_m(depth_map: DepthMap, kept: Mask) -> FloatArray:
    """Points in space, (count, 3); the axis goes through the middle of the view."""
    rows, cols = np.nonzero(kept)
    depth_m = depth_map.depth_m[kept].astype(np.float64)
    height, width = depth_map.depth_m.shape
    scale = depth_m / depth_map.rig.optics.focal_length_px
    return np.column_stack(
        [(cols - (width - 1) / 2) * scale, (rows - (height - 1) / 2) * scale, depth_m]
    )


def _without_ends(points: FloatArray) -> FloatArray:
    ends = len(points) // _END_PARTS
    order = np.argsort(points[:, 2], kind="stable")
    return np.asarray(points[order[ends : len(points) - ends]])


def _disparity_residuals_px(
    points: FloatArray, beyond_m: FloatArray, plane: FittedPlane, depth_map: DepthMap
) -> FloatArray:
    feet_m = points[:, 2] - beyond_m * plane.normal[2]
    optics: Optics = depth_map.rig.optics
    return np.asarray(optics.disparity_px(points[:, 2]) - optics.disparity_px(feet_m))


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Repeated frames of one plane."""

    frames: int
    plane: PlaneQuality  # the mean over the frames
    temporal: TemporalNoise | None  # None of a single frame


def quality_of(
    depth_maps: Sequence[DepthMap], distance_m: float | None = None, region: Mask | None = None
) -> Quality:
    """All figures, of one frame or of several of the same plane.

    Raises
    ------
    InputError
        When there is no frame, or they are not of one size.
    """
    if not depth_maps:
        raise InputError("depth_maps is empty: there must be at least one frame.")
    several = temporal_noise(depth_maps, region) if len(depth_maps) > 1 else None
    each = [plane_quality(one, distance_m, region) for one in depth_maps]
    return Quality(
        frames=len(depth_maps),
        plane=PlaneQuality(
            **{
                field.name: float(np.mean([getattr(one, field.name) for one in each]))
                for field in fields(PlaneQuality)
            }
        ),
        temporal=several,
    )
