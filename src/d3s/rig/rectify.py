"""Rectify the pictures of two cameras: one resampling, by the kernel that adds no blur.

OpenCV's lens models give the place in the picture of every pixel of a rectified view. Along both
axes the kernel has 16 taps, as for the frames of a two-lens camera (`d3s.rig.interpolation`).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.rig.bayer import MONO, check_said
from d3s.rig.interpolation import BEFORE, BEHIND, PHASES, TAPS, dot_16, is_plateau, weights
from d3s.rig.optics import Optics
from d3s.rig.split import checked_frame, clipping_limits, finite_range, grey_frame, hold
from d3s.rig.stereo_camera import RawCamera, Stereo
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image

_SIDES = "left", "right"
_RECTIFIED = "the rig has no cameras to rectify: its pictures are rectified already."
_CACHED_MAPS = 2  # 8 bytes for each pixel of a view


def rectify(
    left: Any, right: Any, stereo: Stereo, optics: Optics, full_scale: float | None = None
) -> tuple[Image, Image]:
    """Rectify both pictures; see `Rig.rectify`."""
    cameras, shape = stereo.raw_cameras, stereo.shape
    if cameras is None or shape is None:
        raise InputError(_RECTIFIED)
    views = []
    for side, picture, camera in zip(_SIDES, (left, right), cameras, strict=True):
        frame = checked_frame(picture, side, full_scale)
        if frame.values.shape != camera.shape:
            raise InputError(_wrong_size(side, frame.values.shape, camera.shape))
        frame, value_range = finite_range(frame)
        x, y = stereo.principal_point_px
        offset_px = optics.disparity_offset_px if side == "right" else 0.0
        across, down = _places(camera, optics.focal_length_px, (x - offset_px, y), shape)
        limits = clipping_limits(*value_range)
        # The kernels are compiled for writable arrays only.
        values = np.require(frame.values, np.float32, ["C", "A", "W"])
        out, clipped = np.empty(shape, np.float32), np.zeros((shape[0], 2), np.bool_)
        table = weights().reshape(-1)
        run_over_rows(_sample, shape[0], values, across, down, table, limits, out, clipped)
        hold(out, clipped, limits[[0, 3]])
        if frame.unit != 1:
            out *= np.float32(frame.unit)
        views.append(out)
    return views[0], views[1]


def split_pictures(
    raw: Any, stereo: Stereo, optics: Optics, full_scale: float | None, bayer: str | None
) -> tuple[Image, Image]:
    """Rectify the pictures of a frame that has them side by side; see `Rig.split`.

    `bayer` is the order of the colours of both pictures, if it is said.
    """
    order = check_said(bayer, None)
    left, right = _halves(raw, stereo.raw_cameras)
    first = grey_frame(left, full_scale, order)
    second = grey_frame(right, full_scale, order or MONO)  # one warning for both
    return rectify(first.values, second.values, stereo, optics, 1 / first.unit)


def _halves(
    raw: Any, cameras: tuple[RawCamera, RawCamera] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pictures of both cameras, of a frame that has them side by side."""
    if cameras is None:
        raise InputError(_RECTIFIED)
    left, right = cameras
    shape = np.shape(raw)
    if left.rows_px != right.rows_px or shape != (left.rows_px, left.cols_px + right.cols_px):
        raise InputError(
            f"raw has shape {shape}, and a frame with the pictures of both cameras side by side "
            f"has {(left.rows_px, left.cols_px + right.cols_px)}. Give the left and the right "
            "picture."
        )
    values = np.asanyarray(raw)
    return values[:, : left.cols_px], values[:, left.cols_px :]


def check_size(left: Any, right: Any, shape: tuple[int, int] | None) -> None:
    """Raise an `InputError` if rectified views have another size than the rig says."""
    for side, view in zip(_SIDES, (left, right), strict=True):
        if shape is not None and np.shape(view) != shape:
            raise InputError(_wrong_size(side, np.shape(view), shape))


def _wrong_size(side: str, found: tuple[int, ...], expected: tuple[int, int]) -> str:
    return (
        f"the {side} picture has {' x '.join(map(str, found))} px (rows x columns), and the rig is "
        f"of pictures of {expected[0]} x {expected[1]}. Is it the calibration of this camera, and "
        "are the pictures neither cropped nor resized since?"
    )


@lru_cache(_CACHED_MAPS)
def _places(
    camera: RawCamera,
    focal_length_px: float,
    principal_point_px: tuple[float, float],
    shape: tuple[int, int],
) -> tuple[Image, Image]:
    """Columns and rows in the picture of all pixels of a rectified view, float32."""
    import cv2  # imported here: slow to load

    make: Any = cv2.fisheye.initUndistortRectifyMap
    if camera.model == "pinhole":
        make = cv2.initUndistortRectifyMap
    view = np.diag([focal_length_px, focal_length_px, 1.0])
    view[:2, 2] = principal_point_px
    coefficients = np.array(camera.distortion or (0.0,) * 4)
    rotation = np.array(camera.rotation)
    across, down = make(camera.matrix, coefficients, rotation, view, shape[::-1], cv2.CV_32FC1)
    return np.ascontiguousarray(across), np.ascontiguousarray(down)


@compiled
def _sample(
    start: int,
    stop: int,
    raw: Image,
    across: Image,
    down: Image,
    table: Image,
    limits: Image,
    out: Image,
    clipped: NDArray[np.bool_],
) -> None:
    """Sample a picture at columns `across` and rows `down`; NaN where the kernel leaves it.

    `limits` are those of `clipping_limits`; `clipped` marks rows with dark and bright plateaus.
    """
    rows, cols = raw.shape
    flat = raw.reshape(-1)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            x, y = across[i, j], down[i, j]
            if not (BEFORE <= x < cols - BEHIND and BEFORE <= y < rows - BEHIND):
                out[i, j] = np.nan
                continue
            col, row = int(x), int(y)
            phase_x = int((x - col) * PHASES + 0.5) * TAPS
            phase_y = int((y - row) * PHASES + 0.5) * TAPS
            first = (row - BEFORE) * cols + col - BEFORE
            value = np.float32(0)
            for k in range(TAPS):
                value += table[phase_y + k] * dot_16(flat, first + k * cols, table, phase_x)
            if value <= limits[1] or value >= limits[2]:
                side = 0 if value <= limits[1] else 1
                if is_plateau(raw, int(y + 0.5), int(x + 0.5), limits[3 * side]):
                    value = limits[3 * side]
                    clipped[i, side] = True
            out[i, j] = value
