"""Text of calibration files: its values by name, and numbers, matrices and cameras among them."""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.errors import InputError
from d3s.record import short_repr
from d3s.rig.stereo_camera import RawCamera
from d3s.types import FloatArray

_LARGEST_FILE = 1_000_000  # bytes; calibration files have a few thousand
_SKEW_PX = 1e-6
_KNOWN = (
    "Known are calib.txt of Middlebury, ETH3D and KITTI, YAML or XML of OpenCV, camchain YAML of "
    "Kalibr, CameraInfo YAML of ROS, JSON of RealSense and OAK cameras, and rig files (.toml)."
)


class CalibrationFile(NamedTuple):
    """Values of a calibration file by name; OpenCV matrices are tables of rows, cols, data."""

    path: Path
    values: Mapping[str, Any]

    def error(self, words: str) -> InputError:
        """Error that names the file."""
        return InputError(f"{self.path}: {words}")

    def unknown(self) -> InputError:
        """Error for a file whose values are of no known format."""
        names = ", ".join(map(str, list(self.values)[:8]))
        return self.error(
            f"is no calibration of a stereo camera that is known: it has {names}. {_KNOWN}"
        )

    def matrix(self, name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
        """Matrix of a shape, row by row, of a value that the file has under this name, or None."""
        if value is None:
            raise self.error(f"has no {name}. Is it the whole calibration of a stereo camera?")
        found = numbers(value)
        if found is None or len(found) != math.prod(shape):
            words = " x ".join(map(str, shape))
            raise self.error(f"{name}={short_repr(value)} must have {words} numbers.")
        return np.array(found).reshape(shape)

    def camera(
        self,
        name: str,
        matrix: FloatArray,
        *,
        size: Any,
        distortion: Sequence[float] = (),
        fisheye: bool = False,
    ) -> RawCamera:
        """Camera of a matrix K (3, 3) of this name, and of width and height of its pictures.

        The coefficients are those of OpenCV, of its equidistant model if `fisheye`.
        """
        below = matrix[[1, 2, 2, 2], [0, 0, 1, 2]]
        if not np.allclose(below, (0, 0, 0, 1), rtol=0, atol=_SKEW_PX):
            raise self.error(f"{name} is no camera matrix: it must be [fx 0 cx; 0 fy cy; 0 0 1].")
        if abs(matrix[0, 1]) > _SKEW_PX:
            raise self.error(
                f"{name} has a skew of {matrix[0, 1]:g} px, which is not supported. Calibrate "
                "without skew."
            )
        sides = numbers(size)
        if sides is None or len(sides) != 2 or any(one < 1 or one != int(one) for one in sides):
            raise self.error(
                f"has a picture size of {short_repr(size)}: it must be two whole numbers, "
                "width and height."
            )
        coefficients = tuple(float(one) for one in distortion) if any(distortion) else ()
        if coefficients:  # some programs write k1 alone
            coefficients += (0.0,) * (4 - len(coefficients))
        return RawCamera(
            model="fisheye" if fisheye else "pinhole",
            rows_px=int(sides[1]),
            cols_px=int(sides[0]),
            focal_lengths_px=(float(matrix[0, 0]), float(matrix[1, 1])),
            principal_point_px=(float(matrix[0, 2]), float(matrix[1, 2])),
            distortion=coefficients,
        )


def read_source(path: str | os.PathLike[str]) -> CalibrationFile:
    """Read the values of a calibration file in JSON, YAML or XML."""
    where, text = Path(os.fsdecode(path)), text_of(path)
    try:
        values = _parsed(text)
    except (ValueError, RecursionError) as error:
        words = " ".join(str(error).split())[:200]
        raise InputError(f"{where} cannot be read as a calibration file: {words}.") from error
    if not isinstance(values, dict) or not values:
        raise InputError(f"{where} is no calibration file: it has no values by name. {_KNOWN}")
    return CalibrationFile(where, values)


def text_of(path: str | os.PathLike[str]) -> str:
    """Text of a calibration file of any kind but a rig file."""
    where = Path(os.fsdecode(path))
    try:
        if where.is_dir():
            raise InputError(f"{where} is a folder. Name the calibration file in it.")
        with where.open("rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}. Check the name.") from error
    except ValueError as error:  # a zero byte in the path
        raise InputError(f"{where} cannot be read: {error}. Check the name.") from error
    if len(raw) > _LARGEST_FILE or b"\0" in raw:
        raise InputError(f"{where} is no calibration file: it is no short text. {_KNOWN}")
    return raw.decode("utf-8-sig", errors="replace")


def _parsed(text: str) -> Any:
    """Values of JSON, of XML of OpenCV, or of YAML with or without OpenCV's header."""
    start = text.lstrip()
    if start.startswith("{"):
        return json.loads(text)
    if start.startswith("<"):
        return _parsed_xml(text)
    import yaml

    def table(loader: Any, node: Any) -> Any:
        return loader.construct_mapping(node, deep=True)

    # A safe loader, which makes plain values only, and knows the matrices of OpenCV.
    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("tag:yaml.org,2002:opencv-matrix", table)
    body = re.sub(r"\A%YAML:?\s*1\.\d[^\n]*\n", "", start)  # OpenCV's header is no proper YAML
    try:
        documents = (one for one in yaml.load_all(body, Loader=loader) if one is not None)
        return next(documents, None)  # `ros2 topic echo` prints many
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _parsed_xml(text: str) -> Any:
    import cv2

    if "opencv_storage" not in text[:1000]:
        raise ValueError("XML of OpenCV begins with <opencv_storage>")
    flags = cv2.FILE_STORAGE_READ | cv2.FILE_STORAGE_MEMORY
    try:
        storage = cv2.FileStorage(text, flags)
        return {name: _node(storage.getNode(name)) for name in storage.root().keys()}  # noqa: SIM118
    except cv2.error as error:
        raise ValueError(str(error)) from error


def _node(node: Any) -> Any:
    """Value of a node of OpenCV's storage."""
    if node.isString():
        return node.string()
    if node.isReal() or node.isInt():
        return node.real()
    if node.isSeq():
        return [_node(node.at(index)) for index in range(node.size())]
    matrix = node.mat()
    if matrix is None:
        return {name: _node(node.getNode(name)) for name in node.keys()}  # noqa: SIM118
    return {"data": matrix.ravel().tolist()}


def numbers(value: Any) -> list[float] | None:
    """Numbers of a value: of a list, nested or not, a matrix of OpenCV, or one number.

    None if it is anything else, or has a number that is not finite.
    """
    if isinstance(value, Mapping):
        value = value.get("data")
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [numbers(one) for one in value]
        if any(part is None for part in parts):
            return None
        return [number for part in parts for number in part or ()]
    try:
        number = float(value)  # YAML has 1e-3, without a dot, as text
    except (TypeError, ValueError):
        return None
    return [number] if math.isfinite(number) else None


def first_of(values: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Value of the first of these names that there is; None if there is none."""
    return next((values[name] for name in names if name in values), None)
