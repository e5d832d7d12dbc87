"""The log beside a rig file, and the page of a check with its trend."""

import json

import pytest

import d3s
from d3s.check.quantities import KINDS, Quantity
from d3s.check.report import append_log, log_path, read_log
from d3s.errors import InputError
from d3s.lab.view.check import check_page, write_check


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


def test_page_has_the_verdict_all_quantities_and_the_trend(report, rig, tmp_path):
    file = tmp_path / "rig.toml"
    rig.save(file)
    for _ in range(2):
        append_log(report, file)
    numbers = write_check(report, tmp_path / "page.html", log=read_log(log_path(file)))
    page = (tmp_path / "page.html").read_text()
    assert f"<strong>{report.verdict.capitalize()}." in page
    assert all(one.kind.title in page for one in report.quantities)
    assert "Trend" in page
    assert "2 checks" in page
    assert page.count("data:image/png") >= 4
    assert json.loads(numbers.read_text())["verdict"] == report.verdict
    assert "Trend" not in check_page(report)


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


def test_drift_is_said_in_the_units_of_people():
    words = Quantity("roll_rad", 0.0017453, 1e-4, 3e-4).sentence
    assert "+0.1000 ± 0.0057°" in words
    assert KINDS["roll_rad"].words in words
    assert "darker" in Quantity("gain", -0.05, 0.002, 0.01).sentence
