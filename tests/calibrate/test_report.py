"""Report: findings, measures, verdict, and JSON with all numbers."""

import json
import math

import numpy as np
import pytest

from d3s.calibrate.anchors import find_anchors
from d3s.calibrate.calibration_report import Report
from d3s.calibrate.distortion_fit import Distortion
from d3s.calibrate.geometry import find_geometry
from d3s.calibrate.rectification import find_rectification
from d3s.calibrate.validation import FieldResiduals, Validation
from d3s.rig import Rig


@pytest.fixture
def report(camera) -> Report:
    """Report of a camera with simulated places on the board, without pictures."""
    matches = camera.matches()
    anchors = find_anchors(matches)
    rectification = find_rectification(matches, anchors)
    design = Rig.paper_prototype().optics
    geometry = find_geometry(matches, anchors, rectification, camera.distances_m, design)
    return Report(
        name="mine",
        version="0",
        created="2025-01-31T12:00:00+00:00",
        names=matches.names,
        distances_m=np.array(camera.distances_m),
        shape=(2160, 3840),
        not_read={},
        remarks=(),
        matches=matches,
        anchors=anchors,
        rectification=rectification,
        geometry=geometry,
    )


def validation(**changes) -> Validation:
    values = {
        "method": "joint",
        "depths_m": np.array([0.5, 1.0, 2.0]),
        "mae_m": np.array([0.001, 0.004, np.nan]),
        "median_m": np.array([0.001, 0.004, np.nan]),
        "bias_m": np.array([0.0, 0.0, np.nan]),
        "density": np.array([0.9, 0.8, 0.0]),
        "working_range_m": (0.5, 1.0),
        "left_out": {2: "joint found no depth in it"},
    }
    return Validation(**{**values, **changes})


def with_(report: Report, **changes) -> Report:
    return Report(**{**report.__dict__, **changes})


def test_good_places_make_a_good_report(report):
    assert report.verdict.grade == "good"
    assert report.left_out == {}
    assert report.measures["vertical_rms_px"] == pytest.approx(0.02, rel=0.2)  # the simulated noise


def test_error_of_other_frames_decides(report):
    good = with_(report, validation=(validation(),))
    assert good.measures["joint_error_share"] == pytest.approx(0.003)  # median of 0.2 % and 0.4 %
    assert good.measures["joint_holes"] == pytest.approx(0.2)
    assert good.verdict.grade == "good"
    bad = with_(report, validation=(validation(mae_m=np.array([0.1, 0.1, 0.1])),))
    assert bad.verdict.remarks[0].grade == "bad"
    nothing = with_(report, validation=(validation(mae_m=np.full(3, np.nan)),))
    assert nothing.verdict.grade == "provisional"


def test_frames_left_out_by_one_step_are_not_left_out_of_all(report):
    tested = with_(report, validation=(validation(),))
    assert tested.left_out == {}
    assert tested.left_out_by_step == {"test of joint": {2: "joint found no depth in it"}}


def test_json_is_complete_and_strict(report):
    told = with_(report, validation=(validation(),)).as_json()
    again = json.loads(json.dumps(told, allow_nan=False))
    assert again == told
    assert again["geometry"]["focal_baseline_px_m"] == report.geometry.focal_baseline_px_m
    assert again["cross_validation"][0]["mae_m"] == [0.001, 0.004, None]
    assert again["verdict"]["grade"] == "good"
    assert again["tuning"] is None
    assert len(json.dumps(told)) < 200_000


def field(**changes) -> FieldResiduals:
    """Residuals of two frames, with 0.02 px more on the right third of the field."""
    x = np.tile(np.linspace(-0.9, 0.9, 9), (6, 1))
    y = np.tile(np.linspace(-0.4, 0.4, 6), (9, 1)).T
    residual = np.broadcast_to(0.02 * (x > 0.4), (2, 6, 9)).copy()
    values = {
        "depths_m": np.array([0.5, 1.9]),
        "x": x,
        "y": y,
        "residual_px": residual,
        "sigma_px": np.full(residual.shape, 0.005),
        "rows_px": np.full(residual.shape, 0.1),
        "light_ratio": np.full(x.shape, 1.002),
    }
    return FieldResiduals(**{**values, **changes})


def test_measures_over_the_field(report):
    found = with_(report, field_residuals=field()).measures
    assert found["field_disparity_rms_px"] == pytest.approx(0.02 * math.sqrt(2 / 9))
    # 0.02 px at 1.9 m: 1.9 * 0.02 / 23.3
    assert found["largest_ninth_share"] == pytest.approx(0.00163, abs=1e-5)
    assert found["light_ratio_rms"] == pytest.approx(0.002)
    assert with_(report, field_residuals=field()).verdict.grade == "good"


def test_errors_beyond_sigma_count(report):
    share = np.array([0.99, 0.75, np.nan])
    found = with_(report, validation=(validation(within_3_sigma=share),))
    assert found.measures["beyond_3_sigma"] == pytest.approx(0.13)
    assert found.verdict.grade == "provisional"
    assert "sigma does not tell" in found.verdict.remarks[0].words


def test_remedy_names_what_the_frames_show(report):
    share = np.array([0.8, 0.75, np.nan])
    of = with_(report, validation=(validation(within_3_sigma=share),))
    few = with_(of, distances_m=np.linspace(0.25, 1.2, 12)).verdict.remarks[0].remedy
    assert few.startswith("Take 25 frames, evenly in 1/distance: of these 12, ")
    assert "widest gap in 1/distance is 3.6 times an even one" in few
    even = with_(of, distances_m=1 / np.linspace(4, 0.8, 30))
    assert even.verdict.remarks[0].remedy.startswith("See where in the field it is")
    bent = Distortion(field_radius_px=900.0, vergence_dpt=1.0, vergences_dpt=(1.0,))
    bent = with_(even, distortion=bent._replace(bend_per_m=(0.0, 0.0, -0.3)))
    (remedy,) = {one.remedy for one in bent.verdict.remarks}
    assert remedy == "Flatten the board: it is bent by 19 mm over half a metre."
