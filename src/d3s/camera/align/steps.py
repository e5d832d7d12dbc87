"""Steps of the alignment, in the order of somebody with a screwdriver, and their verdicts."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from d3s.camera.align.quantities import Reading, State

OPTIONAL = ("turn_rad",)
"""Quantities without which a step can be good: most scenes do not tell them."""


class Plan(NamedTuple):
    """Name of a step, and the quantities that it sets."""

    name: str
    title: str
    quantities: tuple[str, ...]


PLAN = (
    Plan("light", "Light", ("white_left", "white_right", "clipped_left", "clipped_right")),
    Plan("focus", "Focus both lenses", ("sharpness_left", "sharpness_right")),
    Plan("centre", "Centre the plate", ("partition_px", "partition_light", "fields")),
    Plan("level", "Level the lenses", ("rows_px", "roll_rad", "scale", "turn_rad")),
    Plan("difference", "Set the focus difference", ("focus_m",)),
    Plan("gain", "Compare the light", ("gain",)),
)
"""Steps in their order; each may disturb those after it, and hardly those before."""


class Step(NamedTuple):
    """One step with its readings."""

    name: str
    title: str
    readings: tuple[Reading, ...]

    @property
    def state(self) -> State:
        """Turn if anything is to turn, unknown if anything needed is, else good."""
        if any(one.state == "turn" for one in self.readings):
            return "turn"
        needed = [one for one in self.readings if one.name not in OPTIONAL]
        return "unknown" if any(one.state == "unknown" for one in needed) else "good"

    @property
    def advice(self) -> str:
        """Instruction of the first reading that is off, else of the first unknown one."""
        for state in ("turn", "unknown"):
            for one in self.readings:
                if one.state == state and not (state == "unknown" and one.name in OPTIONAL):
                    return one.advice
        return ""

    def as_json(self) -> dict[str, Any]:
        """Verdict and readings, as JSON can hold them."""
        return {
            "name": self.name,
            "title": self.title,
            "state": self.state,
            "advice": self.advice,
            "readings": [one.as_json() for one in self.readings],
        }


def steps_of(readings: Mapping[str, Reading]) -> tuple[Step, ...]:
    """Steps with their readings, in the order of `PLAN`."""
    return tuple(
        Step(plan.name, plan.title, tuple(readings[name] for name in plan.quantities))
        for plan in PLAN
    )


def next_step(steps: tuple[Step, ...]) -> Step | None:
    """First step that needs a turn; else the first that is unknown; None if all are good."""
    for state in ("turn", "unknown"):
        for step in steps:
            if step.state == state:
                return step
    return None
