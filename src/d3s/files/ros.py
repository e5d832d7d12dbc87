"""ROS messages of depth as plain dictionaries, by REP 103, 117 and 118; and recordings of them.

Depth is `sensor_msgs/Image` along the optical axis: 32FC1 in metres with NaN where there is none,
or 16UC1 in millimetres with 0 where there is none. Axes are those of an optical frame, as D3S has
them. The dictionaries have the fields of the messages, so that
`rosidl_runtime_py.set_message_fields` takes them; Foxglove, rosbags and `ros2 bag` read recordings.
"""

import importlib.util
import io
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s import atomic
from d3s.errors import InputError, MissingPackageError
from d3s.files.depth_image import DepthImage, check_camera, middle_px
from d3s.types import Image

FRAME_ID = "d3s_left_optical_frame"
"""Default frame of the messages: the left camera, x right, y down, z forward."""

_MILLIMETRE_M, _LARGEST = 0.001, 65535
_FLOAT32 = 7  # sensor_msgs/PointField
_FIELDS = {"sigma_m": "sigma", "confidence": "confidence"}

Message = dict[str, Any]


def header_ns(time_ns: int, frame_id: str = FRAME_ID) -> Message:
    """`std_msgs/Header` with a time in nanoseconds since 1970."""
    stamp = {"sec": time_ns // 10**9, "nanosec": time_ns % 10**9}
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


_KINDS = {"mono8": "u1", "8UC1": "u1", "mono16": "u2", "16UC1": "u2", "32FC1": "f4"}


def pixels_of(message: Any) -> NDArray[Any]:
    """Pixels of a `sensor_msgs/Image`, of any library of ROS messages; a view where it can be.

    The shape is (rows, cols), or (rows, cols, 3) in the order of the encoding.
    """
    encoding, rows, cols, step = message.encoding, message.height, message.width, message.step
    channels = 3 if encoding in ("rgb8", "bgr8") else 1
    kind = _KINDS.get(encoding, "u1" if channels == 3 else "")
    if encoding.startswith("bayer_") and encoding[-1:] in "68":
        kind = "u2" if encoding.endswith("16") else "u1"
    if not kind:
        raise InputError(
            f"an image has the encoding {encoding!r}: it must be mono8, mono16, bayer, rgb8, bgr8 "
            "or 32FC1."
        )
    data = np.frombuffer(message.data, np.uint8)
    dtype = np.dtype(("<", ">")[bool(message.is_bigendian)] + kind)
    used = cols * channels * dtype.itemsize
    if not rows or not 0 < used <= step or data.size != rows * step:
        raise InputError(f"an image of {rows} x {cols} px has {data.size} bytes, {step} each row.")
    pixels = data.reshape(rows, step)[:, :used].view(dtype)
    return pixels.reshape(rows, cols, 3) if channels == 3 else pixels


def camera_info(image: DepthImage, head: Message) -> Message:
    """`sensor_msgs/CameraInfo` of the left view, which is rectified and without distortion."""
    return pinhole_info(image.depth_m.shape, check_camera(image), image.centre_px, head)


def pinhole_info(
    shape: tuple[int, ...],
    focal_length_px: float,
    centre_px: tuple[float, float] | None,
    head: Message,
    *,
    baseline_m: float = 0.0,
) -> Message:
    """`sensor_msgs/CameraInfo` of a view of (rows, columns) without distortion.

    `centre_px` is the principal point (x, y), None for the middle of the view; `baseline_m` the
    distance from the left camera, which the right one of a pair has.
    """
    x, y = centre_px or middle_px(shape)
    matrix = np.array([[focal_length_px, 0, x], [0, focal_length_px, y], [0, 0, 1]])
    shift = np.array([[-focal_length_px * baseline_m if baseline_m else 0.0], [0.0], [0.0]])
    return {
        "header": head,
        "height": shape[0],
        "width": shape[1],
        "distortion_model": "plumb_bob",
        "d": [0.0] * 5,
        "k": matrix.ravel().tolist(),
        "r": np.eye(3).ravel().tolist(),
        "p": np.hstack([matrix, shift]).ravel().tolist(),
        "binning_x": 0,
        "binning_y": 0,
        "roi": _whole(0, 0),
    }


def _whole(rows: int, cols: int) -> Message:
    """`sensor_msgs/RegionOfInterest` of a whole image; zeros say the same of a camera."""
    return {"x_offset": 0, "y_offset": 0, "height": rows, "width": cols, "do_rectify": False}


def disparity_image(
    depth_m: Image, focal_length_px: float, baseline_m: float, head: Message
) -> Message:
    """`stereo_msgs/DisparityImage` of depth: f T / Z, and less than all where there is none."""
    disparity_px = np.float32(focal_length_px * baseline_m) / depth_m
    known = disparity_px[np.isfinite(disparity_px)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    return {
        "header": head,
        "image": image_32fc1(np.nan_to_num(disparity_px, nan=low - 1), head),
        "f": focal_length_px,
        "t": baseline_m,
        "valid_window": _whole(*depth_m.shape),
        "min_disparity": low,
        "max_disparity": high,
        "delta_d": 0.0,
    }


def point_cloud(image: DepthImage, head: Message) -> Message:
    """`sensor_msgs/PointCloud2`, organised: a point for each pixel, NaN where there is no depth.

    Beside x, y and z are sigma and confidence, and the colour as rgb, or the intensity.
    """
    focal_length_px = check_camera(image)
    rows, cols = image.depth_m.shape
    x, y = image.centre_px
    depth_m = image.depth_m.astype(np.float32, copy=False)
    columns: dict[str, NDArray[Any]] = {
        "x": (np.arange(cols) - x).astype(np.float32) / np.float32(focal_length_px) * depth_m,
        "y": (np.arange(rows) - y).astype(np.float32)[:, np.newaxis]
        / np.float32(focal_length_px)
        * depth_m,
        "z": depth_m,
    }
    columns |= {_FIELDS[name]: getattr(image, name) for name in image.layers if name in _FIELDS}
    if image.colour is not None:
        red, green, blue = np.moveaxis(image.colour.astype(np.uint32), 2, 0)
        packed = (red << 16) | (green << 8) | blue
        columns["rgb"] = packed.astype("<u4").view("<f4")  # as PCL packs it
    elif image.intensity is not None:
        columns["intensity"] = image.intensity
    record = np.empty((rows, cols), [(name, "<f4") for name in columns])
    for name, values in columns.items():
        record[name] = values
    fields = [
        {"name": name, "offset": 4 * place, "datatype": _FLOAT32, "count": 1}
        for place, name in enumerate(columns)
    ]
    return {
        "header": head,
        "height": rows,
        "width": cols,
        "fields": fields,
        "is_bigendian": False,
        "point_step": record.itemsize,
        "row_step": cols * record.itemsize,
        "data": record.tobytes(),
        "is_dense": bool(np.isfinite(depth_m).all()),
    }


DISPARITY = "stereo_msgs/msg/DisparityImage"
IMAGE, CAMERA_INFO = "sensor_msgs/msg/Image", "sensor_msgs/msg/CameraInfo"
POINTS = "sensor_msgs/msg/PointCloud2"


@cache
def types() -> Any:
    """Types of ROS 2 messages, of the library that writes and reads them as bytes."""
    check_installed()
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


def cdr(kind: str, message: Message) -> bytes:
    """Message of a type as bytes."""
    return bytes(types().serialize_cdr(_built(kind, message), kind))


def definition(kind: str) -> bytes:
    """Definition of a type of messages, as MCAP has it."""
    text: str = types().generate_msgdef(kind, ros_version=2)[0]
    return text.encode()


def _built(kind: str, values: Message) -> Any:
    """Message of the library, from its fields."""
    from rosbags.interfaces import Nodetype

    built = {}
    for name, (node, inner) in types().get_msgdef(kind).fields:
        value = values[name]
        if node == Nodetype.NAME:
            value = _built(inner, value)
        elif node in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            (inner_node, inner_kind), _ = inner
            if inner_node == Nodetype.NAME:
                value = [_built(inner_kind, one) for one in value]
            elif isinstance(value, bytes):
                value = np.frombuffer(value, np.uint8)
            else:
                value = np.asarray(value, inner_kind[0])
        built[name] = value
    return types().types[kind](**built)


def check_installed() -> None:
    """Raise an `InputError` if the packages that write MCAP are not installed."""
    if not all(map(importlib.util.find_spec, ("mcap", "rosbags"))):
        raise MissingPackageError("ROS messages need the packages mcap and rosbags", "ros")


def write_recording(
    path: str | os.PathLike[str],
    frames: Iterable[tuple[float, DepthImage]],
    *,
    frame_id: str = FRAME_ID,
    overwrite: bool = False,
) -> None:
    """Write depth images into one MCAP recording, completely or not at all.

    The topics are `/depth/image` (32FC1, metres, NaN for no depth), `/depth/sigma` (32FC1, metres),
    `/depth/image_raw` (16UC1, millimetres, 0 for no depth; left out of frames whose depths do not
    fit), `/depth/disparity` (`stereo_msgs/DisparityImage`, if the baseline is known),
    `/depth/camera_info`, and `/depth/points` (organised); all with the same stamp. Images have
    times in seconds since 1970; each is asked for when the one before is written. `frame_id` is the
    frame of the left camera, an optical one.
    """
    check_installed()
    with atomic.replacing(path, overwrite=overwrite) as file:
        _write(file, frames, frame_id)


def encode(image: DepthImage) -> bytes:
    """MCAP recording of one depth image, at the time 0."""
    check_installed()
    buffer = io.BytesIO()
    _write(buffer, [(0.0, image)], FRAME_ID)
    return buffer.getvalue()


def _write(file: Any, frames: Iterable[tuple[float, DepthImage]], frame_id: str) -> None:
    from mcap.writer import Writer

    writer: Any = Writer(file)
    writer.start(profile="ros2")
    channels: dict[str, int] = {}
    for number, (time_s, image) in enumerate(frames):
        time_ns = round(1e9 * time_s)
        for topic, kind, message in _messages(image, header_ns(time_ns, frame_id)):
            if topic not in channels:
                schema = writer.register_schema(kind, "ros2msg", definition(kind))
                channels[topic] = writer.register_channel(topic, "cdr", schema)
            writer.add_message(channels[topic], time_ns, cdr(kind, message), time_ns, number)
    writer.finish()


def _messages(image: DepthImage, head: Message) -> Iterable[tuple[str, str, Message]]:
    yield "/depth/camera_info", CAMERA_INFO, camera_info(image, head)
    yield "/depth/image", IMAGE, image_32fc1(image.depth_m, head)
    with suppress(InputError):  # told by the documentation: the topic is there if all depths fit
        yield "/depth/image_raw", IMAGE, depth_16uc1(image.depth_m, head)
    if image.sigma_m is not None:
        yield "/depth/sigma", IMAGE, image_32fc1(image.sigma_m, head)
    if image.baseline_m is not None:
        found = disparity_image(image.depth_m, check_camera(image), image.baseline_m, head)
        yield "/depth/disparity", DISPARITY, found
    yield "/depth/points", POINTS, point_cloud(image, head)
