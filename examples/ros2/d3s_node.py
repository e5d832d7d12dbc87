"""ROS 2 node: rectified views in; depth, sigma, disparity and points out, all with one stamp.

    python3 d3s_node.py --ros-args -r __ns:=/stereo -p rig:=rig.toml

It takes `left/image_rect`, `right/image_rect` and both `camera_info`, and gives `depth/image` and
`depth/sigma` (32FC1, metres), `depth/disparity`, `depth/camera_info` and organised `depth/points`.
Without a rig file the camera is that of the messages: any rectified pair.
"""

from typing import Any

import numpy as np

import d3s
from d3s.estimate.saving import as_image
from d3s.files import ros

INPUTS = {
    "left/image_rect": ros.IMAGE,
    "right/image_rect": ros.IMAGE,
    "left/camera_info": ros.CAMERA_INFO,
    "right/camera_info": ros.CAMERA_INFO,
}
OUTPUTS = {
    "depth/image": ros.IMAGE,
    "depth/sigma": ros.IMAGE,
    "depth/disparity": ros.DISPARITY,
    "depth/camera_info": ros.CAMERA_INFO,
    "depth/points": ros.POINTS,
}


def rig_of(left: Any, right: Any) -> d3s.Rig:
    """Camera of both `camera_info`."""
    focal_px, baseline_m = left.p[0], -right.p[3] / right.p[0]
    if not (focal_px > 0 and baseline_m > 0):
        raise d3s.errors.InputError(
            f"the right camera_info has p[3]={right.p[3]:g}: it must be -f B, below 0. Are left "
            "and right exchanged, or the views not rectified?"
        )
    return d3s.Rig.from_pinhole(
        focal_length_px=focal_px,
        baseline_m=baseline_m,
        principal_point_px=(left.p[2], left.p[6]),
        principal_point_right_px=(right.p[2], right.p[6]),
    )


def view_of(message: Any) -> np.ndarray:
    """Grey view of an image, floats with full scale 1."""
    pixels = ros.pixels_of(message)
    if pixels.ndim == 3:
        pixels = pixels.mean(axis=2) / 255
    scale = np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1
    return pixels.astype(np.float32) / np.float32(scale)


def answers(messages: dict[str, Any], rig: d3s.Rig | None = None) -> dict[str, ros.Message]:
    """Fields of the messages of all outputs, of one message of each input."""
    left, right = (messages[f"{side}/image_rect"] for side in ("left", "right"))
    camera = rig or rig_of(messages["left/camera_info"], messages["right/camera_info"])
    found = as_image(d3s.estimate(view_of(left), view_of(right), camera))
    stamp = left.header.stamp
    head = ros.header_ns(10**9 * stamp.sec + stamp.nanosec, left.header.frame_id)
    optics = camera.optics
    return {
        "depth/image": ros.image_32fc1(found.depth_m, head),
        "depth/sigma": ros.image_32fc1(found.sigma_m, head),
        "depth/disparity": ros.disparity_image(
            found.depth_m, optics.focal_length_px, optics.baseline_m, head
        ),
        "depth/camera_info": ros.camera_info(found, head),
        "depth/points": ros.point_cloud(found, head),
    }


def main() -> None:
    """Run the node until Ctrl-C."""
    import message_filters
    import rclpy
    from rclpy.qos import qos_profile_sensor_data as sensor_data
    from rosidl_runtime_py.set_message import set_message_fields
    from rosidl_runtime_py.utilities import get_message

    rclpy.init()
    node = rclpy.create_node("d3s")
    path = node.declare_parameter("rig", "").value
    rig = d3s.Rig.load(path) if path else None
    publishers = {
        topic: node.create_publisher(get_message(kind), topic, 1) for topic, kind in OUTPUTS.items()
    }

    def work(*messages: Any) -> None:
        try:
            found = answers(dict(zip(INPUTS, messages, strict=True)), rig)
        except d3s.errors.D3SError as error:
            node.get_logger().warning(str(error), throttle_duration_sec=5.0)
            return
        for topic, fields in found.items():
            message = get_message(OUTPUTS[topic])()
            set_message_fields(message, fields)
            publishers[topic].publish(message)

    subscribers = [
        message_filters.Subscriber(node, get_message(kind), topic, qos_profile=sensor_data)
        for topic, kind in INPUTS.items()
    ]
    message_filters.TimeSynchronizer(subscribers, 2).registerCallback(work)
    rclpy.spin(node)


if __name__ == "__main__":
    main()
