"""The figures, worked by hand on a few pixels."""

import math

import numpy as np
import pytest

from d3s.lab.evaluate import score
from d3s.lab.evaluate.metrics import duel, worst
from d3s.lab.evaluate.table import error_m

NAN = float("nan")


def test_errors_by_hand(depth_map, truth):
    # Errors in centimetres: +1, -3, +2 (not above 2), none, 0.
    found = depth_map([[1.01, 0.97, 1.02, NAN, 1.0]], sigma_m=0.015)
    figures = score(found, truth([[1.0] * 5]))
    assert (figures.pixels, figures.retained) == (5, 4)
    assert figures.mae_m == pytest.approx(0.015, rel=1e-4)
    assert figures.median_m == pytest.approx(0.015, rel=1e-4)
    assert figures.rmse_m == pytest.approx(math.sqrt(14e-4 / 4), rel=1e-4)
    assert figures.bias_m == pytest.approx(0.0, abs=1e-7)
    assert figures.bad_2cm == pytest.approx(0.25)
    assert figures.coverage == pytest.approx(0.5)


def test_density_and_bound_are_of_textured_pixels(depth_map, truth):
    # Textured: below 0.6 cm, seen by both views, judged. The third is flat, the fourth occluded,
    # the fifth at the border.
    found = depth_map([[1.002, NAN, 1.04, 1.5, 2.0, 1.001]])
    real = truth(
        [[1.0] * 6],
        bound_m=[[0.001, 0.002, 0.0061, 0.001, 0.001, 0.003]],
        visible=[[1, 1, 1, 0, 1, 1]],
        judged=[[1, 1, 1, 1, 0, 1]],
    )
    figures = score(found, real)
    assert (figures.pixels, figures.retained) == (5, 4)
    assert (figures.textured, figures.textured_retained) == (3, 2)
    assert figures.density == pytest.approx(2 / 3)
    # Who gives a depth to what is flat or occluded answers for it.
    assert figures.mae_m == pytest.approx((0.002 + 0.04 + 0.5 + 0.001) / 4, rel=1e-4)
    assert figures.textured_mae_m == pytest.approx(0.0015, rel=1e-3)
    assert figures.bound_mean_m == pytest.approx(0.002)
    assert figures.bound_median_m == pytest.approx(0.002)
    assert figures.mae_over_bound == pytest.approx(0.75, rel=1e-3)


def test_a_region_takes_part_of_it(depth_map, truth):
    found = depth_map([[1.01, 1.03], [NAN, 1.0]])
    real = truth([[1.0, 1.0], [1.0, 1.0]])
    figures = score(found, real, np.array([[False, True], [True, False]]))
    assert (figures.pixels, figures.retained, figures.textured) == (2, 1, 2)
    assert figures.mae_m == pytest.approx(0.03, rel=1e-4)
    assert figures.density == 0.5


def test_nothing_retained_has_no_error_and_no_density_without_texture(depth_map, truth):
    figures = score(depth_map([[NAN, NAN]]), truth([[1.0, 1.0]], bound_m=np.nan))
    assert figures.retained == figures.textured == 0
    for value in (figures.mae_m, figures.rmse_m, figures.density, figures.mae_over_bound):
        assert math.isnan(value)
    assert score(depth_map([[NAN]]), truth([[1.0]])).density == 0


def test_a_duel_is_on_common_pixels(depth_map, truth):
    one = depth_map([[1.01, 1.02, NAN, 1.0, 1.5]])
    other = depth_map([[1.04, 0.98, 1.0, NAN, 1.0]])
    fought = duel(one, other, truth([[1.0] * 5], judged=[[1, 1, 1, 1, 0]]))
    assert fought["common"] == 2
    assert fought["mae_m"] == pytest.approx(0.015, rel=1e-4)
    assert fought["rival_mae_m"] == pytest.approx(0.03, rel=1e-4)


def test_the_worst_is_who_gave_up_where_there_was_depth():
    # A depth that is claimed where there is none counts.
    wrong = error_m({"mae_m": 0.03, "retained": 5, "textured": 0})
    gave_up = error_m({"mae_m": NAN, "retained": 0, "textured": 9})
    silent = error_m({"mae_m": NAN, "retained": 0, "textured": 0})
    assert worst([0.01, wrong, silent]) == 0.03
    assert worst([0.01, gave_up]) == math.inf
    assert math.isnan(worst([silent, silent]))
