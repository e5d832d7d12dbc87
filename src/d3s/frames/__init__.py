"""Where frames come from, by one protocol.

A source yields frames: a rectified pair or a raw frame of the sensor, as float32 images with full
scale 1 or as the integers of the sensor, with a number, a name, times and remarks. A frame that
cannot be read is an outcome too, `Refused`, and the next one follows.

frame         `Frame`, `Refused`, and the protocol `Source`
loading       `load_pair`: a pair of views from files; `FileSource`: the frames of many files
pairing       `find_frames`: which files belong together
video         video files
source_names  `open_source`: a source by a word of the command line; frames from Zarr arrays
"""

from d3s.frames.frame import CameraSettings, Frame, Refused, Setting, Source
from d3s.frames.loading import FileSource, LoadedPair, load_pair
from d3s.frames.pairing import FoundFiles, FrameFiles, find_frames
from d3s.frames.source_names import SourceOptions, open_source

__all__ = [
    "CameraSettings",
    "FileSource",
    "FoundFiles",
    "Frame",
    "FrameFiles",
    "LoadedPair",
    "Refused",
    "Setting",
    "Source",
    "SourceOptions",
    "find_frames",
    "load_pair",
    "open_source",
]
