"""Verdict on a calibration: good, provisional or none, with measures, reasons and remedies."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

Grade = Literal["good", "usable", "bad"]
"""Of one measure."""

Standing = Literal["good", "provisional", "none"]
"""Of a calibration; none if a step failed, so that there is no rig."""

_SUMMARIES: dict[Standing, str] = {
    "good": "Use the rig file as it is.",
    "provisional": "The rig file gives depth that is less exact than such a camera can be, or "
    "wrong where a measure is bad; the commands depth, live, check and info say so again.",
    "none": "Nothing could be fitted, so there is no rig file.",
}


_WORST_FIRST: tuple[Grade, ...] = ("bad", "usable", "good")
_SMALLEST = 0.001  # smaller values are shown as "< 0.001"


class Remark(NamedTuple):
    """One measure beyond its limit, and the remedy."""

    grade: Grade
    words: str
    remedy: str


class Verdict(NamedTuple):
    """Standing of a calibration, with a remark on each measure that is not good."""

    grade: Standing
    remarks: tuple[Remark, ...]

    @property
    def summary(self) -> str:
        """Meaning of the grade, in a sentence."""
        return _SUMMARIES[self.grade]

    @property
    def line(self) -> str:
        """Grade with the worst measure, as the rig file has it."""
        if not self.remarks:
            return self.grade
        more = f" (and {len(self.remarks) - 1} more, in its report)" if self.remarks[1:] else ""
        return f"{self.grade}{more}: {self.remarks[0].words}"


Unit = Literal["", "px", "%"]


class Rule(NamedTuple):
    """Limits of a measure; less is better."""

    title: str  # in words; a star if it is from frames that were not calibrated with
    unit: Unit  # of the value as shown; a share is shown in per cent
    good: float  # largest value that is good
    usable: float  # largest value that is usable
    words: str  # with `{value}` and `{limit}`
    remedy: str

    def grade_of(self, value: float) -> Grade:
        """Grade of a value; NaN is bad."""
        if value <= self.good:
            return "good"
        return "usable" if value <= self.usable else "bad"

    def shown(self, value: float) -> str:
        """Value with two digits, in the unit."""
        if not math.isfinite(value):
            return "unknown"
        scaled = 100 * value if self.unit == "%" else value
        if 0 < scaled < _SMALLEST:
            return f"< {_SMALLEST}"
        return np.format_float_positional(
            scaled, precision=2, fractional=False, unique=False, trim="-"
        )


class Measure(NamedTuple):
    """One line of the table of measures, as shown."""

    name: str  # as in JSON
    title: str
    unit: Unit  # of the value and both limits
    value: str
    good: str  # largest value that is good
    usable: str  # largest value that is usable
    grade: Grade

    @property
    def title_with_unit(self) -> str:
        """Name of the measure in words, with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


NOTE_ON_MEASURES = (
    "Less is better. Stars: on frames that were not calibrated with. Errors are in per cent of the "
    "distance; off and apart are root mean squares; a ninth is a third of the rows and columns."
)
"""Sentences below the table of measures."""


_MOVED = "Fix lenses and board so that nothing moves but the distance, and take the frames again."
_RULERS = (
    "Measure the distances again, all from the same plane of the camera, and see whether they "
    "belong to these frames."
)
_BOARD = "Use a board with fine texture all over, lit evenly, and more of it in focus."
LENSES = (
    "See where in the field it is, in the maps of the report: use a board that fills the views, or "
    "a smaller part of the views."
)
"""Remedy for what the maps of the lenses leave, if the fit shows nothing more definite."""
_LIGHT = (
    "Light the board evenly, without reflections, and keep stray light out of the lenses; fix "
    "exposure and gain."
)

# The limits are our judgement; docs/calibration.md gives the reason for each. The order is that of
# the tables: first what depth is worth, then what it is made from.
RULES: dict[str, Rule] = {
    "joint_error_share": Rule(
        "joint: mean error*",
        "%",
        0.005,
        0.03,
        "Frames that were not calibrated with have an error of {value:.2%} of their distance "
        "(joint), more than {limit:.1%}.",
        _RULERS,
    ),
    "joint_holes": Rule(
        "joint: pixels without a depth*",
        "%",
        0.25,
        0.6,
        "{value:.0%} of the pixels of frames that were not calibrated with have no depth "
        "(joint), more than {limit:.0%}.",
        _BOARD,
    ),
    "beyond_3_sigma": Rule(
        "joint: errors beyond 3 sigma*",
        "%",
        0.05,
        0.15,
        "{value:.0%} of the errors on frames that were not calibrated with are beyond 3 sigma "
        "(joint), more than {limit:.0%}: sigma does not tell how far depth is off.",
        LENSES,
    ),
    "largest_ninth_share": Rule(
        "mean error of the worst ninth*",
        "%",
        0.004,
        0.012,
        "A ninth of the field is {value:.2%} of the distance off, more than {limit:.1%}, in a "
        "frame that was not calibrated with.",
        LENSES,
    ),
    "field_disparity_rms_px": Rule(
        "disparity off over the field*",
        "px",
        0.05,
        0.15,
        "Disparity differs by {value:.2g} px (rms) over the field of frames that were not "
        "calibrated with, more than {limit:g}.",
        LENSES,
    ),
    "disparity_rms_px": Rule(
        "disparity off the distances",
        "px",
        0.05,
        0.15,
        "Disparity is {value:.2g} px (rms) away from that of the distances, more than {limit:g}.",
        _RULERS,
    ),
    "vertical_rms_px": Rule(
        "rows of the views apart",
        "px",
        0.25,
        0.6,
        "Rows of the two views still differ by {value:.2g} px (rms), more than {limit:g}.",
        _MOVED,
    ),
    "light_ratio_rms": Rule(
        "light of the views apart*",
        "%",
        0.005,
        0.05,
        "Light of the two views still differs by {value:.2%} (rms), more than {limit:.1%}: the "
        "method consensus will be less exact.",
        _LIGHT,
    ),
    "ruler_share": Rule(
        "single distances off",
        "%",
        0.01,
        0.03,
        "Single distances are {value:.1%} (rms) away from what the frames say, more than "
        "{limit:.0%}.",
        _RULERS,
    ),
    "anchor_sd_px": Rule(
        "anchors, standard deviation",
        "px",
        0.5,
        3.0,
        "The point that the board moves towards is known to {value:.2g} px only.",
        "Move the board straight along its rail, over a longer way.",
    ),
    "cubic_missing": Rule(
        "spread of a, b off their cubics",
        "%",
        0.02,
        0.3,
        "The cubics through a and b leave {value:.1%} of their spread over, more than "
        "{limit:.0%}: the method consensus will be less exact.",
        _BOARD,
    ),
    "inverse_span": Rule(
        "nearest over farthest distance",
        "%",
        0.5,
        0.8,
        "The nearest distance is {value:.0%} of the farthest, more than {limit:.0%}: what is "
        "between is known well, what is beyond is guessed.",
        "Take frames nearer and farther away.",
    ),
    "share_left_out": Rule(
        "frames left out",
        "%",
        0.1,
        1 / 3,
        "{value:.0%} of the frames were left out, more than {limit:.0%}.",
        _BOARD,
    ),
    "frames_missing": Rule(
        "frames missing to ten",
        "",
        0.0,
        5.0,
        "The number of frames is {value:.0f} below ten, the fewest that average errors well.",
        "Take 25 frames, evenly in 1/distance, from the nearest to the farthest of interest.",
    ),
    "untested": Rule(
        "tests missing",
        "",
        0.0,
        1.0,
        "The calibration was not tested on frames that it did not see.",
        "Take more frames, at smaller steps: half of them have to do for a calibration.",
    ),
}


def judge(measures: Mapping[str, float], lens_remedy: str = LENSES) -> Verdict:
    """Verdict on the measures; a rule without its measure is skipped.

    `lens_remedy` is said of measures over the field: what the frames themselves show to be wrong.
    """
    remarks = [
        remark._replace(remedy=lens_remedy) if remark.remedy is LENSES else remark
        for name, rule in RULES.items()
        if name in measures and (remark := _remark(rule, measures[name])) is not None
    ]
    remarks.sort(key=lambda remark: _WORST_FIRST.index(remark.grade))
    return Verdict("provisional" if remarks else "good", tuple(remarks))


def failure(problem: str) -> Verdict:
    """Verdict on a calibration in which a step failed."""
    return Verdict("none", (Remark("bad", problem, ""),))


def table_of_measures(measures: Mapping[str, float]) -> tuple[Measure, ...]:
    """Lines of the table of measures: all that have a rule, in the order of the rules."""
    return tuple(
        Measure(
            name,
            rule.title,
            rule.unit,
            rule.shown(measures[name]),
            rule.shown(rule.good),
            rule.shown(rule.usable),
            rule.grade_of(measures[name]),
        )
        for name, rule in RULES.items()
        if name in measures
    )


def _remark(rule: Rule, value: float) -> Remark | None:
    grade = rule.grade_of(value)
    if grade == "good":
        return None
    if not math.isfinite(value):
        return Remark(grade, f"Not known: {rule.title.removesuffix('*')}.", rule.remedy)
    limit = rule.good if grade == "usable" else rule.usable
    return Remark(grade, rule.words.format(value=value, limit=limit), rule.remedy)
