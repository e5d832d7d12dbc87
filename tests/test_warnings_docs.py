"""benchmarks/causes.py: its tables are those of the page, and its faults are what they say."""

import re
import sys

import numpy as np
import pytest

import d3s
from d3s.estimate.diagnosis import Cause
from pages import DOCS, ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import causes
import faults

PAGE = (DOCS / "estimator_results.md").read_text()


def _table(name: str) -> list[tuple[str, ...]]:
    part = PAGE.partition(f"<!-- causes: {name} -->")[2].partition("<!-- end of")[0]
    rows = re.findall(r"^\| (.+) \|$", part, re.MULTILINE)
    return [tuple(cell.strip() for cell in row.split("|")) for row in rows]


def test_page_has_every_fault():
    measured = [(what, size) for what, size, *_ in _table("faults")[1:]]
    assert measured == [(one.what, one.size) for one in faults.faults()]


def test_page_has_two_hundred_good_pairs_without_alarm():
    assert len(faults.good_cases(causes.SETS["report"][0], 0)) == 200
    total = _table("alarms")[-1]
    assert (total[0], total[1], total[3]) == ("all", "200", "0")


def test_bias_by_gain_is_warned_of_before_a_centimetre():
    for percent, *biases, warned in _table("gains")[1:]:
        largest = max(float(re.search(r"\((.+)\)", cell)[1]) for cell in biases)
        assert largest < 1 or float(warned) > 90, percent


def test_every_cause_that_can_be_provoked_is():
    provoked = {cause for one in faults.faults() for cause in one.causes}
    assert set(Cause) - provoked == {Cause.MISSING, Cause.OFFSET, Cause.EMPTY}


def test_sheets_count_what_was_named():
    case = faults.cases_to_spoil(("bark",), 3)[1]
    some = [one for one in faults.faults() if one.what == "swapped" or one.size == "-10 %"]
    result = causes.namings([case], some)
    assert [one.named for one in result] == [[True], [True]]
    lines = causes.naming_sheet(result).lines
    assert [line[3] for line in lines] == ["100", "100"]
    (alarm,) = causes.alarms([case])
    assert causes.alarm_sheet([alarm._replace(name="prototype: x at 1 m")]).lines[-1][3] == "0"


@pytest.mark.parametrize("rows", [0.5, 2, 8])
def test_rows_move_down(rows):
    ramp = np.repeat(np.arange(40, dtype=np.float32)[:, None], 30, axis=1)
    moved = faults.moved_down(ramp, rows)
    np.testing.assert_allclose(moved[12:-12], ramp[12:-12] - rows, atol=1e-4)


def test_clipping_takes_its_share():
    view = np.random.default_rng(0).uniform(size=(50, 60)).astype(np.float32)
    white = faults.clipped(view, 0.2, white=True)
    assert np.mean(white == white.max()) == pytest.approx(0.2, abs=0.01)
    black = faults.clipped(view, 0.2, white=False)
    assert np.mean(black == black.min()) == pytest.approx(0.2, abs=0.01)


def test_plain_wall_is_plain():
    scene = faults.before_plain_wall(faults.random_scene(("bark",), 1), faults.PINHOLE)
    pair = d3s.simulate(scene, faults.PINHOLE, shape=faults.SHAPE)
    behind = pair.depth_m > 0.95 * pair.depth_m.max()
    assert pair.left[behind].std() < 0.1 * pair.left.std()
