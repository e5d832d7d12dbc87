"""Design of a camera: optics or a wish in, errors of depth or cameras out, before one is built.

camera       camera on paper: optics, sensor, size
limits       blur, disparity and Cramér-Rao bound of the depth, by cue
wall         texture and noise that a prediction assumes
window_fit   errors of the window fit of `joint`, computed from a texture
error_model  those errors tabulated, and the ratio of measured to computed ones
predict      errors over depth, working range and what follows from the geometry
verify       planes that are simulated and measured, and frames per second
candidates   real sensors and stock lenses, and many cameras at once, as arrays
search       the smallest, brightest and most exact camera, and the front between them
tolerances   effects of mounting errors and warmth, and what is allowed
report       all that is known of a design, for tables and JSON, and its rig file
"""

from d3s.lab.design.camera import Camera
from d3s.lab.design.candidates import FixedValues, Requirements
from d3s.lab.design.predict import ErrorLimit, Prediction, predict
from d3s.lab.design.search import Search, search
from d3s.lab.design.tolerances import tolerances
from d3s.lab.design.verify import verify
from d3s.lab.design.wall import Lighting, Wall

__all__ = [
    "Camera",
    "ErrorLimit",
    "FixedValues",
    "Lighting",
    "Prediction",
    "Requirements",
    "Search",
    "Wall",
    "predict",
    "search",
    "tolerances",
    "verify",
]
