"""Simulated camera and board: places on the board in its views, and raw frames."""

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import d3s
from d3s.calibrate.anchors import Anchors, find_anchors
from d3s.calibrate.fields import find_fields
from d3s.calibrate.frames import Captures
from d3s.calibrate.matches import Matches, PairMatches, find_matches
from d3s.calibrate.rectification import Rectification, find_rectification
from d3s.rig import LensMaps
from small_camera import SMALL_DISTANCES_M, SMALL_LAYOUT, SMALL_MOUNTS, small_rig

FOCAL_PX, BASELINE_M = 6050.0, 3.84e-3
DISTANCES_M = tuple(np.round(np.geomspace(0.25, 1.9, 16), 3).tolist())


@dataclass(frozen=True)
class Camera:
    """Two misaligned lenses, and a board that moves away on a rail."""

    anchors_px: tuple[tuple[float, float], ...] = ((2899.5, 1073.5), (928.5, 1084.5))
    scales: tuple[float, float] = (1.003, 0.997)
    rolls_rad: tuple[float, float] = (0.005, -0.007)
    slopes: tuple[float, float] = (0.007, -0.005)  # dZ/dX and dZ/dY of the board
    distances_m: tuple[float, ...] = DISTANCES_M
    noise_px: float = 0.02
    features: int = 300
    field_radius_px: float = 900.0
    distortion: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,) * 4, (0.0,) * 4)
    third_per_dpt: tuple[float, float] = (0.0, 0.0)  # change of the third order with 1/Z
    bend_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the board: X², XY, Y²
    sway_m: float = 0.0  # standard deviation of the board perpendicular to its rail
    seed: int = 0
    aside_m: dict[int, float] = field(
        default_factory=dict, hash=False
    )  # sideways offset of the board, by frame

    def but(self, **changes) -> "Camera":
        return replace(self, **changes)

    @property
    def focal_baseline_px_m(self) -> float:
        return FOCAL_PX * BASELINE_M * self.scales[0]

    def lens_maps(self, frame: int) -> LensMaps:
        """Distortion of both lenses for points as far as the board."""
        middle_dpt = np.median(1 / np.array(self.distances_m))
        further_dpt = 1 / self.distances_m[frame] - middle_dpt
        left, right = (
            (numbers[0] + float(per_dpt * further_dpt), *numbers[1:])
            for numbers, per_dpt in zip(self.distortion, self.third_per_dpt, strict=True)
        )
        return LensMaps(
            field_radius_px=self.field_radius_px, distortion_left=left, distortion_right=right
        )

    def _sway(self) -> np.ndarray:
        sway = np.random.default_rng(99).normal(0, 1, (len(self.distances_m), 2)) * self.sway_m
        for frame, aside in self.aside_m.items():
            sway[frame, 0] += aside
        return sway

    def pixels(self, points_m: np.ndarray, frame: int, view: int) -> np.ndarray:
        """Pixels of points (X, Y) of the board in a view, in the raw frame."""
        points = points_m + self._sway()[frame]
        x, y = points_m.T
        bend = np.stack([x * x, x * y, y * y], axis=1) @ np.array(self.bend_per_m)
        depth = self.distances_m[frame] + points_m @ np.array(self.slopes) + bend
        rays = (points - (BASELINE_M * view, 0.0)) / depth[:, np.newaxis] * FOCAL_PX
        cos, sin = np.cos(self.rolls_rad[view]), np.sin(self.rolls_rad[view])
        turned = rays @ np.array([[cos, -sin], [sin, cos]]).T
        away = self.scales[view] * turned / self.field_radius_px
        moved = self.lens_maps(frame).distorted(view, *away.T).T
        return np.array(self.anchors_px[view]) + self.field_radius_px * moved

    def points_m(self, frame: int, count: int = 160, spread_px: float = 850.0) -> np.ndarray:
        """Random points of the board over the whole picture of a frame."""
        rng = np.random.default_rng((self.seed, frame))
        reach_m = spread_px / FOCAL_PX * self.distances_m[frame]
        return rng.uniform(-reach_m, reach_m, (count, 2))

    def _pair(self, frames: tuple[int, int], views: tuple[int, int]) -> PairMatches:
        points = self.points_m(frames[0])
        rng = np.random.default_rng((self.seed, *frames, *views))
        first, second = (self.pixels(points, *at) for at in zip(frames, views, strict=True))
        # There are more features than windows, with larger errors.
        seen = self.points_m(frames[0], count=self.features)
        features = [
            self.pixels(seen, *at) + rng.normal(0, 20 * self.noise_px, seen.shape)
            for at in zip(frames, views, strict=True)
        ]
        return PairMatches(
            first=frames[0],
            second=frames[1],
            first_px=first,
            second_px=second + rng.normal(0, self.noise_px, second.shape),
            sigma_px=np.full(len(points), self.noise_px),
            features_first_px=features[0],
            features_second_px=features[1],
            turn_rad=0.0,
            detail_per_px2=np.full(len(points), 0.05),
        )

    def matches(self) -> Matches:
        frames = range(len(self.distances_m))
        left, right = (
            tuple(self._pair(pair, (view, view)) for pair in pairwise(frames)) for view in (0, 1)
        )
        across = tuple(self._pair((frame, frame), (0, 1)) for frame in frames)
        return Matches(left, right, across, tuple(f"{frame}.png" for frame in frames), {})

    def steps(self) -> tuple[Matches, Anchors, Rectification]:
        """Matches, anchors and rectification of this camera, computed once."""
        return _steps(self)


@cache
def _steps(camera: Camera) -> tuple[Matches, Anchors, Rectification]:
    matches = camera.matches()
    anchors = find_anchors(matches)
    return matches, anchors, find_rectification(matches, anchors)


@pytest.fixture
def camera() -> Camera:
    return Camera()


def captures_of_images(images, distances_m) -> Captures:
    return Captures(
        names=tuple(f"board_{number}.png" for number in range(len(images))),
        distances_m=tuple(distances_m),
        shape=images[0].shape,
        source=images.__getitem__,
    )


@pytest.fixture(scope="session")
def small_frames() -> list[d3s.RawFrame]:
    """Raw frames of a tilted board on a small sensor."""
    return [
        d3s.simulate_raw(
            d3s.TiltedPlane(
                depth_m=depth_m, tilt_x_rad=0.01, tilt_y_rad=-0.006, texture="calibration"
            ),
            small_rig(),
            noise=0.01,
            seed=number,
            layout=SMALL_LAYOUT,
            mounts=SMALL_MOUNTS,
        )
        for number, depth_m in enumerate(SMALL_DISTANCES_M)
    ]


@pytest.fixture(scope="session")
def small_captures(small_frames) -> Captures:
    return captures_of_images([frame.image for frame in small_frames], SMALL_DISTANCES_M)


@pytest.fixture(scope="session")
def small_matches(small_captures) -> Matches:
    return find_matches(small_captures, find_fields(small_captures))


@pytest.fixture(scope="session")
def as_captures():
    return captures_of_images
