"""Verdict: standing, remarks with the worst first, and NaN is bad."""

import math

import pytest

from d3s.calibrate.verdict import RULES, judge

GOOD = {name: rule.good for name, rule in RULES.items()}


def test_measures_within_limits_are_good():
    verdict = judge(GOOD)
    assert (verdict.grade, verdict.remarks) == ("good", ())
    assert verdict.summary == "Use the rig file as it is."


@pytest.mark.parametrize("name", RULES)
def test_every_measure_counts(name):
    rule = RULES[name]
    between = (rule.good + rule.usable) / 2
    assert [one.grade for one in judge(GOOD | {name: between}).remarks] == ["usable"]
    assert [one.grade for one in judge(GOOD | {name: rule.usable}).remarks] == ["usable"]
    bad = judge(GOOD | {name: 1.01 * rule.usable})
    assert bad.grade == "provisional"
    (remark,) = bad.remarks
    assert remark.grade == "bad"
    assert bad.line == f"provisional: {remark.words}"
    assert len(bad.line) < 200  # a line of a rig file has 255 characters
    assert remark.words.endswith(".")
    assert remark.remedy.endswith(".")


def test_nan_is_bad():
    verdict = judge({"joint_error_share": math.nan})
    assert verdict.remarks[0].grade == "bad"
    assert verdict.remarks[0].words == "Not known: joint: mean error."


def test_the_worst_comes_first():
    verdict = judge({"share_left_out": 0.2, "disparity_rms_px": 2.0})
    assert [remark.grade for remark in verdict.remarks] == ["bad", "usable"]
    assert verdict.remarks[0].words == (
        "Disparity is 2 px (rms) away from that of the distances, more than 0.15."
    )
    assert verdict.remarks[1].words == "20% of the frames were left out, more than 10%."
