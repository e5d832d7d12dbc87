"""Camera chains of Kalibr: `camchain.yaml`, with `cam0` and `cam1`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from d3s.rig.imports.pair import CameraPair
from d3s.rig.imports.source import Source
from d3s.rig.imports.values import matrix, numbers, picture_size, raw_camera
from d3s.rig.stereo import RawCamera

_FISHEYE = {"radtan": False, "none": False, "equidistant": True, "equi": True}


def is_kalibr(source: Source) -> bool:
    """Whether a file is a camera chain of Kalibr."""
    camera = (source.values or {}).get("cam0")
    return isinstance(camera, Mapping) and "intrinsics" in camera


def read_kalibr(source: Source) -> CameraPair:
    """Read cam0 and cam1 of a chain; lengths are metres."""
    values = source.values or {}
    tables = [values.get(name) for name in ("cam0", "cam1")]
    if not all(isinstance(table, Mapping) for table in tables):
        raise source.error(
            "has no cam1. A stereo camera has two: calibrate them together with Kalibr."
        )
    cameras = [_camera(source, f"cam{index}", table) for index, table in enumerate(tables) if table]
    placement = (tables[1] or {}).get("T_cn_cnm1")
    turn = matrix(source, "cam1.T_cn_cnm1", placement, (4, 4))
    return CameraPair(
        cameras=(cameras[0], cameras[1]),
        rotation=np.ascontiguousarray(turn[:3, :3]),
        translation=turn[:3, 3].copy(),
        name=source.path.stem[:100] or "camchain",
    )


def _camera(source: Source, name: str, table: Mapping[str, Any]) -> RawCamera:
    model = str(table.get("camera_model", "pinhole"))
    if model != "pinhole":
        raise source.error(
            f"{name}.camera_model={model!r} is not supported: pinhole is. Calibrate with "
            "pinhole-radtan, or with pinhole-equi for a wide lens."
        )
    distortion = str(table.get("distortion_model", "none")).lower()
    if distortion not in _FISHEYE:
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
        fisheye=_FISHEYE[distortion],
    )
