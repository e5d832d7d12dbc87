"""Cameras of Kalibr, ROS, OAK and RealSense.

A camera chain of Kalibr, `camchain.yaml`, has `cam0` and `cam1`. CameraInfo of ROS has a file for
each camera, of `camera_calibration`, or messages as `ros2 topic echo` prints them: the
rectification R and the projection P of both make the rectified views, and the right projection has
the baseline in metres. An OAK writes its memory as JSON with
`CalibrationHandler.eepromToJsonFile`, lengths in centimetres. A RealSense has no file of its own:
the fields of `rs.intrinsics` and `rs.extrinsics` are expected as JSON, under names such as
`infra1`, `infra2` and `extrinsics`, lengths in metres.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from d3s.rig.imports.pair import CameraPair, Projections
from d3s.rig.imports.source import (
    CalibrationFile,
    first_of,
    matrix,
    numbers,
    picture_size,
    raw_camera,
)
from d3s.rig.stereo_camera import RawCamera
from d3s.types import FloatArray

_KALIBR_FISHEYE = {"radtan": False, "none": False, "equidistant": True, "equi": True}


def is_kalibr(source: CalibrationFile) -> bool:
    """Whether a file is a camera chain of Kalibr."""
    camera = (source.values or {}).get("cam0")
    return isinstance(camera, Mapping) and "intrinsics" in camera


def read_kalibr(source: CalibrationFile) -> CameraPair:
    """Read cam0 and cam1 of a chain; lengths are metres."""
    values = source.values or {}
    tables = [values.get(name) for name in ("cam0", "cam1")]
    if not all(isinstance(table, Mapping) for table in tables):
        raise source.error(
            "has no cam1. A stereo camera has two: calibrate them together with Kalibr."
        )
    cameras = [
        _kalibr_camera(source, f"cam{index}", table) for index, table in enumerate(tables) if table
    ]
    placement = (tables[1] or {}).get("T_cn_cnm1")
    turn = matrix(source, "cam1.T_cn_cnm1", placement, (4, 4))
    return CameraPair(
        cameras=(cameras[0], cameras[1]),
        rotation=np.ascontiguousarray(turn[:3, :3]),
        translation=turn[:3, 3].copy(),
        name=source.path.stem[:100] or "camchain",
    )


def _kalibr_camera(source: CalibrationFile, name: str, table: Mapping[str, Any]) -> RawCamera:
    model = str(table.get("camera_model", "pinhole"))
    if model != "pinhole":
        raise source.error(
            f"{name}.camera_model={model!r} is not supported: pinhole is. Calibrate with "
            "pinhole-radtan, or with pinhole-equi for a wide lens."
        )
    distortion = str(table.get("distortion_model", "none")).lower()
    if distortion not in _KALIBR_FISHEYE:
        raise source.error(
            f"{name}.distortion_model={distortion!r} is not supported: radtan, equidistant and "
            "none are."
        )
    f_x, f_y, c_x, c_y = matrix(source, f"{name}.intrinsics", table.get("intrinsics"), (4,))
    coefficients = numbers(table.get("distortion_coeffs", []))
    if coefficients is None:
        raise source.error(f"{name}.distortion_coeffs must be numbers.")
    if "resolution" not in table:
        raise source.error(f"has no {name}.resolution.")
    return raw_camera(
        source,
        f"{name}.intrinsics",
        np.array([[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]]),
        size=picture_size(source, table["resolution"]),
        distortion=() if distortion == "none" else coefficients,
        fisheye=_KALIBR_FISHEYE[distortion],
    )


# Names in a file, and of the fields of a message in ROS 1 and in ROS 2.
_ROS_NAMES = {
    "K": ("camera_matrix", "K", "k"),
    "D": ("distortion_coefficients", "D", "d"),
    "R": ("rectification_matrix", "R", "r"),
    "P": ("projection_matrix", "P", "p"),
    "width": ("image_width", "width"),
    "height": ("image_height", "height"),
}
_ROS_FISHEYE = {
    "plumb_bob": False,
    "rational_polynomial": False,
    "": False,
    "none": False,
    "equidistant": True,
    "fisheye": True,
}


def is_ros(source: CalibrationFile) -> bool:
    """Whether a file is a CameraInfo."""
    values = source.values or {}
    return _ros_value(values, "P") is not None and _ros_value(values, "K") is not None


def read_ros(sources: Sequence[CalibrationFile]) -> CameraPair:
    """Read the CameraInfo of the left and of the right camera; lengths are metres."""
    if len(sources) != 2:
        raise sources[0].error(
            f"is one of {len(sources)} CameraInfo files, and a stereo camera has two. Give the "
            "file of the left camera, then that of the right one."
        )
    left, right = (_ros_camera(source) for source in sources)
    turns = [_ros_matrix(source, "R", (3, 3)) for source in sources]
    views = [_ros_matrix(source, "P", (3, 4)) for source in sources]
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


def _ros_value(values: Mapping[str, Any], name: str) -> Any:
    return first_of(values, _ROS_NAMES[name])


def _ros_matrix(source: CalibrationFile, name: str, shape: tuple[int, int]) -> FloatArray:
    return matrix(source, _ROS_NAMES[name][0], _ros_value(source.values or {}, name), shape)


def _ros_camera(source: CalibrationFile) -> RawCamera:
    values = source.values or {}
    model = str(values.get("distortion_model") or "").lower()
    if model not in _ROS_FISHEYE:
        known = ", ".join(name for name in _ROS_FISHEYE if name)
        raise source.error(f"distortion_model={model!r} is not supported: {known} are.")
    coefficients = numbers(_ros_value(values, "D"))
    if coefficients is None:
        raise source.error("has no distortion_coefficients. Write zeros if there is none.")
    size = _ros_value(values, "width"), _ros_value(values, "height")
    if None in size:
        raise source.error("has no image_width and image_height.")
    return raw_camera(
        source,
        _ROS_NAMES["K"][0],
        _ros_matrix(source, "K", (3, 3)),
        size=picture_size(source, size),
        distortion=coefficients,
        fisheye=_ROS_FISHEYE[model],
    )


_CENTIMETRE_M = 0.01
_OAK_LEFT, _OAK_RIGHT = 1, 2  # sockets of the mono cameras of an OAK-D
_OAK_FISHEYE = {0: False, 1: True}
_LEFT = "infra1", "left", "infrared1", "ir1", "left_camera", "cam0"
_RIGHT = "infra2", "right", "infrared2", "ir2", "right_camera", "cam1"
_BETWEEN = "extrinsics", "infra1_to_infra2", "left_to_right", "extrinsics_infra1_to_infra2"
_REALSENSE_FISHEYE = {
    "none": False,
    "brown_conrady": False,
    "modified_brown_conrady": False,
    "inverse_brown_conrady": False,
    "kannala_brandt4": True,
}
_INVERSES = "inverse_brown_conrady", "modified_brown_conrady"


def is_oak(source: CalibrationFile) -> bool:
    """Whether a file is the calibration of an OAK camera."""
    return "cameraData" in (source.values or {})


def is_realsense(source: CalibrationFile) -> bool:
    """Whether a file has the intrinsics of a RealSense camera."""
    left = first_of(source.values or {}, _LEFT)
    return isinstance(left, Mapping) and "fx" in left


def read_oak(source: CalibrationFile) -> CameraPair:
    """Read the stereo pair of an OAK camera."""
    values = source.values or {}
    try:
        cameras = {int(socket): table for socket, table in values["cameraData"]}
    except (TypeError, ValueError) as error:
        raise source.error("cameraData must be a list of [socket, camera].") from error
    sockets = values.get("stereoRectificationData") or {}
    left, right = (
        socket if socket in cameras else usual
        for socket, usual in (
            (sockets.get("leftCameraSocket"), _OAK_LEFT),
            (sockets.get("rightCameraSocket"), _OAK_RIGHT),
        )
    )
    for socket in (left, right):
        if not isinstance(cameras.get(socket), Mapping):
            raise source.error(
                f"has no camera at socket {socket}: its cameras are at {sorted(cameras)}. Is it a "
                "camera with a stereo pair?"
            )
    rotation, translation = _between_sockets(source, cameras, left, right)
    return CameraPair(
        cameras=(_oak_camera(source, cameras[left]), _oak_camera(source, cameras[right])),
        rotation=rotation,
        translation=translation,
        unit_m=_CENTIMETRE_M,
        name=str(values.get("productName") or values.get("boardName") or "OAK")[:100],
    )


def _oak_camera(source: CalibrationFile, table: Mapping[str, Any]) -> RawCamera:
    model = table.get("cameraType", 0)
    if model not in _OAK_FISHEYE:
        raise source.error(f"cameraType={model!r} is not supported: 0 and 1 are.")
    coefficients = numbers(table.get("distortionCoeff", [])) or []
    return raw_camera(
        source,
        "intrinsicMatrix",
        matrix(source, "intrinsicMatrix", table.get("intrinsicMatrix"), (3, 3)),
        size=picture_size(source, (table.get("width"), table.get("height"))),
        distortion=coefficients[:4] if _OAK_FISHEYE[model] else coefficients,
        fisheye=_OAK_FISHEYE[model],
    )


def _between_sockets(
    source: CalibrationFile, cameras: Mapping[int, Mapping[str, Any]], first: int, second: int
) -> tuple[FloatArray, FloatArray]:
    """Rotation and translation from one camera to another, along the chain of the file."""
    ways = [_to_end(source, cameras, socket) for socket in (first, second)]
    common = next((socket for socket in ways[0] if socket in ways[1]), None)
    if common is None:
        raise source.error(
            f"has no extrinsics that connect the cameras at sockets {first} and {second}."
        )
    (turn_1, shift_1), (turn_2, shift_2) = ways[0][common], ways[1][common]
    return turn_2.T @ turn_1, turn_2.T @ (shift_1 - shift_2)


def _to_end(
    source: CalibrationFile, cameras: Mapping[int, Mapping[str, Any]], socket: int
) -> dict[int, tuple[FloatArray, FloatArray]]:
    """Rotation and translation from a camera to each one that its extrinsics lead to."""
    turn, shift = np.eye(3), np.zeros(3)
    found = {socket: (turn, shift)}
    while True:
        table = cameras.get(socket, {}).get("extrinsics") or {}
        following = table.get("toCameraSocket", -1)
        if following not in cameras or following in found:
            return found
        step = matrix(source, "rotationMatrix", table.get("rotationMatrix"), (3, 3))
        place = table.get("translation") or {}
        move = [place.get(axis) for axis in "xyz"] if isinstance(place, Mapping) else place
        turn = step @ turn
        shift = step @ shift + matrix(source, "translation", move, (3,))
        socket = following
        found[socket] = turn, shift


def read_realsense(source: CalibrationFile) -> CameraPair:
    """Read the infrared pair of a RealSense camera."""
    values = source.values or {}
    right = first_of(values, _RIGHT)
    between = first_of(values, _BETWEEN)
    if not isinstance(right, Mapping):
        raise source.error("has no infra2 (or right) beside infra1: a stereo camera has two.")
    if not isinstance(between, Mapping):
        raise source.error(
            "has no extrinsics from infra1 to infra2, with rotation and translation."
        )
    turn = between.get("rotation")
    rotation = matrix(source, "extrinsics.rotation", turn, (3, 3))
    if isinstance(turn, list) and len(turn) == 9:
        rotation = rotation.T  # librealsense has it column by column
    return CameraPair(
        cameras=(
            _realsense_camera(source, first_of(values, _LEFT)),
            _realsense_camera(source, right),
        ),
        rotation=rotation,
        translation=matrix(source, "extrinsics.translation", between.get("translation"), (3,)),
        name=str(values.get("name") or values.get("device") or source.path.stem)[:100],
    )


def _realsense_camera(source: CalibrationFile, table: Mapping[str, Any]) -> RawCamera:
    names = "fx", "fy", "ppx", "ppy", "width", "height"
    others = {"ppx": "cx", "ppy": "cy"}
    found = [table.get(name, table.get(others.get(name, ""))) for name in names]
    missing = [name for name, value in zip(names, found, strict=True) if value is None]
    if missing:
        raise source.error(f"has a camera without {missing[0]}.")
    f_x, f_y, c_x, c_y = matrix(source, "fx, fy, ppx and ppy", found[:4], (4,))
    model = str(table.get("model", "none")).lower().rpartition(".")[2].replace(" ", "_")
    coefficients = numbers(table.get("coeffs", [])) or []
    if any(coefficients) and (model not in _REALSENSE_FISHEYE or model in _INVERSES):
        raise source.error(
            f"model={model!r} with coefficients that are not 0 is not supported: brown_conrady and "
            "kannala_brandt4 are."
        )
    fisheye = _REALSENSE_FISHEYE.get(model, False)
    return raw_camera(
        source,
        "fx, fy, ppx and ppy",
        np.array([[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]]),
        size=picture_size(source, found[4:]),
        distortion=coefficients[:4] if fisheye else coefficients,
        fisheye=fisheye,
    )
