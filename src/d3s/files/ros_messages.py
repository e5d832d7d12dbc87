"""ROS messages of depth as plain dictionaries, by the rules of REP 103, 117 and 118.

Depth is `sensor_msgs/Image` along the optical axis: 32FC1 in metres with NaN where there is none,
or 16UC1 in millimetres with 0 where there is none. Axes are those of an optical frame: x right,
y down, z forward, which are the axes of D3S as well. The dictionaries have the fields of the
messages, so that `rosidl_runtime_py.set_message_fields`, rosbags and mcap_ros2 take them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.depth_image import DepthImage, Points, check_camera
from d3s.types import Image

FRAME_ID = "d3s_left_optical_frame"
"""Default frame of the messages: the left camera, x right, y down, z forward."""

_MILLIMETRE_M, _LARGEST = 0.001, 65535
_FLOAT32 = 7  # sensor_msgs/PointField
_FIELDS = {"x_m": "x", "y_m": "y", "z_m": "z", "sigma_m": "sigma", "confidence": "confidence"}

Message = dict[str, Any]


def header(time_s: float = 0.0, frame_id: str = FRAME_ID) -> Message:
    """`std_msgs/Header` with a time in seconds since 1970."""
    nanoseconds = round(1e9 * time_s)
    stamp = {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}
    return {"stamp": stamp, "frame_id": frame_id}


def image_32fc1(values: Image, head: Message) -> Message:
    """`sensor_msgs/Image` of floats, such as depth or sigma in metres; NaN stays."""
    return _image(values.astype("<f4", copy=False), "32FC1", head)


def depth_16uc1(depth_m: Image, head: Message) -> Message:
    """`sensor_msgs/Image` of depth in whole millimetres, 0 where there is none.

    Raises
    ------
    InputError
        When a depth does not fit into 16 bit: below half a millimetre, or beyond 65.535 m.
    """
    steps = np.rint(depth_m.astype(np.float64) / _MILLIMETRE_M)
    known = steps[np.isfinite(steps)]
    if known.size and not 1 <= known.min() <= known.max() <= _LARGEST:
        raise InputError(
            f"depths of {np.nanmin(depth_m):.4g} to {np.nanmax(depth_m):.4g} m do not fit into "
            "16UC1, which has 1 to 65535 mm. Use 32FC1."
        )
    return _image(np.nan_to_num(steps, nan=0.0).astype("<u2"), "16UC1", head)


def image_of_counts(counts: NDArray[Any], head: Message, bayer: str | None = None) -> Message:
    """`sensor_msgs/Image` of the integers of a sensor: mono8 or mono16, or Bayer of 8 or 16 bits.

    Parameters
    ----------
    counts
        uint8 or uint16, (rows, cols).
    head
        Header of the message.
    bayer
        Order of the colours, such as "RGGB"; None for a mono sensor.
    """
    bits = 8 * counts.itemsize
    encoding = f"mono{bits}" if bayer is None else f"bayer_{bayer.lower()}{bits}"
    return _image(counts.astype(counts.dtype.newbyteorder("<"), copy=False), encoding, head)


def _image(values: NDArray[Any], encoding: str, head: Message) -> Message:
    rows, cols = values.shape
    return {
        "header": head,
        "height": rows,
        "width": cols,
        "encoding": encoding,
        "is_bigendian": 0,
        "step": cols * values.itemsize,
        "data": values.tobytes(),
    }


def camera_info(image: DepthImage, head: Message) -> Message:
    """`sensor_msgs/CameraInfo` of the left view, which is rectified and without distortion.

    Raises
    ------
    InputError
        When the focal length is not known.
    """
    check_camera(image)
    rows, cols = image.depth_m.shape
    matrix = np.asarray(image.intrinsics)
    projection = np.hstack([matrix, np.zeros((3, 1))])
    roi = {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False}
    return {
        "header": head,
        "height": rows,
        "width": cols,
        "distortion_model": "plumb_bob",
        "d": [0.0] * 5,
        "k": matrix.ravel().tolist(),
        "r": np.eye(3).ravel().tolist(),
        "p": projection.ravel().tolist(),
        "binning_x": 0,
        "binning_y": 0,
        "roi": roi,
    }


def point_cloud(points: Points, head: Message) -> Message:
    """`sensor_msgs/PointCloud2` of points, with sigma and confidence, and with rgb if in colour."""
    columns: dict[str, NDArray[Any]] = {
        _FIELDS[name]: values for name, values in points.columns.items() if name in _FIELDS
    }
    if points.colour is not None:
        red, green, blue = points.colour.T.astype(np.uint32)
        packed = (red << 16) | (green << 8) | blue
        columns["rgb"] = packed.astype("<u4").view("<f4")  # as PCL packs it
    elif points.intensity is not None:
        columns["intensity"] = points.intensity
    record = np.empty(len(points), [(name, "<f4") for name in columns])
    for name, values in columns.items():
        record[name] = values
    fields = [
        {"name": name, "offset": 4 * place, "datatype": _FLOAT32, "count": 1}
        for place, name in enumerate(columns)
    ]
    return {
        "header": head,
        "height": 1,
        "width": len(points),
        "fields": fields,
        "is_bigendian": False,
        "point_step": record.itemsize,
        "row_step": record.nbytes,
        "data": record.tobytes(),
        "is_dense": True,
    }
