"""Calibration files of stereo data sets, as rigs: Middlebury, ETH3D and KITTI.

Middlebury and ETH3D have one `calib.txt` for each scene, with lines such as `cam0=[f 0 cx; ...]`,
`doffs=32.8` and `baseline=193.0` (in mm). KITTI has projection matrices, in lines such as
`P_rect_02: ...`, with metres. All describe a rectified pair: a point with the disparity d has the
depth Z = f B / (d + doffs).
"""

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from d3s.errors import InputError, RigError
from d3s.record import short_repr
from d3s.rig.imports.source import text_of
from d3s.rig.rig import Rig

_SAME_PX = 0.5  # difference of doffs and principal points, which are rounded
_LINES = re.compile(
    r"^\s*(cam0\s*=|P_rect_0\d\s*:|P[0-3]\s*:(\s+[-+\d.eE]+){12}\s*$)", re.MULTILINE
)
# Names of the two projections of KITTI: of the colour cameras before the grey ones, of the raw data
# and of the stereo benchmarks before those of the object and odometry benchmarks.
_KITTI_PAIRS = ("P_rect_02", "P_rect_03"), ("P_rect_00", "P_rect_01"), ("P2", "P3"), ("P0", "P1")


def is_of_data_set(path: str | os.PathLike[str]) -> bool:
    """Whether a file has lines of these data sets."""
    return _LINES.search(text_of(path)) is not None


def read_stereo_calibration(path: str | os.PathLike[str]) -> tuple[Rig, str]:
    """Rig of a calibration file of Middlebury 2014, ETH3D or KITTI, and the name of its format.

    Its disparity offset is minus `doffs`.
    """
    lines = _lines(text_of(path))
    try:
        if "cam0" in lines:
            rig = _middlebury(lines, name=Path(path).parent.name or "stereo pair")
            return rig, "calib.txt of Middlebury or ETH3D"
        for names in _KITTI_PAIRS:
            if names[0] in lines:
                return _kitti(lines, names, name=f"KITTI {Path(path).stem}"), "calibration of KITTI"
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except RigError as error:
        raise RigError(*error.problems, path=path) from error
    raise InputError(
        f"{path} is no calibration file of a stereo data set: it has neither cam0=[...] as those "
        f"of Middlebury and ETH3D, nor {_KITTI_PAIRS[0][0]}: as those of KITTI."
    )


def _lines(text: str) -> dict[str, str]:
    """Values of the lines `name=value` or `name: value`, by name."""
    found = (re.match(r"\s*([^\W\d]\w*)\s*[=:](.*)", line) for line in text.splitlines())
    return {one[1]: one[2].strip() for one in found if one is not None}


def _middlebury(lines: Mapping[str, str], name: str) -> Rig:
    left, right = (_numbers(lines, camera, 9) for camera in ("cam0", "cam1"))
    # doffs is the difference of the principal points, which the matrices have as well.
    offset_px = _number(lines, "doffs") if "doffs" in lines else right[2] - left[2]
    if abs(right[2] - left[2] - offset_px) > _SAME_PX:
        raise InputError(
            f"has doffs={offset_px:g}, and the principal points of cam0 and cam1 differ by "
            f"{right[2] - left[2]:g} px. Are cam0 and cam1 swapped? Get the file again."
        )
    rows, cols, disparities = (_count(lines, one) for one in ("height", "width", "ndisp"))
    return Rig.of_pinhole(
        focal_length_px=left[0],
        baseline_m=_number(lines, "baseline") / 1000,
        disparity_offset_px=-offset_px,
        principal_point_px=(left[2], left[5]),
        shape=None if rows is None or cols is None else (rows, cols),
        disparity_range_px=None if disparities is None else (0.0, max(disparities - 1.0, 1.0)),
        name=name[:100],
    )


def _kitti(lines: Mapping[str, str], names: tuple[str, str], name: str) -> Rig:
    left, right = (_numbers(lines, camera, 12) for camera in names)
    if not left[0] > 0:
        raise InputError(f"{names[0]} has a focal length of {left[0]:g} px. Get the file again.")
    size = f"S_rect_{names[0][-2:]}"
    cols, rows = map(int, _numbers(lines, size, 2)) if size in lines else (0, 0)
    return Rig.of_pinhole(
        focal_length_px=left[0],
        baseline_m=(left[3] - right[3]) / left[0],
        disparity_offset_px=left[2] - right[2],
        principal_point_px=(left[2], left[6]),
        shape=(rows, cols) if size in lines else None,
        name=name[:100],
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
