"""Tolerances, against formulas of geometry worked by hand."""

import numpy as np
import pytest

from d3s.lab.design.camera import Camera
from d3s.lab.design.predict import ErrorLimit, predict
from d3s.lab.design.tolerances import (
    causes,
    error_before_m,
    tolerances,
)

CAMERA = Camera.paper_prototype()
WISH = ErrorLimit(error_m=0.01)


@pytest.fixture(scope="module")
def prediction():
    return predict(CAMERA, depths_m=[0.5, 1.0, 2.0])


@pytest.fixture(scope="module")
def found(prediction):
    return {one.cause: one for one in tolerances(prediction, WISH)}


def test_geometry_before_calibration(found):
    # 50 um beside its place are 25 px, and 2 m have 11.6 px: they seem to be beyond infinity.
    beside = found["lens beside its place, along the baseline"]
    assert beside.before_m == np.inf
    # A baseline that is 50 um too short: 2 m / (1 - 50 / 3840) - 2 m.
    longer = found["baseline longer than designed"]
    assert longer.before_m == pytest.approx(0.026385, rel=0.02)
    assert beside.calibrated_m == pytest.approx(longer.calibrated_m)
    assert longer.calibrated_m < 0.01


def test_offset_moves_a_plane_as_geometry_says(prediction):
    # One view is larger by 0.01 %: 0.096 px at 960 px from the axis, of 11.616 px at 2 m.
    (larger,) = (one for one in causes(CAMERA) if one.name.startswith("one view larger"))
    before = error_before_m(prediction, larger, 0.01, np.array([2.0]))
    assert before == pytest.approx(2 / (1 - 0.096 / 11.616) - 2, rel=0.02)


def test_rows_that_do_not_match_cost_depth(prediction):
    (across,) = (one for one in causes(CAMERA) if "across" in one.name)
    half_a_row, five_rows = (
        error_before_m(prediction, across, um, prediction.depth_m) for um in (1.0, 10.0)
    )
    assert (half_a_row > 1.1 * prediction.mae_m).all()
    assert np.isinf(five_rows).all()


def test_warmth_moves_the_views_apart_until_a_check(found):
    # Lens centres 3.84 mm apart on aluminium, above silicon: 21e-6 of it for each kelvin.
    steel, aluminium = found["warmth, steel"], found["warmth, aluminium"]
    share = 3.84e-3 * 21e-6 * 10 / 2e-6 / 11.616 + 23.6e-5
    assert aluminium.calibrated_m == pytest.approx(2 / (1 - share) - 2, rel=0.02)
    assert np.isnan(aluminium.before_m)
    assert aluminium.checked_m < 0.1 * aluminium.calibrated_m
    assert aluminium.loosest < steel.loosest < 10


def test_curved_field_acts_as_a_nearer_focus(found, prediction):
    # 1.18 of the focal length times tan² 9 degrees: 2.5 dioptres, all that 2 m can bear.
    (curved,) = (one for one in causes(CAMERA) if one.name.startswith("field curvature"))
    assert curved.focus_dpt[0] == pytest.approx(2.45, rel=0.02)
    assert len(curved.effects(1.0)) == 1
    assert 0.3 < found[curved.name].loosest < 1


def test_loosest_amount_is_where_the_wish_ends(found):
    aluminium = found["warmth, aluminium"]
    per_k = aluminium.calibrated_m / 10
    assert aluminium.loosest == pytest.approx(0.01 / per_k, rel=0.1)
    assert found["focus difference missed"].loosest > 15  # um, as much as it is


def test_wish_that_is_missed_allows_nothing(prediction):
    strict = tolerances(prediction, ErrorLimit(error_m=1e-5))
    assert all(one.loosest == 0 for one in strict)
