"""Camera file: a small JSON file beside a depth file that has no room for the camera.

It has the form of Open3D's pinhole camera, which other programs can read easily.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.errors import InputError
from d3s.files.depth_image import DepthImage, middle_px
from d3s.files.raw import cut_short, named, path_text, read_file

SUFFIX = ".camera.json"
_MAX_BYTES = 100_000
_LARGEST = 1e12
_CLOSE_PX = 1e-6


class Camera(NamedTuple):
    """Pinhole camera."""

    rows: int
    cols: int
    focal_length_px: float
    principal_point_px: tuple[float, float] | None = None  # the middle of the view if None


def beside(path: str | os.PathLike[str]) -> Path:
    """Path of the camera file of a depth file: scene.camera.json for scene.png."""
    return Path(os.fsdecode(path)).with_suffix(SUFFIX)


def encode(image: DepthImage) -> bytes | None:
    """Camera file of a depth image; None if its camera is not known."""
    matrix = image.intrinsics
    if matrix is None:
        return None
    rows, cols = image.depth_m.shape
    camera = {
        "width": cols,
        "height": rows,
        "intrinsic_matrix": matrix.T.ravel().tolist(),  # column by column, as Open3D has it
    }
    return (json.dumps(camera, indent=2) + "\n").encode("ascii")


def camera_of(path: str | os.PathLike[str], shape: tuple[int, ...]) -> Camera | None:
    """Camera in the camera file beside a depth file; None if there is none."""
    beside_it = beside(path)
    if not os.path.lexists(beside_it):
        return None
    camera = read(beside_it)
    if (camera.rows, camera.cols) != tuple(shape):
        raise InputError(
            f"{path_text(beside_it)}: is of views of {camera.rows} x {camera.cols} px, and the "
            f"depths have {shape[0]} x {shape[1]}."
        )
    return camera


def read(path: str | os.PathLike[str]) -> Camera:
    """Read a camera file; an `InputError` names the file and what is wrong."""
    with named(path):
        return _camera(read_file(path, _MAX_BYTES))


def _camera(raw: bytes) -> Camera:
    try:
        entries: dict[str, Any] = json.loads(raw)
        rows, cols = entries["height"], entries["width"]
        matrix = np.array(entries["intrinsic_matrix"], dtype=np.float64).reshape(3, 3).T
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as error:
        raise cut_short("is not a camera file") from error
    if not all(type(size) is int and 0 < size < _LARGEST for size in (rows, cols)):
        raise cut_short("is not a camera file")
    focal = float(matrix[0, 0])
    expected = np.diag([focal, focal, 1.0])
    expected[:2, 2] = matrix[:2, 2]
    is_pinhole = 0 < focal < _LARGEST and np.all(np.abs(matrix) < _LARGEST)
    if not is_pinhole or not np.allclose(matrix, expected, rtol=0, atol=_CLOSE_PX):
        raise InputError(
            "has a camera that is none of ours: one focal length above 0, the principal point, and "
            "nothing else."
        )
    point = float(matrix[0, 2]), float(matrix[1, 2])
    is_middle = np.allclose(point, middle_px((rows, cols)), rtol=0, atol=_CLOSE_PX)
    return Camera(rows, cols, focal, None if is_middle else point)
