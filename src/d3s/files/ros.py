"""ROS messages of depth as plain dictionaries, by REP 103, 117 and 118; and recordings of them.

Depth is `sensor_msgs/Image` along the optical axis: 32FC1 in metres with NaN where there is none,
or 16UC1 in millimetres with 0 where there is none. Axes are those of an optical frame: x right,
y down, z forward, which are the axes of D3S as well. The dictionaries have the fields of the
messages, so that `rosidl_runtime_py.set_message_fields`, rosbags and mcap_ros2 take them. MCAP
recordings are read by Foxglove, rosbags and `ros2 bag`.
"""

import importlib.util
import io
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s import atomic
from d3s.errors import InputError, MissingPackageError
from d3s.files.depth_image import DepthImage, Points, check_camera, points_of
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
    """`sensor_msgs/Image` of depth in millimetres, 0 for none; an error if one is not in 16 bit."""
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

    `bayer` is the order of the colours, such as "RGGB"; None for a mono sensor.
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
    """`sensor_msgs/CameraInfo` of the left view, which is rectified and without distortion."""
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


_RULE = "\n" + 80 * "=" + "\n"
_HEADER = f"""{_RULE}MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id{_RULE}MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec"""
DEFINITIONS = {
    "sensor_msgs/msg/Image": f"""std_msgs/Header header
uint32 height
uint32 width
string encoding
uint8 is_bigendian
uint32 step
uint8[] data{_HEADER}""",
    "sensor_msgs/msg/CameraInfo": f"""std_msgs/Header header
uint32 height
uint32 width
string distortion_model
float64[] d
float64[9] k
float64[9] r
float64[12] p
uint32 binning_x
uint32 binning_y
sensor_msgs/RegionOfInterest roi{_RULE}MSG: sensor_msgs/RegionOfInterest
uint32 x_offset
uint32 y_offset
uint32 height
uint32 width
bool do_rectify{_HEADER}""",
    "sensor_msgs/msg/PointCloud2": f"""std_msgs/Header header
uint32 height
uint32 width
sensor_msgs/PointField[] fields
bool is_bigendian
uint32 point_step
uint32 row_step
uint8[] data
bool is_dense{_RULE}MSG: sensor_msgs/PointField
string name
uint32 offset
uint8 datatype
uint32 count{_HEADER}""",
}


def check_installed() -> None:
    """Raise an `InputError` if the packages that write MCAP are not installed."""
    if importlib.util.find_spec("mcap_ros2") is None:
        raise MissingPackageError("MCAP needs the packages mcap and mcap-ros2-support", "ros")


def write_recording(
    path: str | os.PathLike[str],
    frames: Iterable[tuple[float, DepthImage]],
    *,
    frame_id: str = FRAME_ID,
    overwrite: bool = False,
) -> None:
    """Write depth images into one MCAP recording.

    The topics are `/depth/image` (32FC1, metres, NaN for no depth), `/depth/image_raw` (16UC1,
    millimetres, 0 for no depth; left out of frames whose depths do not fit), `/depth/sigma` (32FC1,
    metres), `/depth/camera_info` and `/depth/points`. Times of `frames` are in seconds since 1970;
    `frame_id` is the frame of the left camera, an optical one: x right, y down, z forward.
    """
    atomic.write_bytes(path, _recording(frames, frame_id), overwrite=overwrite)


def encode(image: DepthImage) -> bytes:
    """MCAP recording of one depth image, at the time 0."""
    return _recording([(0.0, image)], FRAME_ID)


def _recording(frames: Iterable[tuple[float, DepthImage]], frame_id: str) -> bytes:
    check_installed()
    from mcap_ros2.writer import Writer

    buffer = io.BytesIO()
    writer: Any = Writer(buffer)
    schemas = {name: writer.register_msgdef(name, text) for name, text in DEFINITIONS.items()}
    for number, (time_s, image) in enumerate(frames):
        head = header(time_s, frame_id)
        for topic, kind, message in _messages(image, head):
            writer.write_message(
                topic=topic,
                schema=schemas[f"sensor_msgs/msg/{kind}"],
                message=message,
                log_time=round(1e9 * time_s),
                sequence=number,
            )
    writer.finish()
    return buffer.getvalue()


def _messages(image: DepthImage, head: Message) -> Iterable[tuple[str, str, Message]]:
    yield "/depth/camera_info", "CameraInfo", camera_info(image, head)
    yield "/depth/image", "Image", image_32fc1(image.depth_m, head)
    try:
        raw = depth_16uc1(image.depth_m, head)
    except InputError:  # told by the documentation: the topic is there if all depths fit
        raw = None
    if raw is not None:
        yield "/depth/image_raw", "Image", raw
    if image.sigma_m is not None:
        yield "/depth/sigma", "Image", image_32fc1(image.sigma_m, head)
    yield "/depth/points", "PointCloud2", point_cloud(points_of(image), head)
