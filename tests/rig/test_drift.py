"""Sigma of a rig grows with its age and with what a check has left; its history is kept."""

import math

import numpy as np
import pytest

import d3s
from check_frames import small_rig
from d3s.cli.description import info
from d3s.rig import Change, LensMaps
from d3s.rig.calibration import DRIFT_PX_PER_YEAR, LEAST_SIGMA_PX

YEAR = 365.25
CHANGE = Change(
    made="2026-01-31T12:00:00+00:00",
    reason="d3s check: rows had drifted",
    frames=10,
    drift={"rows_px": 0.5},
    drift_sigma={"rows_px": 0.03},
    d3s_version="0",
)


def lens_rig(sigma_px):
    return small_rig(lenses=LensMaps(field_radius_px=200.0, disparity_sigma_px=sigma_px))


def test_sigma_of_calibrated_lenses_is_never_zero():
    assert lens_rig(0.0).rectification_sigma_px() == LEAST_SIGMA_PX
    assert lens_rig(0.04).rectification_sigma_px() == 0.04


def test_sigma_grows_with_age_and_drift():
    rig = lens_rig(0.03)
    aged = math.hypot(0.03, 2 * DRIFT_PX_PER_YEAR)
    assert rig.rectification_sigma_px(2 * YEAR) == pytest.approx(aged)
    known = rig.calibration.replace(drift_sigma_px=0.04, drift_px_per_year=0.5)
    assert known.rectification_sigma_px() == pytest.approx(0.05)
    assert known.rectification_sigma_px(YEAR) == pytest.approx(math.hypot(0.05, 0.5))
    bare = d3s.Rig.paper_prototype()
    assert bare.rectification_sigma_px(YEAR) == pytest.approx(DRIFT_PX_PER_YEAR)


@pytest.mark.parametrize(
    "rig",
    [
        d3s.Rig.paper_prototype(),
        d3s.Rig.from_pinhole(focal_length_px=600.0, baseline_m=0.02),
    ],
    ids=["lenses", "pinhole"],
)
def test_stated_age_widens_sigma_of_depth(rig):
    pair = d3s.simulate(d3s.Plane(depth_m=0.8), rig, noise=0.005, shape=(100, 160))
    new, old = (
        d3s.estimate(pair.left, pair.right, rig, options={"calibration_age_days": days})
        for days in (0, 2 * YEAR)
    )
    both = new.valid & old.valid
    assert np.all(old.sigma_m[both] > new.sigma_m[both])
    np.testing.assert_array_equal(old.depth_m[both], new.depth_m[both])


def test_history_is_kept_in_the_file_and_told(tmp_path):
    rig = small_rig(history=(CHANGE, CHANGE), drift_sigma_px=0.02, drift_px_per_year=0.3)
    path = tmp_path / "rig.toml"
    rig.save(path)
    assert d3s.Rig.load(path) == rig
    facts = info(path).facts
    assert facts["rectification_sigma_px"] == pytest.approx(0.02)
    assert facts["rectification_sigma_after_a_year_px"] == pytest.approx(math.hypot(0.02, 0.3))
    assert [one["rows_px"] for one in facts["changes"]] == [0.5, 0.5]
    small_rig().save(tmp_path / "plain.toml")
    assert "history" not in (tmp_path / "plain.toml").read_text()
