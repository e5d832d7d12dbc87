"""Quantities that a check measures: their units, limits and states.

A quantity has drifted if it exceeds its limit and four standard deviations. It is unknown if the
standard deviation is so large that a drift of four limits could hide; else it is steady.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

State = Literal["steady", "drifted", "unknown"]

ALARM_SIGMAS = 4.0
"""Standard deviations beyond which a quantity has drifted. On simulated cameras without drift they
are two to three times the scatter of sets of ten frames, so that alarms by chance are rare."""
_HIDDEN_LIMITS = 4.0


class DriftKind(NamedTuple):
    """Name and unit of a quantity as shown, and its meaning."""

    title: str
    unit: str  # of the value as shown
    factor: float  # from the value to the value as shown
    digits: int
    words: str  # meaning of a positive value
    reverse: str = ""  # meaning of a negative value


KINDS: dict[str, DriftKind] = {
    "rows_px": DriftKind(
        "rows", "px", 1.0, 3, "the right view lies lower", "the right view lies higher"
    ),
    "roll_rad": DriftKind(
        "roll",
        "°",
        180 / np.pi,
        4,
        "the right view is turned clockwise",
        "the right view is turned anticlockwise",
    ),
    "scale": DriftKind(
        "scale", "%", 100.0, 4, "the right view is larger", "the right view is smaller"
    ),
    "turn_rad": DriftKind(
        "turn against the baseline",
        "°",
        180 / np.pi,
        3,
        "both views are turned clockwise",
        "both views are turned anticlockwise",
    ),
    "disparity_px": DriftKind(
        "disparity of infinity", "px", 1.0, 3, "points seem nearer", "points seem farther away"
    ),
    "focal_baseline": DriftKind(
        "focal length times baseline", "%", 100.0, 3, "it is larger", "it is smaller"
    ),
    "gain": DriftKind(
        "gain", "%", 100.0, 2, "the right view is brighter", "the right view is darker"
    ),
    "shading_x": DriftKind(
        "flat field, to the sides",
        "%",
        100.0,
        2,
        "brighter at the right side",
        "brighter at the left side",
    ),
    "shading_y": DriftKind(
        "flat field, up and down", "%", 100.0, 2, "brighter at the bottom", "brighter at the top"
    ),
    "shading_r": DriftKind(
        "flat field, to the corners",
        "%",
        100.0,
        2,
        "brighter in the corners",
        "darker in the corners",
    ),
    "focus_dpt": DriftKind(
        "focus difference",
        "dpt",
        1.0,
        3,
        "the right lens is focused nearer",
        "the right lens is focused farther away",
    ),
    "noise": DriftKind("noise", "%", 100.0, 0, "noise is stronger", "noise is weaker"),
    "spots": DriftKind("spots that stay", "", 1.0, 0, "dirt on the sensor or the lens"),
}
"""Quantities by name, in the order of the tables."""

CORE = ("rows_px", "roll_rad", "scale", "gain")
"""Quantities without which a check does not know whether a camera has drifted."""


class Quantity(NamedTuple):
    """One measured quantity: what has changed since the calibration."""

    name: str
    value: float  # NaN if it could not be measured
    sigma: float
    limit: float  # the change from which on it matters
    reason: str = ""  # why it is unknown, if there is a reason other than its sigma

    @property
    def kind(self) -> DriftKind:
        """Title, unit and meaning."""
        return KINDS[self.name]

    @property
    def state(self) -> State:
        """Whether it has drifted, is steady, or is not known well enough."""
        if self.reason or not (np.isfinite(self.value) and np.isfinite(self.sigma)):
            return "unknown"
        if abs(self.value) > max(self.limit, ALARM_SIGMAS * self.sigma):
            return "drifted"
        return "unknown" if ALARM_SIGMAS * self.sigma > _HIDDEN_LIMITS * self.limit else "steady"

    def shown(self, which: Literal["value", "sigma", "limit"]) -> str:
        """Number in the unit of the tables, without the unit; empty if it is not known."""
        number = getattr(self, which) * self.kind.factor
        if not np.isfinite(number):
            return ""
        sign = "+" if which == "value" and self.name != "spots" else ""
        return f"{number:{sign}.{self.kind.digits}f}"

    @property
    def sentence(self) -> str:
        """Drift in words: quantity, value, sigma and unit."""
        unit = self.kind.unit if self.kind.unit in ("", "%", "°") else f" {self.kind.unit}"
        if self.name == "spots":
            return f"{self.shown('value')} spots stay at their places: {self.kind.words}."
        meaning = self.kind.words if self.value > 0 else self.kind.reverse
        return (
            f"{self.kind.title} by {self.shown('value')} ± {self.shown('sigma')}{unit} "
            f"({meaning}); more than {self.shown('limit')}{unit} matters."
        )

    def as_json(self) -> dict[str, Any]:
        """Values as JSON can hold them; None for numbers that are not known."""
        numbers = {name: getattr(self, name) for name in ("value", "sigma", "limit")}
        return {
            "state": self.state,
            **{name: one if np.isfinite(one) else None for name, one in numbers.items()},
            "reason": self.reason,
        }


def unknown(name: str, limit: float, reason: str) -> Quantity:
    """Quantity that could not be measured, with the reason.

    `limit` is the change from which on it matters; the reason is a sentence.
    """
    return Quantity(name, float("nan"), float("nan"), limit, reason)
