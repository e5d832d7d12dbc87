"""Calibrations of stereo cameras in the files of other programs, as rigs."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from d3s.errors import D3SError, InputError, RigError
from d3s.rig.imports.camera_formats import (
    is_kalibr,
    is_oak,
    is_realsense,
    is_ros,
    read_kalibr,
    read_oak,
    read_realsense,
    read_ros,
)
from d3s.rig.imports.data_sets import is_of_data_set, read_stereo_calibration
from d3s.rig.imports.opencv_files import is_opencv, read_opencv
from d3s.rig.imports.pair import CameraPair, rig_of
from d3s.rig.imports.source import CalibrationFile, read_source
from d3s.rig.rig import Rig

__all__ = ["ImportedRig", "read_rig"]

_UNITS_M = 1e-6, 1e3
_Reader = Callable[[CalibrationFile], CameraPair]
_OF_ONE_FILE: dict[str, tuple[Callable[[CalibrationFile], bool], _Reader]] = {
    "camera chain of Kalibr": (is_kalibr, read_kalibr),
    "calibration of an OAK camera": (is_oak, read_oak),
    "intrinsics of a RealSense camera": (is_realsense, read_realsense),
}


@dataclass(frozen=True, kw_only=True)
class ImportedRig:
    """Rig of calibration files, their format, and what a person should look at."""

    rig: Rig
    format: str
    remarks: tuple[str, ...] = ()


def read_rig(
    paths: Sequence[str | os.PathLike[str]],
    *,
    rectified: bool = False,
    swap: bool = False,
    unit_m: float | None = None,
    shape: tuple[int, int] | None = None,
    fisheye: bool = False,
) -> ImportedRig:
    """Read calibration files, or a rig file; `Rig.from_file` has the parameters and exceptions."""
    if not paths:
        raise InputError("there is no file to read a camera from. Name a calibration file.")
    if unit_m is not None and not _UNITS_M[0] <= unit_m <= _UNITS_M[1]:
        raise InputError(f"unit_m={unit_m} must be in metres: 0.001 for millimetres.")
    if any(Path(os.fsdecode(path)).suffix.lower() == ".toml" for path in paths):
        if len(paths) > 1:
            raise InputError(
                f"{paths[0]} and {paths[1]}: a rig file has the whole camera. Give it alone."
            )
        return ImportedRig(rig=Rig.load(paths[0]), format="rig file")
    lines = next((path for path in paths if is_of_data_set(path)), None)
    if lines is not None:
        if len(paths) > 1:
            raise InputError(f"{lines}: has both views of a data set. Give this file alone.")
        if swap or unit_m is not None:
            raise InputError(
                f"{lines}: has rectified views, their order and their unit: leave swap and unit."
            )
        rig, name = read_stereo_calibration(lines)
        return ImportedRig(rig=rig, format=name)
    sources = [read_source(path) for path in paths]
    where = " and ".join(str(one.path) for one in sources)
    try:
        pair, name = _pair(sources, shape=shape, fisheye=fisheye, swap=swap)
        if unit_m is not None:
            pair = replace(pair, unit_m=unit_m, unit_is_known=True)
        rig = rig_of(pair, rectified=rectified)
    except RigError as error:
        raise RigError(*error.problems, path=where) from error
    except D3SError as error:
        known = any(str(error).startswith(str(one.path)) for one in sources)
        raise InputError(str(error) if known else f"{where}: {error}") from error
    return ImportedRig(rig=rig, format=name, remarks=pair.remarks(rig))


def _pair(
    sources: Sequence[CalibrationFile], *, shape: tuple[int, int] | None, fisheye: bool, swap: bool
) -> tuple[CameraPair, str]:
    """Cameras of the files, and the name of their format."""
    first = sources[0]
    if all(map(is_ros, sources)):
        return read_ros(sources[::-1] if swap else sources), "CameraInfo of ROS"
    for name, (is_format, read) in _OF_ONE_FILE.items():
        if is_format(first):
            if len(sources) > 1:
                raise first.error(f"is the {name}, which has both cameras. Give this file alone.")
            pair = read(first)
            return pair.swapped() if swap else pair, name
    for source in sources:
        if not is_opencv(source):
            raise source.unknown()
    pair = read_opencv(sources, shape=shape, fisheye=fisheye)
    return pair.swapped() if swap else pair, "calibration of OpenCV"
