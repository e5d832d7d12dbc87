"""Cameras: sources of frames that are watched, and opened again when they are lost.

live_camera `LiveCamera`: a device that is watched: order and format of its frames
device      the bases of devices
twin        a moving scene of the simulator as a device
uvc         cameras on USB that OpenCV reads
basler      cameras of Basler
genicam     cameras with GenICam
"""

from d3s.camera.capture.live_camera import Fault, FaultKind, LiveCamera

__all__ = ["Fault", "FaultKind", "LiveCamera"]
