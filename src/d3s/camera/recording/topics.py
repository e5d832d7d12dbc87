"""Topics of a recording, and the types of their messages."""

from d3s.camera.recording.cdr import CAMERA_INFO, IMAGE, STRING
from d3s.files.ros import DEFINITIONS

RAW = "/camera/image_raw"
LEFT, RIGHT = "/left/image_rect", "/right/image_rect"
FRAME = "/d3s/frame"
"""Facts of each frame, as JSON: number, times, losses, full scale. One message for each frame."""
NOTE = "/d3s/note"
"""What is no frame, as JSON: frames that were refused."""
DEPTH, SIGMA, DEPTH_CAMERA = "/depth/image", "/depth/sigma", "/depth/camera_info"

SCHEMAS = {
    RAW: IMAGE,
    LEFT: IMAGE,
    RIGHT: IMAGE,
    FRAME: STRING,
    NOTE: STRING,
    DEPTH: IMAGE,
    SIGMA: IMAGE,
    DEPTH_CAMERA: CAMERA_INFO,
}
"""Type of the messages of each topic."""

RIG_NAME = "rig.toml"
"""Name of the attached rig file."""
NOTES_NAME = "d3s"
"""Name of the texts on the whole recording."""
END_NAME = "d3s_end"
"""Name of the sums at the end of a recording that was closed."""


def definition(schema: str) -> str:
    """Definition of a type of messages."""
    return "string data" if schema == STRING else DEFINITIONS[schema]
