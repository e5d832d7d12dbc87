"""The claims of the project: one table of sentences, figures, tolerances and what measures them.

`make claims` prints them measured and writes docs/results.md; `make test` holds the fast ones. A
figure is what the defaults gave when it was claimed, by fixed seeds: it may move by its tolerance,
since sums in another order and another machine round differently. A bound is not to be passed.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

import measures_camera as camera
import measures_depth as depth
from measures_depth import planes, scenes

RIVALS = ("joint", "li2010", "takeda2013", "phase", "bm", "consensus", "sgbm", "guo2017")
"""Methods in the order of their error on the planes of the small league."""
ROUNDING = 0.03
"""Tolerance of a figure: a choice between two windows that agree just so may fall otherwise."""


@dataclass(frozen=True)
class Claim:
    """A sentence with its figure, and the call that measures it.

    `figure` is "about" it (within the share `tolerance`), "at most" or "at least" it. `slow`
    claims are left out of `make test`. `needs` is what not every machine has: a folder that an
    environment variable names, a quiet machine, for times.
    """

    name: str
    says: str
    rule: str
    figure: float
    unit: str
    measure: Callable[[], float] = field(repr=False)
    tolerance: float = 0.0
    slow: bool = False
    needs: str = ""

    def holds(self, measured: float) -> bool:
        """Whether a measured figure is as claimed; NaN never is."""
        if self.rule == "at most":
            return measured <= self.figure
        if self.rule == "at least":
            return measured >= self.figure
        return abs(measured - self.figure) <= self.tolerance * abs(self.figure)

    @property
    def bound(self) -> str:
        """What is claimed, in words."""
        exact = self.rule == "about" and not self.tolerance
        return self.shown(self.figure) if exact else f"{self.rule} {self.shown(self.figure)}"

    def shown(self, figure: float) -> str:
        """Return a figure with its unit, with the digits that count."""
        return f"{figure:.{9 if 0 < self.tolerance < 1e-3 else 4}g} {self.unit}".strip()

    @property
    def is_timed(self) -> bool:
        """Whether it is a ratio of times, which no test asserts."""
        return self.needs == "a quiet machine"

    @property
    def missing(self) -> str:
        """What keeps it from being measured here, in words; empty if nothing does."""
        if self.needs.startswith("D3S_") and not os.environ.get(self.needs):
            return f"the environment variable {self.needs} names no folder"
        return ""


def about(name, says, figure, unit, measure, tolerance=ROUNDING, **more) -> Claim:
    """Claim a figure that is measured again within a tolerance."""
    return Claim(name, says, "about", figure, unit, measure, tolerance, **more)


def at_most(name, says, figure, unit, measure, **more) -> Claim:
    """Claim an upper bound."""
    return Claim(name, says, "at most", figure, unit, measure, **more)


def at_least(name, says, figure, unit, measure, **more) -> Claim:
    """Claim a lower bound."""
    return Claim(name, says, "at least", figure, unit, measure, **more)


SLOW = {"slow": True}
DATA = {"slow": True, "needs": "D3S_MIDDLEBURY"}
ROOMS = {"slow": True, "needs": "D3S_ROOMS"}
TIME = {"slow": True, "needs": "a quiet machine"}
ALL_DRIFTS = tuple(camera.DRIFT)

# fmt: off
PLANES = [
    about("planes-error", "walls of held-out textures, 0.25 to 2 m: mean error",
          0.08514, "cm", lambda: planes().mae_cm),
    about("planes-error-2m", "the same at 2 m",
          0.2247, "cm", lambda: planes(depths_m=(2.0,)).mae_cm),
    at_most("planes-worst", "largest mean error of a texture at a depth",
            1.0, "cm", depth.worst_plane_cm),
    about("planes-density", "pixels of walls with a depth",
          99.33, "%", lambda: planes().density, 0.005),
    about("planes-1-sigma", "errors on walls within sigma; 68 is right",
          71.25, "%", lambda: planes().within(1)),
    at_least("planes-3-sigma", "errors on walls within 3 sigma; 99.7 is right",
             99.0, "%", lambda: planes().within(3)),
    about("planes-noise", "mean error with 3 % noise, 0.5 to 2 m",
          0.2426, "cm", partial(depth.noisy, "mae_cm")),
    about("planes-over-sgbm", "error on walls over that of SGBM",
          0.1636, "", lambda: planes().mae_cm / planes("sgbm").mae_cm),
    about("plane-median", "median depth of a wall at 1 m, to a millionth",
          0.999964595, "m", depth.depth_of_a_plane_m, 1e-6),
]
SCENES = [
    about("scenes-error", "random scenes with edges and slopes: mean error",
          0.1066, "cm", lambda: scenes().mae_cm),
    about("scenes-density", "pixels of scenes with a depth",
          71.89, "%", lambda: scenes().density, 0.01),
    about("scenes-edges", "mean error within 16 px of a jump of depth",
          0.1618, "cm", lambda: scenes(edges=True).mae_cm, 0.05),
    about("scenes-1-sigma", "errors in scenes within sigma",
          70.22, "%", lambda: scenes().within(1)),
    at_least("scenes-3-sigma", "errors in scenes within 3 sigma",
             98.5, "%", lambda: scenes().within(3)),
    about("weak-error", "scenes with plain and weak walls: mean error",
          0.3527, "cm", lambda: scenes("weak").mae_cm, 0.05),
    about("weak-density", "pixels of weak scenes with a depth",
          37.67, "%", lambda: scenes("weak").density),
    at_most("weak-bad", "depths of weak scenes more than 2 cm wrong",
            1.0, "%", lambda: scenes("weak").above(2)),
    at_least("weak-1-sigma", "errors in weak scenes within sigma",
             65.0, "%", lambda: scenes("weak").within(1)),
    at_least("weak-3-sigma", "errors in weak scenes within 3 sigma",
             97.5, "%", lambda: scenes("weak").within(3)),
    about("slopes-1-sigma", "errors on slopes within sigma",
          70.54, "%", lambda: depth.slopes().within(1)),
    at_least("slopes-3-sigma", "errors on slopes within 3 sigma",
             99.0, "%", lambda: depth.slopes().within(3)),
]
# Sigma also holds what the texture does, which stays when only the noise is drawn anew.
SIGMA = [
    about("sigma", "sigma over the spread of 24 draws of the noise, 1 m",
          1.103, "", depth.sigma_over_spread, 0.05),
]
# Depths may differ by a hundredth of sigma where a change of views rounds them otherwise.
ROBUST = [
    at_most("blind", "pixels with a depth in black, grey, white pairs and under a covered lens",
            0, "px", depth.blind_depths),
    at_most("chance", "pixels with a depth where the views are independent noise",
            0.1, "%", depth.depths_by_chance),
    at_most("threads-bytes", "bytes that change with two threads and four times the light",
            0, "", depth.bytes_that_differ),
    at_most("gain", "depths that change with the gain 1.7",
            0.1, "%", partial(depth.moved_depths, lambda view: 1.7 * view)),
    at_most("offset", "depths that change with the offset 0.5",
            0.1, "%", partial(depth.moved_depths, lambda view: view + 0.5)),
    at_most("flip", "depths that change if both views are upside down",
            0.1, "%", partial(depth.moved_depths, np.flipud, np.flipud)),
    at_most("shift", "typical change of a depth if four rows are cut off",
            0.01, "sigma", depth.moved_by_a_cut),
    at_most("false-alarms", "good walls and scenes with a warning, of 24",
            0, "", depth.false_alarms),
    at_least("faults-named", "swapped, shifted, darker, clipped and plain pairs that are named",
             100, "%", depth.named_faults),
]
DENSE = [
    about("dense-density", "weak scenes filled: pixels with a depth",
          54.59, "%", lambda: depth.filled()[0].density),
    at_least("dense-3-sigma", "errors of filled pixels within 3 sigma",
             97.5, "%", lambda: depth.filled()[1].within(3)),
    about("dense-gain", "error of filled pixels over that of the nearest measured one",
          0.168, "", lambda: depth.filled()[1].mae_cm / depth.filled()[2].mae_cm, 0.1),
    about("fuse-sigma", "fall of sigma over 8 fused frames",
          2.212, "x", depth.fall_of_sigma),
]
OTHERS = [
    about("consensus-near", "the paper's algorithm, by the optics alone: error at 0.3 m",
          0.07248, "cm", lambda: depth.on_plane(0.3, "brick", "consensus").mae_cm),
    about("consensus-tuned", "the same tuned, as the paper tunes it: error at 1 m",
          0.2192, "cm", lambda: depth.on_plane(1.0, "brick", "tuned").mae_cm),
    about("consensus-range", "the same: farthest of ten depths with an error below 1 cm",
          2.0, "m", depth.consensus_range_m, 0.01, **SLOW),
    at_least("league-first", "sections of a small `d3s compare`, of 4, that `joint` leads",
             4, "", partial(depth.sections_led, "joint"), **SLOW),
    about("league-planes", "`joint` on its planes, at the common density",
          0.07992, "cm", partial(depth.common_mae_cm, "planes", "joint"), **SLOW),
    about("league-consensus", "`consensus` on its planes, at the common density",
          0.3057, "cm", partial(depth.common_mae_cm, "planes", "consensus"), **SLOW),
    about("league-order", "order of eight methods on its planes: neighbours in place, of 7",
          7, "", partial(depth.in_order, "planes", *RIVALS), 0.0, **SLOW),
    at_least("lenses-first", "sections, of 4, that `joint` leads with typical lenses, calibrated",
             4, "", partial(depth.sections_led, "joint", "typical"), **SLOW),
    about("lenses-planes", "`joint` on planes through typical lenses",
          0.1382, "cm", partial(depth.common_mae_cm, "planes", "joint", "typical"), **SLOW),
    about("lenses-sides", "`joint` at the sides of their field",
          0.1917, "cm", depth.side_mae_cm, 0.05, **SLOW),
]
STEREO = [
    about("middlebury-density", "Middlebury 2014, seven scenes: pixels with a depth",
          63.0, "%", partial(depth.of_stereo, "density"), **DATA),
    about("middlebury-bad-1", "disparities more than 1 px wrong",
          1.631, "%", partial(depth.of_stereo, "bad_1"), 0.05, **DATA),
    about("middlebury-bad-1-sgbm", "those of SGBM thinned to the same density",
          3.786, "%", depth.thinned_sgbm, 0.05, **DATA),
    about("middlebury-1-sigma", "errors within sigma",
          77.86, "%", partial(depth.of_stereo, "coverage_1"), **DATA),
    about("middlebury-2-sigma", "errors within 2 sigma",
          94.1, "%", partial(depth.of_stereo, "coverage_2"), 0.01, **DATA),
    about("middlebury-3-sigma", "errors within 3 sigma",
          97.62, "%", partial(depth.of_stereo, "coverage_3"), 0.01, **DATA),
    about("rooms-density", "eight path-traced rooms: pixels with a depth",
          39.4, "%", lambda: depth.rooms().density, **ROOMS),
    about("rooms-error", "mean error in rooms",
          0.63, "cm", lambda: depth.rooms().mae_cm, 0.05, **ROOMS),
    about("rooms-1-sigma", "errors in rooms within sigma",
          62, "%", lambda: depth.rooms().within(1), **ROOMS),
    about("rooms-3-sigma", "errors in rooms within 3 sigma",
          94, "%", lambda: depth.rooms().within(3), 0.01, **ROOMS),
]
CAMERA = [
    at_most("split-place", "views read at fractions of a pixel: largest error",
            1e-3, "", camera.split_error),
    at_most("split-bytes", "bytes of views that change with threads or a saved and loaded rig",
            0, "", camera.split_bytes_that_differ),
    about("drift-found", "roll, scale, rows and gain drifted together: those that are named",
          4, "", lambda: len(camera.drift(*ALL_DRIFTS)), 0.0),
    at_most("drift-size", "largest difference between a drift as found and as it is",
            20, "%", partial(camera.worst_drift, *ALL_DRIFTS)),
    at_most("drift-alarms", "drifts that are seen in a camera without",
            0, "", lambda: len(camera.drift())),
    at_least("drift-alone", "drifts that are named when each happens alone, of 4",
             4, "", camera.drifts_named, **SLOW),
    at_most("calibration-anchors", "a small perfect camera, calibrated: largest error of an anchor",
            0.1, "px", camera.anchor_error_px, **SLOW),
    at_most("calibration-roll", "its error of the roll, in degrees / 1000",
            10, "", camera.roll_error_mdeg, **SLOW),
    about("calibration-walls", "its error on walls of another texture, as disparity",
          0.005453, "px", camera.wall_error_px, 0.05, **SLOW),
    at_least("calibration-3-sigma", "errors on them within 3 sigma",
             95, "%", partial(camera.walls_within, 3), **SLOW),
    at_most("lenses-calibrated", "the same with lenses that distort, bend the field and darken",
            0.01, "px", partial(camera.wall_error_px, camera.LENSES), **SLOW),
    at_least("lenses-1-sigma", "errors on them within sigma",
             58, "%", partial(camera.walls_within, 1, camera.LENSES), **SLOW),
    at_least("lenses-3-sigma", "errors on them within 3 sigma",
             95, "%", partial(camera.walls_within, 3, camera.LENSES), **SLOW),
    # A region of a plane has some twenty independent windows: 15 to 20 % of scatter.
    at_most("design-prediction", "largest factor between predicted and simulated error, 0.4 to 2 m",
            1.4, "x", camera.worst_prediction),
    about("design-smallest", "smallest camera with 1 cm from 0.3 to 2 m: its longest side",
          3.629, "mm", camera.smallest_camera_mm, 0.02, **SLOW),
]
FRAMES = [
    at_most("live", "frames of 20 that the live pipeline loses, or shows as others",
            0, "", camera.lost_or_stale_frames),
    at_most("recorded", "frames that do not come back bit for bit from a recording",
            0, "", camera.recorded_frames_that_differ),
    at_most("resumed", "files that differ after `d3s depth` was cut short and resumed",
            0, "", camera.resumed_files_that_differ, **SLOW),
]
PAPER = [
    about("errata", "errata of the paper, each with its test",
          21, "", camera.errata_with_a_test, 0.0),
    at_least("reproduced", "figures and tables of the paper that `d3s reproduce --quick` makes",
             11, "", lambda: camera.reproduced()[0], **SLOW),
    about("reproduced-agree", "values of the paper that these confirm",
          24, "", lambda: camera.reproduced()[1], 0.0, **SLOW),
]
SPEED = [
    at_least("speed-sgbm", "time of SGBM over that of `joint`, 902 x 1802 px",
             2.1, "x", depth.speed_ratio, **TIME),
]
# fmt: on

TOPICS = {
    "Walls": PLANES,
    "Scenes": SCENES,
    "Sigma": SIGMA,
    "What must not matter": ROBUST,
    "Filled and fused": DENSE,
    "Consensus and rivals": OTHERS,
    "Stereo data and rooms": STEREO,
    "The camera": CAMERA,
    "Frames": FRAMES,
    "The paper": PAPER,
    "Speed": SPEED,
}
CLAIMS = [claim for claims in TOPICS.values() for claim in claims]
