"""Two cameras of a calibration, as a rig: rectified as they are, or to be rectified."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from d3s.errors import InputError
from d3s.rig.rig import Rig
from d3s.rig.stereo_camera import LONG_BASELINE_M, RawCamera, long_baseline
from d3s.types import FloatArray

_SAME_PX = 0.01  # rows by which views may differ that count as rectified
_LEAST_FOCAL = 0.75  # smallest focal length of views, over that of the cameras
_SIDE_BY_SIDE = 0.5  # smallest share of the baseline along x
_SWAPPED = (
    "the second camera lies {distance:.3g} m to the left of the first one: the left camera goes "
    "first. Give the files in the other order; or, if one file has both cameras, say that they are "
    "swapped: --swap on the command line, swap=True in Python."
)


class Projections(NamedTuple):
    """Rectification in a file: rotations (3, 3) of both cameras, and matrices P (3, 4) of views."""

    rotations: tuple[FloatArray, FloatArray]
    matrices: tuple[FloatArray, FloatArray]


@dataclass(frozen=True, kw_only=True)
class CameraPair:
    """Two cameras as a calibration file describes them."""

    cameras: tuple[RawCamera, RawCamera]
    # From the first camera to the second one: x2 = R x1 + t, in the unit of the file. None if the
    # file has projections only.
    rotation: FloatArray | None = None
    translation: FloatArray | None = None
    projections: Projections | None = None
    unit_m: float = 1.0
    unit_is_known: bool = True  # the format, or the user, says so
    name: str = "stereo camera"

    def swapped(self) -> Self:
        """The second camera first. Its rectification is made anew."""
        if self.rotation is None or self.translation is None:
            raise InputError(
                "the files have no rotation and translation between the cameras: give the file of "
                "the left camera first, in place of swap."
            )
        return replace(
            self,
            cameras=self.cameras[::-1],
            rotation=self.rotation.T,
            translation=-self.rotation.T @ self.translation,
            projections=None,
        )

    def rig(self, **values: Any) -> Rig:
        """Rig of rectified views of the size of the left picture, of the arguments of a pinhole."""
        return Rig.of_pinhole(shape=self.cameras[0].shape, name=self.name, **values)

    def remarks(self, rig: Rig) -> tuple[str, ...]:
        """Questions about the rig that a person should look at."""
        if self.unit_is_known or rig.optics.baseline_m < LONG_BASELINE_M:
            return ()
        remedy = "If so, say --unit mm on the command line, unit_m=0.001 in Python."
        return (f"{long_baseline(rig.optics.baseline_m)} {remedy}",)


def rig_of(pair: CameraPair, *, rectified: bool = False) -> Rig:
    """Rig of two cameras, or of pictures that the projections of the file have rectified."""
    if rectified and pair.projections is None:
        raise InputError(
            "the files have no projection matrices P of rectified views, which rectified pictures "
            "need. Give raw pictures, and leave rectified away."
        )
    if rectified or pair.rotation is None or pair.translation is None:
        return _of_projections(pair, rectified=rectified)
    _check_sides(-pair.rotation.T @ pair.translation * pair.unit_m)
    if pair.projections is not None:
        return _of_projections(pair, rectified=False)
    if _is_rectified(pair, pair.rotation, pair.translation):
        return _as_it_is(pair, pair.translation)
    return _rectifying(pair, pair.rotation, pair.translation)


def _check_sides(place_m: FloatArray) -> None:
    """Refuse cameras that do not stand side by side, left one first, by the place of the second."""
    distance = float(np.linalg.norm(place_m))
    if not distance > 0:
        raise InputError("both cameras are at one place: the translation between them is 0.")
    if abs(place_m[0]) < _SIDE_BY_SIDE * distance:
        axis = "above or below" if abs(place_m[1]) > abs(place_m[2]) else "before or behind"
        raise InputError(
            f"the second camera lies {axis} the first one, at {np.round(place_m, 4).tolist()} m. "
            "They must stand side by side: turn the pictures by 90 degrees, and calibrate these."
        )
    if place_m[0] < 0:
        raise InputError(_SWAPPED.format(distance=distance))


def _is_rectified(pair: CameraPair, rotation: FloatArray, translation: FloatArray) -> bool:
    """Whether rows of the pictures agree to a hundredth of a pixel."""
    left, right = pair.cameras
    if any(one.model != "pinhole" or any(one.distortion) for one in pair.cameras):
        return False
    if left.shape != right.shape:
        return False
    focal = left.focal_lengths_px[0]
    others = np.array([left.focal_lengths_px[1], *right.focal_lengths_px])
    widths = max(left.shape) / focal  # tangent of the field
    angles = np.abs(rotation - np.eye(3)).max()
    off_axis = float(np.linalg.norm(translation[1:]) / np.linalg.norm(translation))
    rows = [
        np.abs(others - focal).max() * widths,
        abs(left.principal_point_px[1] - right.principal_point_px[1]),
        angles * focal * (1 + widths**2),
        off_axis * focal,
    ]
    return bool(max(rows) < _SAME_PX)


def _as_it_is(pair: CameraPair, translation: FloatArray) -> Rig:
    left, right = pair.cameras
    return pair.rig(
        focal_length_px=left.focal_lengths_px[0],
        baseline_m=float(np.linalg.norm(translation)) * pair.unit_m,
        principal_point_px=left.principal_point_px,
        principal_point_right_px=(right.principal_point_px[0], left.principal_point_px[1]),
    )


def _of_projections(pair: CameraPair, *, rectified: bool) -> Rig:
    """Rig whose rectified views are those of the projection matrices of the file."""
    if pair.projections is None:
        raise InputError("the files have neither rotation and translation nor projections P.")
    first, second = pair.projections.matrices
    focal = float(first[0, 0])
    others = np.array([first[1, 1], second[0, 0], second[1, 1]])
    if not focal > 0 or not np.allclose(others, focal, rtol=1e-6, atol=0):
        raise InputError(
            f"the projection matrices P have focal lengths of {focal:g}, "
            f"{', '.join(f'{one:g}' for one in others)} px: those of rectified views are equal. "
            "Are both files of one stereo calibration?"
        )
    _check_sides((first[:, 3] - second[:, 3]) / focal * pair.unit_m)
    rig = pair.rig(
        focal_length_px=focal,
        baseline_m=float(first[0, 3] - second[0, 3]) / focal * pair.unit_m,
        principal_point_px=(float(first[0, 2]), float(first[1, 2])),
        principal_point_right_px=(float(second[0, 2]), float(second[1, 2])),
    )
    return rig if rectified else _with_cameras(rig, pair.cameras, pair.projections.rotations)


def _rectifying(pair: CameraPair, rotation: FloatArray, translation: FloatArray) -> Rig:
    """Rig that rectifies: rotations of OpenCV, and views of the size of the left picture.

    One principal point for both views, so that points at infinity have disparity 0, brings the
    middles of both pictures near the middle of the views.
    """
    import cv2

    left, right = pair.cameras
    size = left.cols_px, left.rows_px
    no_distortion, column = np.zeros(4), translation.reshape(3, 1)
    found: Any = cv2.stereoRectify(
        left.matrix, no_distortion, right.matrix, no_distortion, size, rotation, column
    )
    turns = np.asarray(found[0]), np.asarray(found[1])
    crosses = [_cross(one, turn) for one, turn in zip(pair.cameras, turns, strict=True)]
    focal = _focal_length_px(pair.cameras, crosses)
    x, y = np.mean([cross[0] for cross in crosses], axis=0)
    centre = (left.cols_px - 1) / 2 - focal * x, (left.rows_px - 1) / 2 - focal * y
    rig = pair.rig(
        focal_length_px=focal,
        baseline_m=float(np.linalg.norm(translation)) * pair.unit_m,
        principal_point_px=(float(centre[0]), float(centre[1])),
    )
    return _with_cameras(rig, pair.cameras, turns)


def _focal_length_px(cameras: tuple[RawCamera, RawCamera], crosses: Sequence[FloatArray]) -> float:
    """Focal length of the views: the middles of the sides of both pictures stay in view.

    At most the mean of the cameras, since more has no more detail; and at least a share of it,
    since wide lenses would lose the detail of the middle.
    """
    left = cameras[0]
    half = np.array([left.cols_px - 1, left.rows_px - 1]) / 2
    reach = np.max([np.abs(cross[1:] - cross[0]).max(axis=0) for cross in crosses], axis=0)
    mean = float(np.mean([one.focal_lengths_px for one in cameras]))
    return float(np.clip((half / reach).min(), _LEAST_FOCAL * mean, mean))


def _cross(camera: RawCamera, turn: FloatArray) -> FloatArray:
    """Tangents (5, 2), x and y in the rectified view, of the middles of a picture and its sides."""
    import cv2

    x, y = camera.cols_px - 1.0, camera.rows_px - 1.0
    places = [(x / 2, y / 2), (0.0, y / 2), (x, y / 2), (x / 2, 0.0), (x / 2, y)]
    coefficients = np.array(camera.distortion or (0.0,) * 4)
    undistort: Any = cv2.fisheye.undistortPoints
    if camera.model == "pinhole":
        undistort = cv2.undistortPoints
    found = undistort(np.array(places)[:, None], camera.matrix, coefficients, R=turn)
    return np.asarray(found, dtype=np.float64).reshape(-1, 2)


def _with_cameras(
    rig: Rig, cameras: tuple[RawCamera, RawCamera], turns: tuple[FloatArray, FloatArray]
) -> Rig:
    left, right = (
        camera.replace(rotation=tuple(map(tuple, turn.tolist())))
        for camera, turn in zip(cameras, turns, strict=True)
    )
    return rig.replace(stereo=rig.stereo and rig.stereo.replace(left=left, right=right))
