"""Targets of speed with the measured figure of each, and tables of times."""

import math
from typing import Any, Literal, NamedTuple

from sheets import Sheet

Sense = Literal["<", "<=", ">="]


class Target(NamedTuple):
    """Quantity and its limit; without a sense there is no target, only a measurement."""

    what: str
    sense: Sense | None
    limit: float
    unit: str
    digits: int = 1

    @property
    def asked(self) -> str:
        """Target as text, such as ">= 3 x"."""
        if self.sense is None:
            return "no target"
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
    "joint_rest": Target("`joint`: largest difference of the others", "<=", 1, " steps", 2),
    "consensus_same": Target("`consensus`: same candidate as the oracle", ">=", 99.9, " %", 3),
    "consensus_rest": Target("`consensus`: largest difference of the others", "<=", 1, " steps", 2),
    "memory": Target("peak memory above the two images", "<", 400, " MB", 0),
    "pixels": Target("time per pixel over frame sizes, largest / smallest - 1", "<=", 15, " %"),
    "candidates": Target("growth with the candidates, exponent", "<", 1, "", 2),
    "threads": Target("2 threads against 1", ">=", 1.7, " x", 2),
    "callers": Target("pairs per second, two callers at once against one", None, 0, " x", 2),
    "warm_call": Target("first call of a new process, imports included", "<", 1.5, " s", 2),
    "import": Target("`import d3s`", "<", 0.3, " s", 3),
    "first_ever": Target("first call ever, with compilation", "<", 30, " s"),
    "first_ever_line": Target("messages about the compilation", ">=", 1, "", 0),
}


class Row(NamedTuple):
    """Measured figure of one target; None where it could not be measured."""

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
        """Whether the target is met; None without a target or a measurement."""
        if self.target.sense is None or self.measured is None:
            return None
        # NaN meets no target.
        match self.target.sense:
            case "<":
                return self.measured < self.target.limit
            case "<=":
                return self.measured <= self.target.limit
            case ">=":
                return self.measured >= self.target.limit

    def cells(self) -> tuple[str, ...]:
        """Cells of the row in the table."""
        target = self.target
        measured = "not measured"
        if self.measured is not None:
            measured = f"{self.measured:.{target.digits}f}{target.unit}"
        held = {True: "yes", False: "**no**", None: ""}[self.held]
        times = (shown_time(self.peer_s), shown_time(self.ours_s))
        return (target.what, target.asked, measured, *times, held, self.note)


def sheet(rows: list[Row]) -> Sheet:
    """Table of all figures."""
    headings = ("what", "target", "measured", "its time", "ours", "met?", "how")
    title = "speed: targets and measurements"
    return Sheet(title, headings, [row.cells() for row in rows], words=(0, 6))


def shown_time(seconds: float | None) -> str:
    """Time with three digits, in seconds or milliseconds; empty for None and NaN."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    value, unit = (seconds, "s") if seconds >= 1 else (1e3 * seconds, "ms")
    return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"


def stages_sheet(stages: dict[str, Any]) -> Sheet:
    """Table of the time of each stage."""
    whole = stages["whole_s"]
    lines = [
        (name, shown_time(seconds), f"{100 * seconds / whole:.0f} %")
        for name, seconds in (*stages["stages_s"].items(), ("all", whole))
    ]
    title = f"where the time goes, {stages['rows']} x {stages['cols']} px"
    return Sheet(title, ("stage", "time", "share"), lines)


def pixels_sheet(table: list[dict[str, Any]]) -> Sheet:
    """Table of time over the size of the frame."""
    lines = [
        (
            f"{line['rows']} x {line['cols']}",
            f"{line['megapixels']:.2f}",
            *(shown_time(line[f"{name}_s"]) for name in ("joint", "sgbm", "bm")),
            f"{1e3 * line['joint_s'] / line['megapixels']:.1f}",
        )
        for line in table
    ]
    headings = ("frame (px)", "Mpx", "joint", "StereoSGBM", "StereoBM", "joint, ms / Mpx")
    return Sheet("time over pixels", headings, lines)


def candidates_sheet(table: dict[str, list[dict[str, float]]]) -> Sheet:
    """Table of time over the number of candidates."""
    words = {
        "joint": "joint, px of disparity in the range",
        "sgbm": "StereoSGBM, disparities",
        "consensus": "consensus, candidates",
    }
    lines = [
        (
            words[method],
            f"{line['candidates']}",
            f"{line['megapixels']:.2f}",
            shown_time(line["seconds"]),
            f"{1e3 * line['seconds'] / line['megapixels']:.1f}",
        )
        for method, some in table.items()
        for line in some
    ]
    return Sheet("time over candidates", ("method", "candidates", "Mpx", "time", "ms / Mpx"), lines)
