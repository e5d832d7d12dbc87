"""Topics of a recording, and the types of their messages."""

from d3s.files.ros import CAMERA_INFO, DISPARITY, IMAGE

STRING = "std_msgs/msg/String"
RAW, RAW_CAMERA = "/camera/image_raw", "/camera/camera_info"
LEFT, RIGHT = "/left/image_rect", "/right/image_rect"
LEFT_CAMERA, RIGHT_CAMERA = "/left/camera_info", "/right/camera_info"
FRAME = "/d3s/frame"
"""Facts of each frame, as JSON: number, times, losses, full scale. One message for each frame."""
NOTE = "/d3s/note"
"""What is no frame, as JSON: frames that were refused."""
DEPTH, SIGMA, DEPTH_CAMERA = "/depth/image", "/depth/sigma", "/depth/camera_info"
DISPARITIES = "/depth/disparity"

SCHEMAS = {
    **dict.fromkeys((RAW, LEFT, RIGHT, DEPTH, SIGMA), IMAGE),
    **dict.fromkeys((RAW_CAMERA, LEFT_CAMERA, RIGHT_CAMERA, DEPTH_CAMERA), CAMERA_INFO),
    DISPARITIES: DISPARITY,
    **dict.fromkeys((FRAME, NOTE), STRING),
}
"""Type of the messages of each topic."""

RIG_NAME = "rig.toml"
"""Name of the attached rig file."""
NOTES_NAME = "d3s"
"""Name of the texts on the whole recording."""
END_NAME = "d3s_end"
"""Name of the sums at the end of a recording that was closed."""
