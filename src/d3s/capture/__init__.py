"""Where frames come from, by one protocol.

A source yields frames: a rectified pair or a raw frame of the sensor, as float32 images with full
scale 1 or as the integers of the sensor, with a number, a name, times and remarks. A frame that
cannot be read is an outcome too, `Refused`, and the next one follows. A camera is a source that
waits for its frames.

frames      `Frame`, `Refused`, and the protocol `Source`
opening     `open_source`: a source by a word of the command line
files       `load_pair`: a pair of views from files; `FileSource`: the frames of many files
pairing     `find_frames`: which files belong together
live_camera `LiveCamera`: a device that is watched, and opened again when it is lost
order       order and format of the frames of a camera
zarr_frames frames from Zarr arrays
device      the protocol of devices, and their pace
twin        a moving scene of the simulator as a device
fake        a device with faults by a script
video       video files
uvc         cameras on USB that OpenCV reads
basler      cameras of Basler
genicam     cameras with GenICam
"""

from d3s.capture.files import FileSource, LoadedPair, load_pair
from d3s.capture.frames import CameraSettings, Frame, Refused, Setting, Source
from d3s.capture.live_camera import Fault, FaultKind, LiveCamera
from d3s.capture.opening import SourceOptions, open_source
from d3s.capture.pairing import FoundFiles, FrameFiles, find_frames

__all__ = [
    "CameraSettings",
    "Fault",
    "FaultKind",
    "FileSource",
    "FoundFiles",
    "Frame",
    "FrameFiles",
    "LiveCamera",
    "LoadedPair",
    "Refused",
    "Setting",
    "Source",
    "SourceOptions",
    "find_frames",
    "load_pair",
    "open_source",
]
