"""The log beside a rig file, and the state of a quantity."""

import pytest

import d3s
from d3s.check.check_report import append_log, log_path, read_log
from d3s.check.drift_quantities import Quantity
from d3s.errors import InputError


@pytest.fixture(scope="module")
def report(rig, frames):
    return d3s.check(rig, frames[:3])


def test_log_grows_by_a_line_for_each_check(report, rig, tmp_path):
    file = tmp_path / "rig.toml"
    rig.save(file)
    assert read_log(log_path(file)) == []
    for _ in range(2):
        assert append_log(report, file) == tmp_path / "rig.checks.jsonl"
    entries = read_log(log_path(file))
    assert len(entries) == 2
    assert entries[0].frames == 3
    assert entries[0].values["rows_px"] == report["rows_px"].value
    assert entries[0].values["spots"] is None


def test_file_that_is_no_log_is_refused(tmp_path):
    path = tmp_path / "rig.checks.jsonl"
    path.write_text("{}\n")
    with pytest.raises(InputError, match="is no log of checks"):
        read_log(path)


@pytest.mark.parametrize(
    ("value", "sigma", "state"),
    [
        (0.1, 0.01, "steady"),
        (0.2, 0.01, "drifted"),
        (0.2, 0.05, "steady"),
        (0.3, 0.2, "unknown"),
        (-2.0, 0.2, "drifted"),
    ],
)
def test_state_follows_from_limit_and_sigma(value, sigma, state):
    one = Quantity("rows_px", value, sigma, 0.15)
    assert one.state == state
