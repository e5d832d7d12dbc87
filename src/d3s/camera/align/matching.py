"""Places that both halves of a raw frame show, by the matcher of the calibration.

The calibration follows one flat board. A scene on the bench has several depths, so that each window
begins at the shift of its own feature, and not at that of a common homography.
"""

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
from d3s.runtime.parallel import run_together
from d3s.types import FloatArray, Image

_ROWS_PX = 4.0  # of the small pictures: rows of a feature from those of most features
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
    near = (np.abs(off[:, 1]) < _ROWS_PX) & (np.abs(off[:, 0]) < _NEAREST_PX)
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
