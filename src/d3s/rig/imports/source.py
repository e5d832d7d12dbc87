"""Text of calibration files: which kind it is, and its values by name."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d3s.errors import InputError

_LARGEST_FILE = 1_000_000  # bytes; calibration files have a few thousand
_LINES = re.compile(
    r"^\s*(cam0\s*=|P_rect_0\d\s*:|P[0-3]\s*:(\s+[-+\d.eE]+){12}\s*$)", re.MULTILINE
)
_KNOWN = (
    "Known are calib.txt of Middlebury, ETH3D and KITTI, YAML or XML of OpenCV, camchain YAML of "
    "Kalibr, CameraInfo YAML of ROS, JSON of RealSense and OAK cameras, and rig files (.toml)."
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Values of a calibration file by name; matrices of OpenCV are tables of rows, cols and data.

    There are none if the file has lines `name=value` or `name: value`, which
    `d3s.rig.stereo_calibration` reads.
    """

    path: Path
    values: Mapping[str, Any] | None

    def error(self, words: str) -> InputError:
        """Error that names the file."""
        return InputError(f"{self.path}: {words}")


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read a calibration file of any kind but a rig file."""
    where = Path(os.fsdecode(path))
    text = _text(where)
    if _LINES.search(text):
        return Source(path=where, values=None)
    try:
        values = _parsed(text)
    except (ValueError, RecursionError) as error:
        words = " ".join(str(error).split())[:200]
        raise InputError(f"{where} cannot be read as a calibration file: {words}.") from error
    if not isinstance(values, dict) or not values:
        raise InputError(f"{where} is no calibration file: it has no values by name. {_KNOWN}")
    return Source(path=where, values=values)


def unknown(source: Source) -> InputError:
    """Error for a file whose values are of no known format."""
    names = ", ".join(map(str, list(source.values or ())[:8]))
    return source.error(
        f"is no calibration of a stereo camera that is known: it has {names}. {_KNOWN}"
    )


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Name the calibration file in it.")
        with path.open("rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check the name.") from error
    except ValueError as error:  # a zero byte in the path
        raise InputError(f"{path} cannot be read: {error}. Check the name.") from error
    if len(raw) > _LARGEST_FILE or b"\0" in raw:
        raise InputError(f"{path} is no calibration file: it is no short text. {_KNOWN}")
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
        documents = [one for one in yaml.load_all(body, Loader=loader) if one is not None]
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return documents[0] if documents else None  # `ros2 topic echo` prints many


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
