"""Quantities of the alignment: units, what they should be, limits, and which way to turn.

Directions of screws are as seen from behind the camera, looking at the scene. The frame is upright,
so that it is the image on the sensor rotated by 180 degrees: a lens that moves up moves its view
down, and the view of the left lens is on the right half.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

State = Literal["good", "turn", "unknown"]
"""Verdict on a quantity or a step: good, turn it, or cannot be known."""

CERTAIN_SIGMAS = 2.0
"""Standard deviations beyond which a quantity is off for certain."""


class AlignmentKind(NamedTuple):
    """Name, unit and directions of a quantity."""

    title: str
    unit: str  # of the value as shown
    factor: float  # from the value to the value as shown
    digits: int
    meaning: str  # of a value above the target
    plus: str  # what to do if the value is above the target; {} is the length or angle to turn by
    minus: str  # the same if it is below
    arrows: tuple[str, str]  # for a value above and below the target; L and R name a lens


_LESS = "expose less, or dim the light", "▼"
_MORE = "expose more, or add light", "▲"
_CLIPPED = "expose less: white parts are lost"
_BEST = "turn the focus back to where it was best", "turn the focus towards the best value"

KINDS: dict[str, AlignmentKind] = {
    "white_left": AlignmentKind(
        "white, left lens", "%", 100.0, 0, "bright", _LESS[0], _MORE[0], (_LESS[1], _MORE[1])
    ),
    "white_right": AlignmentKind(
        "white, right lens", "%", 100.0, 0, "bright", _LESS[0], _MORE[0], (_LESS[1], _MORE[1])
    ),
    "clipped_left": AlignmentKind(
        "clipped, left lens", "%", 100.0, 2, "overexposed", _CLIPPED, "", ("▼", "")
    ),
    "clipped_right": AlignmentKind(
        "clipped, right lens", "%", 100.0, 2, "overexposed", _CLIPPED, "", ("▼", "")
    ),
    "sharpness_left": AlignmentKind(
        "sharpness, left lens", "%", 100.0, 0, "sharper", *_BEST, ("⟲", "⟳")
    ),
    "sharpness_right": AlignmentKind(
        "sharpness, right lens", "%", 100.0, 0, "sharper", *_BEST, ("⟲", "⟳")
    ),
    "partition_px": AlignmentKind(
        "partition, place",
        "px",
        1.0,
        1,
        "the shadow is right of the middle of the frame",
        "move the plate to the right by {}",
        "move the plate to the left by {}",
        ("→", "←"),
    ),
    "partition_light": AlignmentKind(
        "partition, light",
        "%",
        100.0,
        0,
        "light passes the partition",
        "bring the partition nearer to the sensor, and close gaps",
        "",
        ("▼", ""),
    ),
    "fields": AlignmentKind(
        "fields, right / left",
        "%",
        100.0,
        0,
        "the field of the right lens is larger",
        "centre the plate, and look for what shades the left lens",
        "centre the plate, and look for what shades the right lens",
        ("L", "R"),
    ),
    "rows_px": AlignmentKind(
        "rows",
        "px",
        1.0,
        1,
        "the right view lies lower",
        "lower the right lens by {}",
        "raise the right lens by {}",
        ("↓", "↑"),
    ),
    "roll_rad": AlignmentKind(
        "roll",
        "°",
        180 / math.pi,
        2,
        "the right view is turned clockwise",
        "turn the right lens counter-clockwise by {}",
        "turn the right lens clockwise by {}",
        ("↺", "↻"),
    ),
    "scale": AlignmentKind(
        "scale",
        "%",
        100.0,
        2,
        "the right view is larger",
        "bring the right lens nearer to the sensor by {}, or take two lenses of one batch",
        "bring the left lens nearer to the sensor by {}, or take two lenses of one batch",
        ("▼", "▲"),
    ),
    "turn_rad": AlignmentKind(
        "baseline, turn",
        "°",
        180 / math.pi,
        2,
        "the baseline is turned clockwise",
        "turn the plate counter-clockwise by {}",
        "turn the plate clockwise by {}",
        ("↺", "↻"),
    ),
    "focus_m": AlignmentKind(
        "focus difference",
        "µm",
        1e6,
        1,
        "the left lens is farther from the sensor",
        "bring the left lens nearer to the sensor by {}, or the right one away from it",
        "bring the right lens nearer to the sensor by {}, or the left one away from it",
        ("▼", "▲"),
    ),
    "gain": AlignmentKind(
        "gain, right / left",
        "%",
        100.0,
        1,
        "the right view is brighter",
        "clean the left lens, and look for what shades it",
        "clean the right lens, and look for what shades it",
        ("L", "R"),
    ),
}
"""Quantities by name."""


class Reading(NamedTuple):
    """One quantity as measured, with what it should be."""

    name: str
    value: float  # NaN if it could not be measured
    sigma: float
    target: float
    limit: float  # largest difference from the target that is good
    reason: str = ""  # why it is unknown
    note: str = ""  # what else to know, such as the distance
    amount: str = ""  # by how much to turn, with its unit

    @property
    def kind(self) -> AlignmentKind:
        """Title, unit and directions."""
        return KINDS[self.name]

    @property
    def state(self) -> State:
        """Good, turn it, or cannot be known."""
        if self.reason or not (math.isfinite(self.value) and math.isfinite(self.sigma)):
            return "unknown"
        if abs(self.value - self.target) > max(self.limit, CERTAIN_SIGMAS * self.sigma):
            return "turn"
        return "unknown" if self.sigma > self.limit else "good"

    @property
    def arrow(self) -> str:
        """Direction to turn, as one sign; empty if there is nothing to turn."""
        if self.state != "turn":
            return ""
        return self.kind.arrows[0 if self.value > self.target else 1]

    @property
    def advice(self) -> str:
        """Instruction, a sentence without a full stop; empty if there is nothing to do."""
        if self.state == "turn":
            words = self.kind.plus if self.value > self.target else self.kind.minus
            return words.format(self.amount or self.shown(abs(self.value - self.target)))
        if self.state == "unknown":
            return self.reason or "wait: the frames so far do not tell it well enough"
        return ""

    def shown(self, number: float, *, sign: bool = False, more_digits: int = 0) -> str:
        """Return a number in the unit of the tables; empty if it is not known.

        Parameters
        ----------
        number
            Value, sigma, target or limit.
        sign
            Whether a positive number has a plus.
        more_digits
            Digits in addition to those of the value.
        """
        return (
            f"{self._bare(number, sign, more_digits)}{self._unit}" if math.isfinite(number) else ""
        )

    def _bare(self, number: float, sign: bool = False, more_digits: int = 0) -> str:
        rounded = round(number * self.kind.factor, self.kind.digits + more_digits) + 0.0
        return f"{rounded:{'+' if sign else ''}.{self.kind.digits + more_digits}f}"

    @property
    def _unit(self) -> str:
        return self.kind.unit if self.kind.unit in ("", "°") else f" {self.kind.unit}"

    @property
    def should_be(self) -> str:
        """Range that is good, with its unit."""
        if not self.kind.minus:
            return f"at most {self.shown(self.target + self.limit)}"
        return f"{self._bare(self.target)} ± {self.shown(self.limit)}"

    def as_json(self) -> dict[str, Any]:
        """Values and words, as JSON can hold them; None for numbers that are not known."""
        numbers = {name: getattr(self, name) for name in ("value", "sigma", "target", "limit")}
        return {
            "name": self.name,
            "title": self.kind.title,
            "state": self.state,
            **{name: one if math.isfinite(one) else None for name, one in numbers.items()},
            "shown": {
                "value": self.shown(self.value, sign=self.name not in _UNSIGNED),
                "sigma": self.shown(self.sigma, more_digits=1),
                "should_be": self.should_be,
            },
            "arrow": self.arrow,
            "advice": self.advice,
            "note": self.note,
        }


_UNSIGNED = (
    *(f"{name}_{side}" for name in ("white", "clipped", "sharpness") for side in ("left", "right")),
    "partition_light",
)


def unknown(name: str, target: float, limit: float, reason: str) -> Reading:
    """Quantity that could not be measured, with the reason."""
    return Reading(name, math.nan, math.nan, target, limit, reason)


OPTIONAL = ("turn_rad",)
"""Quantities without which a step can be good: most scenes do not tell them."""


class AlignmentStep(NamedTuple):
    """Name of a step, and the quantities that it sets."""

    name: str
    title: str
    quantities: tuple[str, ...]


PLAN = (
    AlignmentStep("light", "Light", ("white_left", "white_right", "clipped_left", "clipped_right")),
    AlignmentStep("focus", "Focus both lenses", ("sharpness_left", "sharpness_right")),
    AlignmentStep("centre", "Centre the plate", ("partition_px", "partition_light", "fields")),
    AlignmentStep("level", "Level the lenses", ("rows_px", "roll_rad", "scale", "turn_rad")),
    AlignmentStep("difference", "Set the focus difference", ("focus_m",)),
    AlignmentStep("gain", "Compare the light", ("gain",)),
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
