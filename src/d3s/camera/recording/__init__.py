"""Recordings: frames of a camera in one MCAP file, and frames again out of it.

Frames and depth come in as they are made; a file that Foxglove, Lichtblick and ROS 2 open comes
out, also if the process is killed or the disk is full. Frames come back bit for bit.

writer       `RecordingWriter`: writes one frame after the other; `Recorder`: in a thread of its own
reader       `Recording`: the frames of a recording, as a source; facts of it, for people
conversion   recordings to ROS 2 bags and to folders of images, and back; mended; estimated again
mcap         the MCAP file as it is written and read; topics and the types of their messages
"""

from d3s.camera.recording.reader import Recording
from d3s.camera.recording.writer import Recorder, RecordingWriter

__all__ = ["Recorder", "Recording", "RecordingWriter"]
