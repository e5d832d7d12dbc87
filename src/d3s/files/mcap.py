"""MCAP recordings with ROS 2 messages of depth, as Foxglove, rosbags and `ros2 bag` read them."""

import importlib.util
import io
import os
from collections.abc import Iterable
from typing import Any

from d3s import atomic
from d3s.errors import InputError
from d3s.files import ros_messages
from d3s.files.depth_image import DepthImage, points_of
from d3s.files.ros_messages import FRAME_ID, Message

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
        raise InputError(
            "MCAP needs the packages mcap and mcap-ros2-support: pip install 'd3s[ros]'."
        )


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
    metres), `/depth/camera_info` and `/depth/points`.

    Parameters
    ----------
    path
        The file to write.
    frames
        Times in seconds since 1970, and the depth images; `as_image` makes one of a depth map.
    frame_id
        Frame of the left camera, an optical one: x right, y down, z forward.
    overwrite
        Whether a file that holds something else may be replaced.

    Raises
    ------
    InputError
        When a camera is not known, or a package is missing.
    OutputError
        When the file cannot be written, or would replace another.
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
        head = ros_messages.header(time_s, frame_id)
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
    yield "/depth/camera_info", "CameraInfo", ros_messages.camera_info(image, head)
    yield "/depth/image", "Image", ros_messages.image_32fc1(image.depth_m, head)
    try:
        raw = ros_messages.depth_16uc1(image.depth_m, head)
    except InputError:  # told by the documentation: the topic is there if all depths fit
        raw = None
    if raw is not None:
        yield "/depth/image_raw", "Image", raw
    if image.sigma_m is not None:
        yield "/depth/sigma", "Image", ros_messages.image_32fc1(image.sigma_m, head)
    yield "/depth/points", "PointCloud2", ros_messages.point_cloud(points_of(image), head)
