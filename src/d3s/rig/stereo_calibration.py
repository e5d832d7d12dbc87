"""Calibration files of stereo data sets, as rigs: Middlebury, ETH3D and KITTI.

Middlebury and ETH3D have one `calib.txt` for each scene, with lines such as `cam0=[f 0 cx; ...]`,
`doffs=32.8` and `baseline=193.0` (in mm). KITTI has projection matrices, in lines such as
`P_rect_02: ...`, with metres. All describe a rectified pair: a point with the disparity d has the
depth Z = f B / (d + doffs).
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from d3s.errors import InputError, RigError
from d3s.record import short_repr
from d3s.rig.optics import FARTHEST_M
from d3s.rig.rig import Rig

__all__ = ["FARTHEST_M", "StereoCalibration", "read_stereo_calibration"]

_SAME_PX = 0.5  # difference of doffs and principal points, which are rounded
_LARGEST_FILE = 100_000  # bytes; these files have a few lines
# Names of the two projections of KITTI: of the colour cameras before the grey ones, of the raw data
# and of the stereo benchmarks before those of the object and odometry benchmarks.
_KITTI_PAIRS = ("P_rect_02", "P_rect_03"), ("P_rect_00", "P_rect_01"), ("P2", "P3"), ("P0", "P1")


@dataclass(frozen=True, kw_only=True)
class StereoCalibration:
    """Rectified stereo pair as a calibration file describes it."""

    rig: Rig  # pinhole, with `disparity_offset_px` of `-doffs`
    disparities: int | None = None  # whole disparities from 0 that contain the scene, if known
    shape: tuple[int, int] | None = None  # rows and columns of a view, if known
    format: str = "calibration of a stereo data set"

    def depth_range_m(self, disparities: int) -> tuple[float, float]:
        """Nearest and farthest depth of the disparities from 0 to `disparities` - 1.

        The farthest is `FARTHEST_M` if a disparity of 0 is at infinity, or beyond.
        """
        return self.rig.optics.depth_range_m((0.0, disparities - 1.0))


def read_stereo_calibration(path: str | os.PathLike[str]) -> StereoCalibration:
    """Read a calibration file of Middlebury 2014, ETH3D or KITTI; its lines tell which it is."""
    lines = _lines(Path(path))
    try:
        if "cam0" in lines:
            return _middlebury(lines, name=Path(path).parent.name or "stereo pair")
        for names in _KITTI_PAIRS:
            if names[0] in lines:
                return _kitti(lines, names, name=f"KITTI {Path(path).stem}")
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except RigError as error:
        raise RigError(*error.problems, path=path) from error
    raise InputError(
        f"{path} is no calibration file of a stereo data set: it has neither cam0=[...] as those "
        f"of Middlebury and ETH3D, nor {_KITTI_PAIRS[0][0]}: as those of KITTI."
    )


def _lines(path: Path) -> dict[str, str]:
    """Values of the lines `name=value` or `name: value`, by name."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_FILE).decode("utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check the name.") from error
    pairs = {}
    for line in text.splitlines():
        for sign in ("=", ":"):
            name, found, value = line.partition(sign)
            if found and name.strip().isidentifier():
                pairs[name.strip()] = value.strip()
                break
    return pairs


def _middlebury(lines: Mapping[str, str], name: str) -> StereoCalibration:
    left, right = (_numbers(lines, camera, 9) for camera in ("cam0", "cam1"))
    # doffs is the difference of the principal points, which the matrices have as well.
    offset_px = _number(lines, "doffs") if "doffs" in lines else right[2] - left[2]
    if abs(right[2] - left[2] - offset_px) > _SAME_PX:
        raise InputError(
            f"has doffs={offset_px:g}, and the principal points of cam0 and cam1 differ by "
            f"{right[2] - left[2]:g} px. Are cam0 and cam1 swapped? Get the file again."
        )
    size = [_count(lines, side) for side in ("height", "width")]
    disparities = _count(lines, "ndisp")
    rows, cols = size
    shape = None if rows is None or cols is None else (rows, cols)
    return StereoCalibration(
        rig=Rig.of_pinhole(
            focal_length_px=left[0],
            baseline_m=_number(lines, "baseline") / 1000,
            disparity_offset_px=-offset_px,
            principal_point_px=(left[2], left[5]),
            shape=shape,
            disparity_range_px=None if disparities is None else (0.0, max(disparities - 1.0, 1.0)),
            name=name[:100],
        ),
        disparities=disparities,
        shape=shape,
        format="calib.txt of Middlebury or ETH3D",
    )


def _kitti(lines: Mapping[str, str], names: tuple[str, str], name: str) -> StereoCalibration:
    left, right = (_numbers(lines, camera, 12) for camera in names)
    if not left[0] > 0:
        raise InputError(f"{names[0]} has a focal length of {left[0]:g} px. Get the file again.")
    size = f"S_rect_{names[0][-2:]}"
    shape = None
    if size in lines:
        cols, rows = _numbers(lines, size, 2)
        shape = int(rows), int(cols)
    return StereoCalibration(
        rig=Rig.of_pinhole(
            focal_length_px=left[0],
            baseline_m=(left[3] - right[3]) / left[0],
            disparity_offset_px=left[2] - right[2],
            principal_point_px=(left[2], left[6]),
            shape=shape,
            name=name[:100],
        ),
        shape=shape,
        format="calibration of KITTI",
    )


def _numbers(lines: Mapping[str, str], name: str, count: int) -> list[float]:
    """Numbers of a matrix, row by row."""
    if name not in lines:
        raise InputError(f"has no {name}. Get the file again from the data set.")
    words = lines[name].replace(";", " ").replace(",", " ").strip("[] ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise InputError(
            f"{name}={short_repr(lines[name])} must be a matrix of {count} numbers. "
            "Get the file again from the data set."
        )
    return numbers


def _number(lines: Mapping[str, str], name: str) -> float:
    return _numbers(lines, name, 1)[0]


def _count(lines: Mapping[str, str], name: str) -> int | None:
    """Whole number, at least 1; None if the file has no such line."""
    if name not in lines:
        return None
    number = _number(lines, name)
    if number < 1 or number != int(number):
        raise InputError(f"{name}={number:g} must be a whole number, at least 1.")
    return int(number)
