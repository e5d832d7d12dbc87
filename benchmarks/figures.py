"""The figures that speed is held to, and what was measured of each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sheets import Sheet

Sense = Literal["<", "<=", ">="]


class Target(NamedTuple):
    """What is asked; without a sense nothing is, and the figure is there to be known."""

    what: str
    sense: Sense | None
    limit: float
    unit: str
    digits: int = 1

    @property
    def asked(self) -> str:
        """In words."""
        if self.sense is None:
            return "no figure"
        return f"{self.sense} {self.limit:g}{self.unit}"


PEER, ORACLE = "times faster than", "times faster than its oracle"
TARGETS = {
    "sgbm": Target(f"`joint`: {PEER} StereoSGBM, default mode, 96 disparities", ">=", 3, " x", 2),
    "sgbm_3way": Target(f"`joint`: {PEER} StereoSGBM, its fast 3-way mode", None, 0, " x", 2),
    "bm": Target(f"`joint`: {PEER} StereoBM, 96 disparities", None, 0, " x", 2),
    "joint_oracle": Target(f"`joint`: {ORACLE}", ">=", 50, " x"),
    "consensus_oracle": Target(
        f"`consensus`, 240 candidates, 3 baselines: {ORACLE}", ">=", 50, " x"
    ),
    "joint_same": Target("`joint`: same candidate as the oracle", ">=", 99.9, " %", 3),
    "joint_rest": Target("`joint`: the others, at most so far away", "<=", 1, " steps", 2),
    "consensus_same": Target("`consensus`: same candidate as the oracle", ">=", 99.9, " %", 3),
    "consensus_rest": Target("`consensus`: the others, at most so far away", "<=", 1, " steps", 2),
    "memory": Target("peak memory above the two images", "<", 400, " MB", 0),
    "pixels": Target("time of a pixel, largest over smallest size, beyond 1", "<=", 15, " %"),
    "candidates": Target("growth with the candidates, as a power", "<", 1, "", 2),
    "threads": Target("2 threads against 1", ">=", 1.7, " x", 2),
    "callers": Target("pairs a second, two callers at once against one", None, 0, " x", 2),
    "content": Target("slowest kind of picture against the scene", None, 0, " x", 2),
    "warm_call": Target("first call of a new process, imports included", "<", 1.5, " s", 2),
    "import": Target("`import d3s`", "<", 0.3, " s", 3),
    "first_ever": Target("first call ever, with compilation", "<", 30, " s"),
    "first_ever_line": Target("lines that say that it compiles", ">=", 1, "", 0),
    "half_frame": Target("time budget: half the rows, share of the time", "<=", 0.55, "", 2),
    "half_options": Target("time budget: leanest options, share of the time", "<=", 0.5, "", 2),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure, as it was measured; None where it could not be."""

    key: str
    measured: float | None
    peer_s: float | None = None
    ours_s: float | None = None
    note: str = ""

    @property
    def target(self) -> Target:
        return TARGETS[self.key]

    @property
    def held(self) -> bool | None:
        """Whether the figure is what was asked; None if nothing was asked or nothing measured."""
        if self.target.sense is None or self.measured is None:
            return None
        # What is no number is never what was asked.
        match self.target.sense:
            case "<":
                return self.measured < self.target.limit
            case "<=":
                return self.measured <= self.target.limit
            case ">=":
                return self.measured >= self.target.limit

    def as_json(self) -> dict[str, Any]:
        """With all that a reader of the file needs."""
        target = self.target
        return {
            "key": self.key,
            "what": target.what,
            "asked": target.asked,
            "measured": _number(self.measured),
            "unit": target.unit.strip(),
            "peer_s": _number(self.peer_s),
            "ours_s": _number(self.ours_s),
            "held": self.held,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "Row":
        """Whether it held is found out again, not read."""
        names = ("key", "measured", "peer_s", "ours_s", "note")
        return cls(**{name: table[name] for name in names})

    def cells(self) -> tuple[str, ...]:
        """As they are shown."""
        target = self.target
        measured = "not measured"
        if self.measured is not None:
            measured = f"{self.measured:.{target.digits}f}{target.unit}"
        held = {True: "yes", False: "**no**", None: ""}[self.held]
        times = (shown_time(self.peer_s), shown_time(self.ours_s))
        return (target.what, target.asked, measured, *times, held, self.note)


def sheet(rows: list[Row]) -> Sheet:
    """All figures."""
    headings = ("what", "asked", "measured", "its time", "ours", "held?", "how")
    title = "speed: what is asked and what was measured"
    return Sheet(title, headings, [row.cells() for row in rows], words=(0, 6))


def shown_time(seconds: float | None) -> str:
    """Three digits, in the unit that suits."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    value, unit = (seconds, "s") if seconds >= 1 else (1e3 * seconds, "ms")
    return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"


def _number(value: float | None) -> float | None:
    """JSON has no word for what is no number."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
