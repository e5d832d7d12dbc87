"""Recordings: frames of a camera in one MCAP file, and frames again out of it.

Frames and depth come in as they are made; a file that Foxglove, Lichtblick and ROS 2 open comes
out, also if the process is killed or the disk is full. Frames come back bit for bit.

recorder    `Recorder`: writes in a thread of its own, and counts what it must drop
writer      `RecordingWriter`: writes one frame after the other
reader      `Recording`: the frames of a recording, as a source
index       the places of frames in a file, also in one that was cut
describe    facts of a recording, for people
recover     a whole file of one that was cut
folders     recordings to folders of images, and back
bags        recordings to ROS 2 bags, and back
topics      names of the topics, and the types of their messages
mcap_file   the MCAP file as it is written
cdr         ROS 2 messages as bytes
"""

from d3s.camera.recording.reader import Recording
from d3s.camera.recording.recorder import Recorder
from d3s.camera.recording.writer import RecordingWriter

__all__ = ["Recorder", "Recording", "RecordingWriter"]
