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
from d3s.rig.imports.source import CalibrationFile, first_of, numbers
from d3s.rig.stereo_camera import RawCamera
from d3s.types import FloatArray

_KALIBR_FISHEYE = {"radtan": False, "none": False, "equidistant": True, "equi": True}


def is_kalibr(source: CalibrationFile) -> bool:
    """Whether a file is a camera chain of Kalibr."""
    camera = source.values.get("cam0")
    return isinstance(camera, Mapping) and "intrinsics" in camera


def read_kalibr(source: CalibrationFile) -> CameraPair:
    """Read cam0 and cam1 of a chain; lengths are metres."""
    second = source.values.get("cam1")
    if not isinstance(second, Mapping):
        raise source.error(
            "has no cam1. A stereo camera has two: calibrate them together with Kalibr."
        )
    left, right = (_kalibr_camera(source, one, source.values[one]) for one in ("cam0", "cam1"))
    turn = source.matrix("cam1.T_cn_cnm1", second.get("T_cn_cnm1"), (4, 4))
    return CameraPair(
        cameras=(left, right),
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
    matrix = _matrix(source.matrix(f"{name}.intrinsics", table.get("intrinsics"), (4,)))
    coefficients = numbers(table.get("distortion_coeffs", []))
    if coefficients is None:
        raise source.error(f"{name}.distortion_coeffs must be numbers.")
    if "resolution" not in table:
        raise source.error(f"has no {name}.resolution.")
    return source.camera(
        f"{name}.intrinsics",
        matrix,
        size=table["resolution"],
        distortion=() if distortion == "none" else coefficients,
        fisheye=_KALIBR_FISHEYE[distortion],
    )


def _matrix(values: FloatArray) -> FloatArray:
    """Matrix K of both focal lengths and the principal point."""
    f_x, f_y, c_x, c_y = values
    return np.array([[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]])


# Names in a file, and of the fields of a message in ROS 1 and in ROS 2.
_ROS_NAMES = {
    "K": ("camera_matrix", "K", "k"),
    "D": ("distortion_coefficients", "D", "d"),
    "R": ("rectification_matrix", "R", "r"),
    "P": ("projection_matrix", "P", "p"),
    "width": ("image_width", "width"),
    "height": ("image_height", "height"),
}
_ROS_PINHOLE = "plumb_bob", "rational_polynomial", "", "none"
_ROS_FISHEYE = "equidistant", "fisheye"


def is_ros(source: CalibrationFile) -> bool:
    """Whether a file is a CameraInfo."""
    return all(_ros_value(source, one) is not None for one in "PK")


def read_ros(sources: Sequence[CalibrationFile]) -> CameraPair:
    """Read the CameraInfo of the left and of the right camera; lengths are metres."""
    if len(sources) != 2:
        raise sources[0].error(
            f"is one of {len(sources)} CameraInfo files, and a stereo camera has two. Give the "
            "file of the left camera, then that of the right one."
        )
    left, right = (_ros_camera(source) for source in sources)
    first, second = (
        (_ros_matrix(source, "R", (3, 3)), _ros_matrix(source, "P", (3, 4))) for source in sources
    )
    if not (first[1][:, 3].any() or second[1][:, 3].any()):
        raise sources[1].error(
            "has no baseline: its projection P ends with 0, as that of the left camera does. Are "
            "these files of a stereo calibration, and not of two cameras on their own?"
        )
    return CameraPair(
        cameras=(left, right),
        projections=Projections((first[0], second[0]), (first[1], second[1])),
        name=str(sources[0].values.get("camera_name") or sources[0].path.stem)[:100],
    )


def _ros_value(source: CalibrationFile, name: str) -> Any:
    return first_of(source.values, _ROS_NAMES[name])


def _ros_matrix(source: CalibrationFile, name: str, shape: tuple[int, int]) -> FloatArray:
    return source.matrix(_ROS_NAMES[name][0], _ros_value(source, name), shape)


def _ros_camera(source: CalibrationFile) -> RawCamera:
    model = str(source.values.get("distortion_model") or "").lower()
    if model not in (*_ROS_PINHOLE, *_ROS_FISHEYE):
        known = ", ".join(name for name in (*_ROS_PINHOLE, *_ROS_FISHEYE) if name)
        raise source.error(f"distortion_model={model!r} is not supported: {known} are.")
    coefficients = numbers(_ros_value(source, "D"))
    if coefficients is None:
        raise source.error("has no distortion_coefficients. Write zeros if there is none.")
    size = _ros_value(source, "width"), _ros_value(source, "height")
    if None in size:
        raise source.error("has no image_width and image_height.")
    return source.camera(
        _ROS_NAMES["K"][0],
        _ros_matrix(source, "K", (3, 3)),
        size=size,
        distortion=coefficients,
        fisheye=model in _ROS_FISHEYE,
    )


_CENTIMETRE_M = 0.01
_OAK_SOCKETS = {"leftCameraSocket": 1, "rightCameraSocket": 2}  # of the mono cameras of an OAK-D


def is_oak(source: CalibrationFile) -> bool:
    """Whether a file is the calibration of an OAK camera."""
    return "cameraData" in source.values


def read_oak(source: CalibrationFile) -> CameraPair:
    """Read the stereo pair of an OAK camera."""
    values = source.values
    try:
        cameras = {int(socket): table for socket, table in values["cameraData"]}
    except (TypeError, ValueError) as error:
        raise source.error("cameraData must be a list of [socket, camera].") from error
    said = values.get("stereoRectificationData") or {}
    left, right = (
        said[name] if said.get(name) in cameras else usual for name, usual in _OAK_SOCKETS.items()
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
    if model not in (0, 1):
        raise source.error(f"cameraType={model!r} is not supported: 0 and 1 are.")
    coefficients = numbers(table.get("distortionCoeff", [])) or []
    return source.camera(
        "intrinsicMatrix",
        source.matrix("intrinsicMatrix", table.get("intrinsicMatrix"), (3, 3)),
        size=(table.get("width"), table.get("height")),
        distortion=coefficients[:4] if model == 1 else coefficients,
        fisheye=model == 1,
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
        socket = table.get("toCameraSocket", -1)
        if socket not in cameras or socket in found:
            return found
        step = source.matrix("rotationMatrix", table.get("rotationMatrix"), (3, 3))
        place = table.get("translation") or {}
        move = [place.get(axis) for axis in "xyz"] if isinstance(place, Mapping) else place
        turn, shift = step @ turn, step @ shift + source.matrix("translation", move, (3,))
        found[socket] = turn, shift


_LEFT = "infra1", "left", "infrared1", "ir1", "left_camera", "cam0"
_RIGHT = "infra2", "right", "infrared2", "ir2", "right_camera", "cam1"
_BETWEEN = "extrinsics", "infra1_to_infra2", "left_to_right", "extrinsics_infra1_to_infra2"
_REALSENSE_MODELS = "none", "brown_conrady", "kannala_brandt4"  # not the inverse one


def is_realsense(source: CalibrationFile) -> bool:
    """Whether a file has the intrinsics of a RealSense camera."""
    left = first_of(source.values, _LEFT)
    return isinstance(left, Mapping) and "fx" in left


def read_realsense(source: CalibrationFile) -> CameraPair:
    """Read the infrared pair of a RealSense camera."""
    values = source.values
    left, right, between = (first_of(values, names) for names in (_LEFT, _RIGHT, _BETWEEN))
    if not isinstance(right, Mapping):
        raise source.error("has no infra2 (or right) beside infra1: a stereo camera has two.")
    if not isinstance(between, Mapping):
        raise source.error(
            "has no extrinsics from infra1 to infra2, with rotation and translation."
        )
    turn = between.get("rotation")
    rotation = source.matrix("extrinsics.rotation", turn, (3, 3))
    if isinstance(turn, list) and len(turn) == 9:
        rotation = rotation.T  # librealsense has it column by column
    return CameraPair(
        cameras=(_realsense_camera(source, left), _realsense_camera(source, right)),
        rotation=rotation,
        translation=source.matrix("extrinsics.translation", between.get("translation"), (3,)),
        name=str(values.get("name") or values.get("device") or source.path.stem)[:100],
    )


def _realsense_camera(source: CalibrationFile, table: Mapping[str, Any]) -> RawCamera:
    table = {"ppx": table.get("cx"), "ppy": table.get("cy"), **table}
    found = {one: table.get(one) for one in ("fx", "fy", "ppx", "ppy", "width", "height")}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise source.error(f"has a camera without {missing[0]}.")
    *lens, width, height = found.values()
    model = str(table.get("model", "none")).lower().rpartition(".")[2].replace(" ", "_")
    coefficients = numbers(table.get("coeffs", [])) or []
    if any(coefficients) and model not in _REALSENSE_MODELS:
        raise source.error(
            f"model={model!r} with coefficients that are not 0 is not supported: brown_conrady and "
            "kannala_brandt4 are."
        )
    fisheye = model == "kannala_brandt4"
    return source.camera(
        "fx, fy, ppx and ppy",
        _matrix(source.matrix("fx, fy, ppx and ppy", lens, (4,))),
        size=(width, height),
        distortion=coefficients[:4] if fisheye else coefficients,
        fisheye=fisheye,
    )
