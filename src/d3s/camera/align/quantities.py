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
    digits: int
    arrows: str  # for a value above and below the target; L and R name a lens
    plus: str  # what to do if the value is above the target; {} is the length or angle to turn by
    minus: str = ""  # the same if it is below; empty if that is good
    is_signed: bool = True

    @property
    def factor(self) -> float:
        """Factor from the value to the value as shown."""
        return {"%": 100.0, "px": 1.0, "°": 180 / math.pi, "µm": 1e6}[self.unit]


_LIGHT = "expose less, or dim the light", "expose more, or add light", False
_CLIPPED = "expose less: white parts are lost", "", False
_BEST = "turn the focus back to where it was best", "turn the focus towards the best value", False
_BATCH = "lens nearer to the sensor by {}, or take two lenses of one batch"
_SEAT = "bring the {} lens nearer to the sensor by {{}}, or the {} one away from it"

KINDS: dict[str, AlignmentKind] = {
    "white_left": AlignmentKind("white, left lens", "%", 0, "▼▲", *_LIGHT),
    "white_right": AlignmentKind("white, right lens", "%", 0, "▼▲", *_LIGHT),
    "clipped_left": AlignmentKind("clipped, left lens", "%", 2, "▼▲", *_CLIPPED),
    "clipped_right": AlignmentKind("clipped, right lens", "%", 2, "▼▲", *_CLIPPED),
    "sharpness_left": AlignmentKind("sharpness, left lens", "%", 0, "⟲⟳", *_BEST),
    "sharpness_right": AlignmentKind("sharpness, right lens", "%", 0, "⟲⟳", *_BEST),
    "partition_px": AlignmentKind(
        *("partition, place", "px", 1, "→←"),
        *("move the plate to the right by {}", "move the plate to the left by {}"),
    ),
    "partition_light": AlignmentKind(
        *("partition, light", "%", 0, "▼▲"),
        *("bring the partition nearer to the sensor, and close gaps", "", False),
    ),
    "fields": AlignmentKind(
        *("fields, right / left", "%", 0, "LR"),
        "centre the plate, and look for what shades the left lens",
        "centre the plate, and look for what shades the right lens",
    ),
    "rows_px": AlignmentKind(
        *("rows", "px", 1, "↓↑"), "lower the right lens by {}", "raise the right lens by {}"
    ),
    "roll_rad": AlignmentKind(
        *("roll", "°", 2, "↺↻"),
        "turn the right lens counter-clockwise by {}",
        "turn the right lens clockwise by {}",
    ),
    "scale": AlignmentKind(
        *("scale", "%", 2, "▼▲"), f"bring the right {_BATCH}", f"bring the left {_BATCH}"
    ),
    "turn_rad": AlignmentKind(
        *("baseline, turn", "°", 2, "↺↻"),
        *("turn the plate counter-clockwise by {}", "turn the plate clockwise by {}"),
    ),
    "focus_m": AlignmentKind(
        *("focus difference", "µm", 1, "▼▲"),
        *(_SEAT.format("left", "right"), _SEAT.format("right", "left")),
    ),
    "gain": AlignmentKind(
        *("gain, right / left", "%", 1, "LR"),
        "clean the left lens, and look for what shades it",
        "clean the right lens, and look for what shades it",
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
        return self.kind.arrows[self.value <= self.target] if self.state == "turn" else ""

    @property
    def advice(self) -> str:
        """Instruction, a sentence without a full stop; empty if there is nothing to do."""
        if self.state == "turn":
            words = self.kind.plus if self.value > self.target else self.kind.minus
            return words.format(self.amount or self._text(abs(self.value - self.target)))
        if self.state == "unknown":
            return self.reason or "wait: the frames so far do not tell it well enough"
        return ""

    @property
    def should_be(self) -> str:
        """Range that is good, with its unit."""
        if not self.kind.minus:
            return f"at most {self._text(self.target + self.limit)}"
        return f"{self._text(self.target, unit=False)} ± {self._text(self.limit)}"

    def as_json(self) -> dict[str, Any]:
        """Values and words, as JSON can hold them; None for numbers that are not known."""
        numbers = {name: getattr(self, name) for name in ("value", "sigma", "target", "limit")}
        return {
            "name": self.name,
            "title": self.kind.title,
            "state": self.state,
            **{name: one if math.isfinite(one) else None for name, one in numbers.items()},
            "shown": {
                "value": self._text(self.value, sign="+" if self.kind.is_signed else ""),
                "sigma": self._text(self.sigma, more_digits=1),
                "should_be": self.should_be,
            },
            "arrow": self.arrow,
            "advice": self.advice,
            "note": self.note,
        }

    def _text(
        self, number: float, *, sign: str = "", more_digits: int = 0, unit: bool = True
    ) -> str:
        """Return a number in the unit of the tables; empty if it is not known."""
        if not math.isfinite(number):
            return ""
        kind, digits = self.kind, self.kind.digits + more_digits
        rounded = round(number * kind.factor, digits) + 0.0
        space = "" if kind.unit == "°" else " "
        return f"{rounded:{sign}.{digits}f}{f'{space}{kind.unit}' if unit else ''}"


def unknown(name: str, target: float, limit: float, reason: str) -> Reading:
    """Quantity that could not be measured, with the reason."""
    return Reading(name, math.nan, math.nan, target, limit, reason)


OPTIONAL = ("turn_rad",)
"""Quantities without which a step can be good: most scenes do not tell them."""

PLAN = {
    "light": ("Light", ("white_left", "white_right", "clipped_left", "clipped_right")),
    "focus": ("Focus both lenses", ("sharpness_left", "sharpness_right")),
    "centre": ("Centre the plate", ("partition_px", "partition_light", "fields")),
    "level": ("Level the lenses", ("rows_px", "roll_rad", "scale", "turn_rad")),
    "difference": ("Set the focus difference", ("focus_m",)),
    "gain": ("Compare the light", ("gain",)),
}
"""Titles and quantities of the steps in their order; each may disturb those after it."""


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
        Step(step, title, tuple(readings[name] for name in names))
        for step, (title, names) in PLAN.items()
    )


def next_step(steps: tuple[Step, ...]) -> Step | None:
    """First step that needs a turn; else the first that is unknown; None if all are good."""
    for state in ("turn", "unknown"):
        for step in steps:
            if step.state == state:
                return step
    return None
