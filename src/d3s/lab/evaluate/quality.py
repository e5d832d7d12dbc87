"""Depth quality of a plane: the figures of the RealSense depth quality tool.

Definitions follow Intel's tool (librealsense, tools/depth-quality: its readme, `depth-metrics.h`
and `rs-depth-quality.cpp`); the implementation is our own:

- fill rate: share of the pixels of the region that have a depth;
- Z-accuracy: median of the signed error over the true distance; positive is too far. The fitted
  plane is first turned to face the camera, about its intersection with the optical axis, so that a
  slight tilt of the camera does not count as an error;
- plane-fit RMS: root mean square of the distances from the fitted plane;
- sub-pixel RMS: root mean square of the residuals in pixels of disparity: disparity of a point less
  disparity of its foot on the fitted plane;
- temporal noise: standard deviation of a pixel's depth over repeated frames, the median over the
  pixels that have a depth in all frames. The tool does not have it; tests of depth cameras do.

As in the tool, 0.5 % of the points at either end of depth are left out of Z-accuracy, plane-fit RMS
and sub-pixel RMS, after the plane is fitted. The caller chooses the region. Depth is along the
optical axis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.metrics import count_pixels, ratio
from d3s.lab.evaluate.sweep import PlaneSweep
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane
from d3s.lab.twin.sensor import expose_pair
from d3s.lab.twin.textures import Texture
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import FloatArray, Mask

_END_FRACTION = 200  # one in 200 points, 0.5 %, is left out at either end
_LEAST_POINTS = 3
_MOST_FRAMES = 1000


@dataclass(frozen=True, kw_only=True)
class PlaneQuality:
    """Figures of one frame of a plane; shares from 0 to 1, NaN where there are too few points."""

    fill_rate: float
    z_accuracy: float = math.nan  # of the distance, signed; NaN if the distance is not known
    plane_fit_rms_m: float = math.nan
    plane_fit_rms: float = math.nan  # of the distance
    subpixel_rms_px: float = math.nan


@dataclass(frozen=True, kw_only=True)
class TemporalNoise:
    """Scatter of depth over repeated frames."""

    temporal_noise_m: float
    temporal_noise: float  # of the distance
    steady: int  # number of pixels that have a depth in all frames


def central_region(shape: tuple[int, int], share: float) -> Mask:
    """Mask of the middle of a frame, with a share of its height and of its width."""
    if not 0 < share <= 1:
        raise InputError(
            f"share={short_repr(share)} must be above 0, up to 1: the part of each side."
        )
    region = np.zeros(shape, dtype=np.bool_)
    rows, cols = ((size - max(round(share * size), 1)) // 2 for size in shape)
    region[rows : shape[0] - rows, cols : shape[1] - cols] = True
    return region


def plane_quality(
    depth_map: DepthMap, distance_m: float | None = None, region: Mask | None = None
) -> PlaneQuality:
    """Compute the figures of one frame of a plane.

    Parameters
    ----------
    depth_map
        Depth map of a plane that roughly faces the camera.
    distance_m
        True distance of the plane along the optical axis. If left out, Z-accuracy is NaN, and
        shares of the distance are of the distance of the fitted plane.
    region
        Pixels to use, (rows, cols); all if left out.
    """
    everywhere = np.ones(depth_map.depth_m.shape, dtype=np.bool_) if region is None else region
    kept = everywhere & depth_map.valid
    fill_rate = ratio(count_pixels(kept), count_pixels(everywhere))
    points = _points_m(depth_map, kept)
    if len(points) < _LEAST_POINTS:
        return PlaneQuality(fill_rate=fill_rate)
    # As in the tool, for a wall in front of the camera: errors are along the optical axis.
    middle = points.mean(axis=0)
    sides, depths = np.split(points - middle, [2], axis=1)
    slopes = np.linalg.lstsq(sides, depths, rcond=None)[0].ravel()
    normal = np.array([-slopes[0], -slopes[1], 1.0])
    normal /= np.linalg.norm(normal)  # away from the camera
    axis_m = float(normal @ middle / normal[2])  # where the plane meets the optical axis
    points = _without_ends(points)
    beyond_m = (points - middle) @ normal
    rms_m = _rms(beyond_m)
    true_m = axis_m if distance_m is None else distance_m
    error_m = float(np.median(axis_m + beyond_m - true_m))
    optics, feet_m = depth_map.rig.optics, points[:, 2] - beyond_m * normal[2]
    return PlaneQuality(
        fill_rate=fill_rate,
        z_accuracy=float("nan") if distance_m is None else error_m / true_m,
        plane_fit_rms_m=rms_m,
        plane_fit_rms=rms_m / true_m,
        subpixel_rms_px=_rms(optics.disparity_px(points[:, 2]) - optics.disparity_px(feet_m)),
    )


def temporal_noise(depth_maps: Sequence[DepthMap], region: Mask | None = None) -> TemporalNoise:
    """Compute the temporal noise over frames of a scene in which nothing moves."""
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
    """Points in space, (count, 3); the optical axis goes through the middle of the view."""
    rows, cols = np.nonzero(kept)
    depth_m = depth_map.depth_m[kept].astype(np.float64)
    height, width = depth_map.depth_m.shape
    scale = depth_m / depth_map.rig.optics.focal_length_px
    return np.column_stack(
        [(cols - (width - 1) / 2) * scale, (rows - (height - 1) / 2) * scale, depth_m]
    )


def _without_ends(points: FloatArray) -> FloatArray:
    ends = len(points) // _END_FRACTION
    order = np.argsort(points[:, 2], kind="stable")
    return np.asarray(points[order[ends : len(points) - ends]])


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Figures of repeated frames of one plane."""

    frames: int
    plane: PlaneQuality  # the mean over the frames
    temporal: TemporalNoise | None  # None for a single frame


def quality_of(
    depth_maps: Sequence[DepthMap], distance_m: float | None = None, region: Mask | None = None
) -> Quality:
    """Compute all figures of one frame, or of several frames of the same plane.

    Parameters
    ----------
    depth_maps
        Depth maps of the frames, of one size.
    distance_m, region
        As for `plane_quality`.

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


def simulated_frames(
    contenders: Sequence[Contender],
    distance_m: float,
    *,
    texture: str = "brick",
    frames: int = 10,
    noise: float = 0.01,
    shape: tuple[int, int] = (300, 640),
    seed: int = 0,
    rig: Rig | None = None,
) -> dict[str, list[DepthMap]]:
    """Simulate frames of a plane that differ only in their noise, and estimate their depth."""
    if not 2 <= frames <= _MOST_FRAMES:
        raise InputError(f"frames={short_repr(frames)} must be from 2 to {_MOST_FRAMES}.")
    sweep = PlaneSweep(
        depths_m=(distance_m,), patterns=(texture,), noise=noise, shape=shape, seed=seed
    )
    rig = rig or Rig.paper_prototype()
    scene = Plane(depth_m=distance_m, texture=Texture(pattern=texture, seed=sweep.seed))
    clean = simulate(scene, rig, shape=sweep.shape, psf=sweep.psf)
    found: dict[str, list[DepthMap]] = {one.name: [] for one in contenders}
    for number in range(frames):
        left, right = expose_pair(clean.left, clean.right, sweep.noise, (sweep.seed, number))
        for one in contenders:
            found[one.name].append(one.estimate(left, right, rig))
    return found
