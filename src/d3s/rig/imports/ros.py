"""CameraInfo of ROS: files of `camera_calibration`, or messages as `ros2 topic echo` prints them.

Each camera has its file. The rectification R and the projection P of both make the rectified views;
the right projection has the baseline in metres.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from d3s.rig.imports.pair import CameraPair, Projections
from d3s.rig.imports.source import Source
from d3s.rig.imports.values import matrix, numbers, picture_size, raw_camera
from d3s.rig.stereo import RawCamera
from d3s.types import FloatArray

# Names in a file, and of the fields of a message in ROS 1 and in ROS 2.
_NAMES = {
    "K": ("camera_matrix", "K", "k"),
    "D": ("distortion_coefficients", "D", "d"),
    "R": ("rectification_matrix", "R", "r"),
    "P": ("projection_matrix", "P", "p"),
    "width": ("image_width", "width"),
    "height": ("image_height", "height"),
}
_FISHEYE = {
    "plumb_bob": False,
    "rational_polynomial": False,
    "": False,
    "none": False,
    "equidistant": True,
    "fisheye": True,
}


def is_ros(source: Source) -> bool:
    """Whether a file is a CameraInfo."""
    values = source.values or {}
    return _value(values, "P") is not None and _value(values, "K") is not None


def read_ros(sources: Sequence[Source]) -> CameraPair:
    """Read the CameraInfo of the left and of the right camera; lengths are metres."""
    if len(sources) != 2:
        raise sources[0].error(
            f"is one of {len(sources)} CameraInfo files, and a stereo camera has two. Give the "
            "file of the left camera, then that of the right one."
        )
    left, right = (_camera(source) for source in sources)
    turns = [_matrix(source, "R", (3, 3)) for source in sources]
    views = [_matrix(source, "P", (3, 4)) for source in sources]
    if not any(view[:, 3].any() for view in views):
        raise sources[1].error(
            "has no baseline: its projection P ends with 0, as that of the left camera does. Are "
            "these files of a stereo calibration, and not of two cameras on their own?"
        )
    return CameraPair(
        cameras=(left, right),
        projections=Projections((turns[0], turns[1]), (views[0], views[1])),
        name=str((sources[0].values or {}).get("camera_name") or sources[0].path.stem)[:100],
    )


def _value(values: Mapping[str, Any], name: str) -> Any:
    return next((values[one] for one in _NAMES[name] if one in values), None)


def _matrix(source: Source, name: str, shape: tuple[int, int]) -> FloatArray:
    return matrix(source, _NAMES[name][0], _value(source.values or {}, name), shape)


def _camera(source: Source) -> RawCamera:
    values = source.values or {}
    model = str(values.get("distortion_model") or "").lower()
    if model not in _FISHEYE:
        known = ", ".join(name for name in _FISHEYE if name)
        raise source.error(f"distortion_model={model!r} is not supported: {known} are.")
    coefficients = numbers(_value(values, "D"))
    if coefficients is None:
        raise source.error("has no distortion_coefficients. Write zeros if there is none.")
    size = _value(values, "width"), _value(values, "height")
    if None in size:
        raise source.error("has no image_width and image_height.")
    return raw_camera(
        source,
        _NAMES["K"][0],
        _matrix(source, "K", (3, 3)),
        size=picture_size(source, size),
        distortion=coefficients,
        fisheye=_FISHEYE[model],
    )
