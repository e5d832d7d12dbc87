"""Places that both halves show; rows, roll, scale and turn between the halves from them.

Places are found by the matcher of the calibration, which follows one flat board. A scene on the
bench has several depths, so that each window begins at the shift of its own feature, and not at
that of a common homography.

With (u, v) a place in the left half from the axis of its lens, a match in the right half lies lower
by::

    rows + roll u + scale v - turn (d - mean d)

d is the disparity. The last term is that of a baseline that is turned against the rows: rows then
differ with the distance. On a plane, d is linear in u and v, and the turn looks like roll and
scale; it is told apart only by scenes with several depths. A prior keeps it small elsewhere.
"""

import math
from typing import NamedTuple

import numpy as np

from d3s.calibrate.fields import Fields
from d3s.calibrate.matches import HALF_WINDOW_PX, is_within
from d3s.calibrate.registration import (
    FEWEST_FEATURES,
    ReducedView,
    agreeing_features,
    align_windows,
    make_view,
    similarity_link,
)
from d3s.calibrate.robust import apply_homography
from d3s.camera.align.light import FrameLight
from d3s.camera.align.quantities import Reading, unknown
from d3s.check.drift import BlockSamples, fit_groups
from d3s.rig import Calibration, Optics
from d3s.rig.calibration import view_to_raw_matrices
from d3s.runtime.parallel import run_together
from d3s.types import FloatArray, Image

_AWAY_PX = 4.0  # of the small pictures: rows of a feature from those of most features
_NEAREST_PX = 60.0  # of the small pictures: disparity from that of most features
_BIN_PX = 3.0  # windows of one bin of disparity start at its middle; they converge from 4 px
_CELL_PX = 18  # one window in each cell of the small picture
_LARGEST_SIGMA_PX = 0.3  # of the small pictures
NO_TEXTURE = "no texture: show a wall or a board with fine print or leaves all over"
DIFFERENT_VIEWS = "the halves do not show the same things: is each lens before its half?"


class Matched(NamedTuple):
    """The same places in both halves of a frame, in pixels of the raw frame."""

    left_px: FloatArray  # (places, 2): x, y
    right_px: FloatArray
    sigma_px: FloatArray  # (places,)
    problem: str = ""  # why there are none

    @property
    def size(self) -> int:
        """Number of places."""
        return self.sigma_px.size


def match_halves(image: Image, fields: Fields) -> Matched:
    """Find places that both halves of a raw frame show."""
    left, right = run_together(
        *(
            lambda camera=camera, box=box: make_view(
                image, box, fields.mask(camera), with_sift=False
            )
            for camera, box in enumerate((fields.left, fields.right))
        )
    )
    if min(len(view.orb.places_px) for view in (left, right)) < FEWEST_FEATURES:
        return _none(NO_TEXTURE)
    places = agreeing_features(left.orb, right.orb)
    link = similarity_link(places)
    if link is None:
        return _none(DIFFERENT_VIEWS if len(places[0]) > 4 * FEWEST_FEATURES else NO_TEXTURE)
    off = places[1] - apply_homography(link.matrix, places[0])
    near = (np.abs(off[:, 1]) < _AWAY_PX) & (np.abs(off[:, 0]) < _NEAREST_PX)
    return _windows(left, right, link.matrix, places[0][near], off[near, 0])


def _none(problem: str) -> Matched:
    return Matched(np.empty((0, 2)), np.empty((0, 2)), np.empty(0), problem)


def _windows(
    left: ReducedView,
    right: ReducedView,
    matrix: FloatArray,
    places_px: FloatArray,
    shift_px: FloatArray,
) -> Matched:
    """Windows at features, each found from the disparity of its feature."""
    centres = np.rint(places_px)
    cells = np.floor(centres / _CELL_PX) @ (1.0, 1e4)
    _, first = np.unique(cells, return_index=True)
    centres, bins = centres[first], np.rint(shift_px[first] / _BIN_PX)
    found = np.full(centres.shape, np.nan)
    sigma = np.full(len(centres), np.nan)
    for number in np.unique(bins):
        own = bins == number
        moved = np.array([[1, 0, number * _BIN_PX], [0, 1, 0], [0, 0, 1]]) @ matrix
        aligned = align_windows(left.picture, right.spline, moved, centres[own], HALF_WINDOW_PX)
        found[own], sigma[own] = aligned.places_px, aligned.sigma_px
    good = (sigma < _LARGEST_SIGMA_PX) & np.isfinite(found).all(axis=1)
    good[good] &= is_within(left, centres[good]) & is_within(right, found[good])
    if np.count_nonzero(good) < FEWEST_FEATURES:
        return _none(NO_TEXTURE)
    return Matched(
        left.raw_px(centres[good]), right.raw_px(found[good]), sigma[good] * right.step_px
    )


# Transform ----------------------------------------------------------------------------------------

ROWS_PX = 5.0
ROLL_RAD = np.radians(0.3)
SCALE = 0.005
TURN_RAD = np.radians(1.0)
_TURN_PRIOR_RAD = np.radians(1.5)
_BEND_PX = 1.0  # rows that distortion adds at the side of a field
_PLACE_SIGMA_PX = 0.1  # error of a match that its sigma does not show
_FLAT = "show things near and far: on one plane it cannot be told from roll"
_CORNER = "texture in one corner only: show texture all over"


class LensAxes(NamedTuple):
    """Axes of both lenses in the raw frame, and the transform that matches should have."""

    axes_px: FloatArray  # (2, 2): x, y of the left and the right lens
    side_px: float  # half the side of a field
    to_right: FloatArray | None  # (2, 3): left half to right half at infinity, of a calibration

    @property
    def targets(self) -> dict[str, float]:
        """Targets of rows, roll and scale: 0, or as calibrated."""
        if self.to_right is None:
            return {"rows_px": 0.0, "roll_rad": 0.0, "scale": 0.0}
        linear = self.to_right[:, :2]
        rows = self.to_right @ [*self.axes_px[0], 1.0] - self.axes_px[1]
        return {
            "rows_px": float(rows[1]),
            "roll_rad": float(np.arctan2(linear[1, 0], linear[0, 0])),
            "scale": float(np.sqrt(np.linalg.det(linear)) - 1),
        }


def axes_frame(
    optics: Optics,
    calibration: Calibration | None,
    shape: tuple[int, int],
    *,
    middle_px: float,
    left_side: int,
) -> LensAxes:
    """Axes of both lenses as designed, beside the partition."""
    half_px = optics.baseline_m / optics.pixel_pitch_m / 2
    row = (shape[0] - 1) / 2
    axes = np.array(
        [[middle_px + left_side * half_px, row], [middle_px - left_side * half_px, row]]
    )
    to_right = None
    if calibration is not None:
        left, right = (
            np.vstack([one, [0.0, 0.0, 1.0]]) for one in view_to_raw_matrices(calibration)
        )
        to_right = (right @ np.linalg.inv(left))[:2]
    return LensAxes(axes, min(shape[0], shape[1] / 2) / 2, to_right)


class HalfTransform(NamedTuple):
    """Transform from the left to the right half, and the disparity of each match."""

    values: FloatArray  # (4,): rows in px, roll, scale, turn
    sigmas: FloatArray
    disparity_px: FloatArray  # (places,): along the rows; its zero is that of the design
    groups: FloatArray  # (places,): ninth of the field
    is_absolute: bool  # whether the disparity of infinity is known, from a calibration


def fit_geometry(matched: Matched, frame: LensAxes) -> HalfTransform | None:
    """Fit rows, roll, scale and turn; None if the places lie in one part of the field."""
    left, right = matched.left_px - frame.axes_px[0], matched.right_px - frame.axes_px[1]
    u, v = left.T / frame.side_px
    cells = np.clip(np.floor(1.5 * (left / frame.side_px + 1)), 0, 2)
    groups = 3 * cells[:, 1] + cells[:, 0]
    sigmas = np.hypot(matched.sigma_px, _PLACE_SIGMA_PX)
    roll, scale = 0.0, 0.0
    for _ in range(2):
        # Roll and scale move matches along the rows too.
        disparity = (1 + scale) * left[:, 0] - roll * left[:, 1] - right[:, 0]
        away = disparity - np.median(disparity)
        terms = np.stack([np.ones_like(u), u, v, -away, u * u, u * v, v * v], axis=1)
        prior = np.array([np.inf, np.inf, np.inf, _TURN_PRIOR_RAD, *[_BEND_PX] * 3])
        samples = BlockSamples(terms, right[:, 1] - left[:, 1], sigmas, groups)
        fit = fit_groups(samples, prior)
        if fit is None:
            return None
        units = np.array([1.0, 1 / frame.side_px, 1 / frame.side_px, 1.0])
        values, spread = fit.values[:4] * units, fit.sigmas[:4] * units
        roll, scale = float(values[1]), float(values[2])
    if frame.to_right is not None:  # from the disparity of infinity, which a calibration knows
        ends = matched.left_px @ frame.to_right[:, :2].T + frame.to_right[:, 2]
        disparity = ends[:, 0] - matched.right_px[:, 0]
    return HalfTransform(values, spread, disparity, groups, frame.to_right is not None)


def geometry_readings(
    found: HalfTransform | None,
    frame: LensAxes,
    optics: Optics,
    *,
    problem: str = "",
    distance_m: float | None = None,
) -> list[Reading]:
    """Readings of rows, roll, scale and turn."""
    targets = frame.targets
    if frame.to_right is None:
        # Two lenses of one kind: the one that focuses nearer is farther away, and magnifies more.
        powers = optics.optical_power_right_dpt - optics.optical_power_left_dpt
        targets["scale"] = optics.sensor_distance_m * powers
    limits = {"rows_px": ROWS_PX, "roll_rad": ROLL_RAD, "scale": SCALE, "turn_rad": TURN_RAD}
    targets["turn_rad"] = 0.0
    if found is None:
        reason = problem or _CORNER
        return [unknown(name, targets[name], limits[name], reason) for name in limits]
    where = "distance not known" if distance_m is None else f"at {distance_m:.2f} m"
    off = {name: float(found.values[number]) - targets[name] for number, name in enumerate(limits)}
    amounts = {
        "rows_px": f"{abs(off['rows_px']) * optics.pixel_pitch_m * 1e6:.0f} µm, or turn the plate "
        f"{'clockwise' if off['rows_px'] > 0 else 'counter-clockwise'} by "
        f"{np.degrees(abs(off['rows_px']) * optics.pixel_pitch_m / optics.baseline_m):.2f}°",
        "scale": f"{abs(off['scale']) * optics.sensor_distance_m * 1e6:.0f} µm",
    }
    notes = {"rows_px": where}
    if distance_m is not None:
        turned = -float(found.values[3]) * float(optics.disparity_px(distance_m))
        notes["rows_px"] += f", {turned:+.1f} px of it from the baseline's turn"
    readings = [
        Reading(
            name,
            float(found.values[number]),
            float(found.sigmas[number]),
            targets[name],
            limits[name],
            note=notes.get(name, ""),
            amount=amounts.get(name, ""),
        )
        for number, name in enumerate(limits)
    ]
    if found.sigmas[3] > 0.5 * _TURN_PRIOR_RAD:
        readings[3] = unknown("turn_rad", 0.0, TURN_RAD, _FLAT)
        readings[0] = readings[0]._replace(
            note=f"{where}; other distances have other rows if the baseline is turned"
        )
    return readings


GAIN_LIMIT = 0.03
_HALF_PX = 24  # of the windows whose means are compared
_STEP_PX = 3  # every third pixel of a window
_WINDOW_SIGMA = 0.01  # relative error of a window
_PLAIN_SIGMA = 0.02  # without texture, from white parts


def gain_reading(
    image: Image,
    light: FrameLight,
    matched: Matched,
    geometry: HalfTransform | None,
    frame: LensAxes,
) -> Reading:
    """Reading of the gain: log of the right half over the left one."""
    if light.fields is None:
        return unknown("gain", 0.0, GAIN_LIMIT, light.problem)
    if geometry is None:
        left, right = light.fields.light
        if min(left, right) <= 0:
            return unknown("gain", 0.0, GAIN_LIMIT, "one half is black: is a lens covered?")
        note = "from white parts, since there is no texture"
        return Reading("gain", math.log(right / left), _PLAIN_SIGMA, 0.0, GAIN_LIMIT, note=note)
    black = float(np.percentile(image[::16, ::16], 1))
    means = [_window_means(image, places) for places in (matched.left_px, matched.right_px)]
    lit = np.minimum(means[0], means[1]) - black > 0.02 * max(float(np.max(means)) - black, 1e-9)
    ratio = np.log((means[1][lit] - black) / (means[0][lit] - black))
    u, v = ((matched.left_px - frame.axes_px[0]) / frame.side_px)[lit].T
    radius = u * u + v * v
    terms = np.stack([np.ones_like(u), u, v, radius - radius.mean()], axis=1)
    sigmas = np.full(ratio.size, _WINDOW_SIGMA)
    fit = fit_groups(BlockSamples(terms, ratio, sigmas, geometry.groups[lit]), np.full(4, np.inf))
    if fit is None:
        return unknown("gain", 0.0, GAIN_LIMIT, "texture in one corner only: show it all over")
    return Reading("gain", float(fit.values[0]), float(fit.sigmas[0]), 0.0, GAIN_LIMIT)


def _window_means(image: Image, places_px: FloatArray) -> FloatArray:
    rows, cols = image.shape
    means = np.empty(len(places_px))
    for number, (x, y) in enumerate(np.rint(places_px).astype(int)):
        means[number] = image[
            max(y - _HALF_PX, 0) : min(y + _HALF_PX + 1, rows) : _STEP_PX,
            max(x - _HALF_PX, 0) : min(x + _HALF_PX + 1, cols) : _STEP_PX,
        ].mean()
    return means
