"""Tolerances, against formulas of geometry worked by hand."""

import numpy as np
import pytest

from d3s.design.camera import Camera
from d3s.design.predict import ErrorWish, predict
from d3s.design.tolerances import blur_ratio, tolerances

CAMERA = Camera.paper_prototype()
WISH = ErrorWish(error_m=0.01)


@pytest.fixture(scope="module")
def prediction():
    return predict(CAMERA, depths_m=[0.5, 1.0, 2.0])


@pytest.fixture(scope="module")
def found(prediction):
    return {one.cause: one for one in tolerances(prediction, WISH)}


def test_geometry_before_calibration(found):
    # 50 um beside its place are 25 px: 4 m² / 23.232 px m per px at 2 m.
    beside = found["lens beside its place, along the baseline"]
    assert beside.before_m == pytest.approx(25 * 4 / 23.232, rel=1e-3)
    longer = found["baseline longer than designed"]
    assert longer.before_m == pytest.approx(2 * 50e-6 / 3.84e-3, rel=0.02)
    assert beside.calibrated_m == pytest.approx(longer.calibrated_m)
    assert longer.calibrated_m < 0.01


def test_warmth_moves_the_views_apart_until_a_check(found):
    # Lens centres 3.84 mm apart on aluminium, above silicon: 21e-6 of it for each kelvin.
    steel, aluminium = found["warmth, steel"], found["warmth, aluminium"]
    offset_px = 3.84e-3 * 21e-6 * 10 / 2e-6
    expected = 4 / 23.232 * offset_px + 2 * 23.6e-5
    assert aluminium.calibrated_m == pytest.approx(expected, rel=0.02)
    assert np.isnan(aluminium.before_m)
    assert aluminium.checked_m < 0.1 * aluminium.calibrated_m
    assert aluminium.loosest < steel.loosest < 10


def test_loosest_amount_is_where_the_wish_ends(found):
    aluminium = found["warmth, aluminium"]
    per_k = aluminium.calibrated_m / 10
    assert aluminium.loosest == pytest.approx(0.01 / per_k, rel=0.1)
    assert found["focus difference missed"].loosest > 15  # um, as much as it is


def test_focus_difference_that_the_estimator_does_not_know(found):
    one = found["focus difference missed"]
    assert one.before_m > one.calibrated_m


def test_moved_focus_changes_blur(prediction):
    assert blur_ratio(prediction, (0.0, 0.0)).tolist() == [1, 1, 1]
    assert (blur_ratio(prediction, (0.5, 0.5)) > 1).all()


def test_wish_that_is_missed_allows_nothing(prediction):
    strict = tolerances(prediction, ErrorWish(error_m=1e-5))
    assert all(one.loosest == 0 for one in strict)
