"""Design of a camera: optics or a wish in, errors of depth or cameras out, before one is built.

limits       blur, disparity and Cramér-Rao bound of the depth at each depth of a range
camera       camera on paper: optics, sensor, size
light        noise of a pixel, given or from light and exposure
wall         texture that a prediction assumes
window_fit   errors of the window fit of `joint`, computed from a texture
bound        Cramér-Rao bound of its windows on a texture, by cue
error_model  ratio of measured to computed errors, from the twin
predict      errors over depth, working range and what follows from the geometry
speed        frames per second on this machine
verify       planes that are simulated and measured, beside the prediction
table        errors over blur and diffraction, tabulated for many cameras
catalogue    real sensors and stock lenses, with their sources
wish         reach, error, size, field and light; and what is given
candidates   many cameras at once, as arrays
search       the smallest, brightest and most exact camera, and the front between them
tolerances   effects of mounting errors and warmth, and what is allowed
report       all that is known of a design, for tables and JSON
design_file  rig file of a design
"""

from d3s.lab.design.camera import Camera
from d3s.lab.design.light import Light
from d3s.lab.design.predict import ErrorWish, Prediction, predict
from d3s.lab.design.search import Search, search
from d3s.lab.design.tolerances import tolerances
from d3s.lab.design.verify import verify
from d3s.lab.design.wall import Wall
from d3s.lab.design.wish import Given, Wish

__all__ = [
    "Camera",
    "ErrorWish",
    "Given",
    "Light",
    "Prediction",
    "Search",
    "Wall",
    "Wish",
    "predict",
    "search",
    "tolerances",
    "verify",
]
