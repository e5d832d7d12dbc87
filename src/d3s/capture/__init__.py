"""Where frames come from, by one protocol.

A source yields frames: a rectified pair or a raw frame of the sensor, as float32 images with full
scale 1, with a number, a name, a time stamp and remarks. A frame that cannot be read is an outcome
too, `Refused`, and the next one follows. Files are the first source.

frames      `Frame`, `Refused`, and the protocol `Source`
files       `load_pair`: a pair of views from files; `FileSource`: the frames of many files
pairing     `find_frames`: which files belong together
"""

from d3s.capture.files import FileSource, LoadedPair, load_pair
from d3s.capture.frames import Frame, Refused, Source
from d3s.capture.pairing import FoundFiles, FrameFiles, find_frames

__all__ = [
    "FileSource",
    "FoundFiles",
    "Frame",
    "FrameFiles",
    "LoadedPair",
    "Refused",
    "Source",
    "find_frames",
    "load_pair",
]
