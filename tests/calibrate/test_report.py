"""Report: findings, measures, verdict, and JSON with all numbers."""

import json
import math
from typing import NamedTuple

import numpy as np
import pytest

from d3s.calibrate.anchors import find_anchors
from d3s.calibrate.geometry import find_geometry
from d3s.calibrate.rectification import find_rectification
from d3s.calibrate.report import Report
from d3s.calibrate.validation import FieldResiduals, Validation
from d3s.lab.view.calibration import report_page
from d3s.rig import Rig
from d3s.rig.lens_maps import LensMaps


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


def test_findings_agree_with_the_truth(report, camera):
    found = {one.what: one for one in report.findings}
    assert found["s0 B / p"].value == pytest.approx(camera.focal_baseline_px_m, rel=1e-4)
    assert found["s0 B / p"].shown.startswith("23.30")  # 6050 * 0.00384 * 1.003 = 23.302
    assert found["scale of the right view"].value == pytest.approx(1.003 / 0.997, abs=1e-5)
    assert found["roll of the right view"].value == pytest.approx(math.degrees(0.012), abs=1e-3)
    assert found["s0 B / p"].spread_shown.startswith("± ")
    assert found["rows apart before, rms"].spread_shown == ""


def test_rows_before_and_after(report):
    rows = report.rows
    assert rows.frame.shape == rows.before_px.shape == rows.after_px.shape
    assert np.sqrt(np.mean(rows.after_px**2)) == pytest.approx(0.02, rel=0.2)
    assert np.sqrt(np.mean(rows.before_px**2)) > 2


def test_error_of_other_frames_decides(report):
    good = with_(report, validation=(validation(),))
    assert good.measures["joint_error_share"] == pytest.approx(0.003)  # median of 0.2 % and 0.4 %
    assert good.measures["joint_holes"] == pytest.approx(0.2)
    assert good.verdict.grade == "good"
    bad = with_(report, validation=(validation(mae_m=np.array([0.1, 0.1, 0.1])),))
    assert bad.verdict.grade == "bad"
    nothing = with_(report, validation=(validation(mae_m=np.full(3, np.nan)),))
    assert nothing.verdict.grade == "bad"


def test_frames_left_out_by_one_step_are_not_left_out_of_all(report):
    tested = with_(report, validation=(validation(),))
    assert tested.left_out == {}
    assert tested.left_out_by_step == {"test of joint": {2: "joint found no depth in it"}}


def test_frames_that_were_not_read_count(report):
    spoilt = with_(report, not_read={f"{n}.png": "is overexposed." for n in range(4)})
    assert spoilt.measures["share_left_out"] == pytest.approx(4 / 20)  # of 16 that were read
    assert spoilt.verdict.grade == "usable"
    assert "20% of the frames were left out" in spoilt.verdict.remarks[0].words


def test_frame_rejected_by_the_anchor_step_only_is_not_left_out_of_all(report):
    aside = with_(report, anchors=report.anchors._replace(left_out={3: "stood aside"}))
    assert aside.left_out == {}
    assert aside.left_out_by_step == {"anchors": {3: "stood aside"}}


def test_distances_that_scatter_count(report):
    errors = 0.02 * report.geometry.depths_m * np.resize([1, -1], report.distances_m.shape)
    scattered = with_(report, geometry=report.geometry._replace(distance_errors_m=errors))
    assert scattered.measures["ruler_share"] == pytest.approx(0.02)
    assert scattered.verdict.grade == "usable"


def test_findings_have_both_methods(report):
    found = {one.what: one for one in report.findings}
    left = report.anchors.left
    assert report.anchors.method == "expansion"
    assert found["anchor of the left view, x"].kept.startswith("expansion, ")
    assert found["the same by least shift, left x"].value == left.least_shift_px[0]
    assert found["the same by least shift, left y"].spread == left.least_shift_sigma_px[1]
    paper = found["the same by medians of the frames"]
    assert paper.value == report.rectification.median_rms_px
    assert found["distortion at the left view's upper edge"].value == pytest.approx(0, abs=0.01)


def test_working_range_is_among_the_findings(report):
    found = {one.what: one for one in with_(report, validation=(validation(),)).findings}
    assert found["joint: MAE below 1 cm from"].shown == "0.50 m"
    assert found["joint: MAE below 1 cm up to"].shown == "1.00 m"
    none = with_(report, validation=(validation(working_range_m=None),)).findings
    assert none[-1].shown == "none"


def test_notes_are_sentences_of_all_steps(report):
    class Blur(NamedTuple):
        undetermined: tuple[str, ...]

    class Tuned(NamedTuple):
        warnings: tuple[str, ...]

    noted = with_(
        report, remarks=("One.",), defocus=Blur(("the aperture is as designed.",)),
        tuning=Tuned(("the cubic is bad.",)),
    )  # fmt: skip
    assert noted.notes == ("One.", "The aperture is as designed.", "The cubic is bad.")


def test_residuals_fit_a_rig_file(report):
    residuals = with_(report, validation=(validation(),)).residuals
    assert residuals["joint_mae_m"] == pytest.approx(0.0025)
    assert all(math.isfinite(value) for value in residuals.values())


def test_json_is_complete_and_strict(report):
    told = with_(report, validation=(validation(),)).as_json()
    again = json.loads(json.dumps(told, allow_nan=False))
    assert again == told
    assert again["geometry"]["focal_baseline_px_m"] == report.geometry.focal_baseline_px_m
    assert again["cross_validation"][0]["mae_m"] == [0.001, 0.004, None]
    assert again["verdict"]["grade"] == "good"
    assert again["tuning"] is None
    assert len(json.dumps(told)) < 200_000


def test_problem_is_the_verdict(report):
    failed = with_(report, problem="there is no texture to tune with.")
    assert failed.verdict.grade == "bad"
    assert failed.as_json()["verdict"]["remarks"][0]["words"] == failed.problem


def test_report_without_results():
    empty = Report(
        name="mine",
        version="0",
        created="2025-01-31T12:00:00+00:00",
        names=("a.png", "b.png"),
        distances_m=np.array([0.5, 1.0]),
        shape=(10, 20),
        not_read={"c.png": "is overexposed."},
        remarks=(),
        problem="nothing.",
    )
    assert empty.findings == ()
    assert empty.rows is None
    assert empty.outlines is None
    assert empty.as_json()["frames"]["left_out"] == {"c.png": "is overexposed."}


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


def test_a_wrong_distance_is_no_error_over_the_field(report):
    # A millimetre at 0.5 m is 0.09 px all over the frame.
    moved = field(residual_px=field().residual_px + np.array([0.09, 0]).reshape(2, 1, 1))
    found = with_(report, field_residuals=moved).measures
    assert found["field_disparity_rms_px"] == pytest.approx(0.02 * math.sqrt(2 / 9))
    assert with_(report, field_residuals=moved).verdict.grade == "good"


def test_a_corner_that_is_off_counts(report):
    residual = field().residual_px
    residual[1, :2, :3] = 0.1  # 1.6 cm at 1.9 m
    verdict = with_(report, field_residuals=field(residual_px=residual)).verdict
    assert verdict.grade == "usable"
    assert verdict.remarks[0].words == (
        "A ninth of the field is 0.82% of the distance off, more than 0.4%, in a frame that was "
        "not calibrated with."
    )


def test_field_without_a_value_is_not_measured(report):
    nothing = field(
        residual_px=np.full((2, 6, 9), np.nan), light_ratio=np.full((6, 9), np.nan)
    )  # fmt: skip
    assert with_(report, field_residuals=nothing).measures == report.measures


def test_errors_beyond_sigma_count(report):
    share = np.array([0.99, 0.75, np.nan])
    found = with_(report, validation=(validation(within_3_sigma=share),))
    assert found.measures["beyond_3_sigma"] == pytest.approx(0.13)
    assert found.verdict.grade == "usable"
    assert "sigma does not tell" in found.verdict.remarks[0].words


def test_lenses_are_among_the_findings(report):
    maps = LensMaps(
        field_radius_px=900.0,
        distortion_left=(-0.002, 0.0, 0.0, 0.0),
        illumination_right=(0.95, 0.0, 0.0, -0.095, 0.0, 0.0),
        focus_right_dpt=(0.0, 0.0, 1.0, 2.0),
    )
    told = with_(report, lens_maps=maps, field_residuals=field())
    found = {one.what: one.shown for one in told.findings}
    assert found["distortion at the sides of the left view"] == "-0.200 %"
    assert found["light at the sides of the right view, of that on its axis"] == "90.0 %"
    assert found["light of the right axis, of the left"] == "95.0 %"
    # The radius at the sides is along rows: tangential.
    assert found["focus along rows at the sides of the right view"] == "2.000 dpt"
    assert found["focus along columns at the sides of the right view"] == "1.000 dpt"
    assert found["rows apart over the field, rms"] == "0.100 px"
    numbers = json.loads(json.dumps(told.as_json(), allow_nan=False))
    assert numbers["lens_maps"]["field_radius_px"] == 900
    assert numbers["field_residuals"]["ninths_px"][1][0] == pytest.approx([0, 0, 0.02])
    assert len(numbers["verdict"]["measures"]) == len(told.measures)


def test_page_draws_what_was_found(report):
    page = report_page(with_(report, validation=(validation(),)))
    assert "Residual disparity over 1/Z" in page
    assert "Vertical disparity before and after" in page
    assert "Mean absolute error" in page
    assert "a and b with their cubics" not in page  # nothing was tuned
    assert "Flat field" not in page  # nothing was measured over the field
    assert page.count("data:image/png;base64,") == 6


def test_page_begins_with_the_verdict_and_ends_with_the_parameters(report):
    maps = LensMaps(field_radius_px=900.0)
    page = report_page(
        with_(
            report, validation=(validation(),), lens_maps=maps, field_residuals=field(),
            remarks=("A remark.",),
        )
    )  # fmt: skip
    order = (
        "Good.</strong>", "<th>measure</th>", "Error over distance", "Residual disparity", "Rows",
        "Flat field", "Lenses", "Geometry and focus", "Frames", "Remarks", "Parameters",
    )  # fmt: skip
    places = [page.index(words if "<" in words else f"<h2>{words}</h2>") for words in order]
    assert places == sorted(places)
    assert page.count("data:image/png;base64,") == 12
    for one in with_(report, validation=(validation(),), field_residuals=field()).table_of_measures:
        assert f"<td>{one.title_with_unit}</td>" in page
