"""States, numbers and words of readings and steps."""

import json
import math

import pytest

from d3s.camera.align.quantities import KINDS, Reading, next_step, steps_of, unknown


def reading(value, sigma=0.1, name="rows_px", **more):
    return Reading(name, value, sigma, 0.0, 5.0, **more)


@pytest.mark.parametrize(
    ("value", "sigma", "state"),
    [
        (0.0, 0.1, "good"),
        (4.9, 0.1, "good"),
        (5.1, 0.1, "turn"),
        (-5.1, 0.1, "turn"),
        (9.0, 6.0, "unknown"),
        (13.0, 6.0, "turn"),
        (0.0, 5.1, "unknown"),
        (math.nan, 0.1, "unknown"),
        (0.0, math.nan, "unknown"),
    ],
)
def test_state(value, sigma, state):
    assert reading(value, sigma).state == state


def test_json_holds_no_nan():
    values = unknown("focus_m", 1e-5, 2e-6, "no texture").as_json()
    assert json.loads(json.dumps(values, allow_nan=False))["value"] is None


def every(**changed):
    good = {name: Reading(name, 0.0, 0.0, 0.0, 1.0) for name in KINDS}
    return good | changed


def test_steps_go_in_order_and_turns_come_first():
    assert next_step(steps_of(every())) is None
    late = every(gain=reading(9.0, name="gain"))
    assert next_step(steps_of(late)).name == "gain"
    both = late | {"white_left": unknown("white_left", 0.6, 0.3, "dark")}
    assert next_step(steps_of(both)).name == "gain"
    assert steps_of(both)[0].state == "unknown"


def test_unknown_turn_leaves_its_step_good():
    steps = steps_of(every(turn_rad=unknown("turn_rad", 0.0, 0.02, "one plane")))
    assert {step.state for step in steps} == {"good"}
    steps = steps_of(every(rows_px=unknown("rows_px", 0.0, 5.0, "no texture")))
    assert [step.state for step in steps].count("unknown") == 1
    assert steps[3].advice == "no texture"
