"""JSON of depth cameras: the calibration of an OAK, or intrinsics of a RealSense.

An OAK writes its memory with `CalibrationHandler.eepromToJsonFile`, lengths in centimetres. A
RealSense has no file of its own: the fields of `rs.intrinsics` and `rs.extrinsics` are expected,
under names such as `infra1`, `infra2` and `extrinsics`, lengths in metres.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from d3s.rig.imports.pair import CameraPair
from d3s.rig.imports.source import Source
from d3s.rig.imports.values import matrix, numbers, picture_size, raw_camera
from d3s.rig.stereo import RawCamera
from d3s.types import FloatArray

_CENTIMETRE_M = 0.01
_OAK_LEFT, _OAK_RIGHT = 1, 2  # sockets of the mono cameras of an OAK-D
_OAK_FISHEYE = {0: False, 1: True}
_LEFT = "infra1", "left", "infrared1", "ir1", "left_camera", "cam0"
_RIGHT = "infra2", "right", "infrared2", "ir2", "right_camera", "cam1"
_BETWEEN = "extrinsics", "infra1_to_infra2", "left_to_right", "extrinsics_infra1_to_infra2"
_FISHEYE = {
    "none": False,
    "brown_conrady": False,
    "modified_brown_conrady": False,
    "inverse_brown_conrady": False,
    "kannala_brandt4": True,
}
_INVERSES = "inverse_brown_conrady", "modified_brown_conrady"


def is_oak(source: Source) -> bool:
    """Whether a file is the calibration of an OAK camera."""
    return "cameraData" in (source.values or {})


def is_realsense(source: Source) -> bool:
    """Whether a file has the intrinsics of a RealSense camera."""
    left = _first(source.values or {}, _LEFT)
    return isinstance(left, Mapping) and "fx" in left


def read_oak(source: Source) -> CameraPair:
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


def _oak_camera(source: Source, table: Mapping[str, Any]) -> RawCamera:
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
    source: Source, cameras: Mapping[int, Mapping[str, Any]], first: int, second: int
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
    source: Source, cameras: Mapping[int, Mapping[str, Any]], socket: int
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


def read_realsense(source: Source) -> CameraPair:
    """Read the infrared pair of a RealSense camera."""
    values = source.values or {}
    right = _first(values, _RIGHT)
    between = _first(values, _BETWEEN)
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
            _realsense_camera(source, _first(values, _LEFT)),
            _realsense_camera(source, right),
        ),
        rotation=rotation,
        translation=matrix(source, "extrinsics.translation", between.get("translation"), (3,)),
        name=str(values.get("name") or values.get("device") or source.path.stem)[:100],
    )


def _realsense_camera(source: Source, table: Mapping[str, Any]) -> RawCamera:
    names = "fx", "fy", "ppx", "ppy", "width", "height"
    others = {"ppx": "cx", "ppy": "cy"}
    found = [table.get(name, table.get(others.get(name, ""))) for name in names]
    missing = [name for name, value in zip(names, found, strict=True) if value is None]
    if missing:
        raise source.error(f"has a camera without {missing[0]}.")
    f_x, f_y, c_x, c_y = matrix(source, "fx, fy, ppx and ppy", found[:4], (4,))
    model = str(table.get("model", "none")).lower().rpartition(".")[2].replace(" ", "_")
    coefficients = numbers(table.get("coeffs", [])) or []
    if any(coefficients) and (model not in _FISHEYE or model in _INVERSES):
        raise source.error(
            f"model={model!r} with coefficients that are not 0 is not supported: brown_conrady and "
            "kannala_brandt4 are."
        )
    fisheye = _FISHEYE.get(model, False)
    return raw_camera(
        source,
        "fx, fy, ppx and ppy",
        np.array([[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]]),
        size=picture_size(source, found[4:]),
        distortion=coefficients[:4] if fisheye else coefficients,
        fisheye=fisheye,
    )


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if name in values), None)
