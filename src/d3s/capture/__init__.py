"""Where frames come from, by one protocol.

A source yields frames: a rectified pair or a raw frame of the sensor, as float32 images with full
scale 1 or as the integers of the sensor, with a number, a name, times and remarks. A frame that
cannot be read is an outcome too, `Refused`, and the next one follows. A camera is a source that
waits for its frames.

frames      `Frame`, `Refused`, and the protocols `Source` and `Camera`
files       `load_pair`: a pair of views from files; `FileSource`: the frames of many files
pairing     `find_frames`: which files belong together
"""

from d3s.capture.files import FileSource, LoadedPair, load_pair
from d3s.capture.frames import Camera, CameraSettings, Frame, Refused, Setting, Source
from d3s.capture.pairing import FoundFiles, FrameFiles, find_frames

__all__ = [
    "Camera",
    "CameraSettings",
    "FileSource",
    "FoundFiles",
    "Frame",
    "FrameFiles",
    "LoadedPair",
    "Refused",
    "Setting",
    "Source",
    "find_frames",
    "load_pair",
]
