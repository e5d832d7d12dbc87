"""Verdict on a calibration: good, usable or bad, with reasons and remedies."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Grade = Literal["good", "usable", "bad"]

_SUMMARIES: dict[Grade, str] = {
    "good": "Use the rig file as it is.",
    "usable": "The rig file gives depth, but less well than such a camera can.",
    "bad": "Depth from this calibration would be wrong, so there is no rig file.",
}


_WORST_FIRST: tuple[Grade, ...] = ("bad", "usable", "good")


class Remark(NamedTuple):
    """One measure beyond its limit, and the remedy."""

    grade: Grade
    words: str
    remedy: str


class Verdict(NamedTuple):
    """The worst grade of all measures, with the remarks."""

    grade: Grade
    remarks: tuple[Remark, ...]

    @property
    def summary(self) -> str:
        """Meaning of the grade, in a sentence."""
        return _SUMMARIES[self.grade]


class Rule(NamedTuple):
    """Limits of a measure; less is better."""

    good: float  # largest value that is good
    usable: float  # largest value that is usable
    words: str  # with `{value}` and `{limit}`
    remedy: str


_MOVED = "Fix lenses and board so that nothing moves but the distance, and take the frames again."
_RULERS = (
    "Measure the distances again, all from the same plane of the camera, and see whether they "
    "belong to these frames."
)
_BOARD = "Use a board with fine texture all over, lit evenly, and more of it in focus."

# The limits are our judgement, not measurements; docs/calibration.md gives the reason for each.
RULES: dict[str, Rule] = {
    "share_left_out": Rule(
        0.1, 1 / 3, "{value:.0%} of the frames were left out, more than {limit:.0%}.", _BOARD
    ),
    "frames_missing": Rule(
        0.0,
        5.0,
        "The number of frames is {value:.0f} below ten, the fewest that average errors well.",
        "Take more frames: 25 or 50, from the nearest to the farthest distance of interest.",
    ),
    "untested": Rule(
        0.0,
        1.0,
        "The calibration was not tested on frames that it did not see.",
        "Take more frames, at smaller steps: half of them have to do for a calibration.",
    ),
    "inverse_span": Rule(
        0.5,
        0.8,
        "The nearest distance is {value:.0%} of the farthest, more than {limit:.0%}: what is "
        "between is known well, what is beyond is guessed.",
        "Take frames nearer and farther away.",
    ),
    "anchor_sd_px": Rule(
        0.5,
        3.0,
        "The point that the board moves towards is known to {value:.2g} px only.",
        "Move the board straight along its rail, over a longer way.",
    ),
    "vertical_rms_px": Rule(
        0.25,
        0.6,
        "Rows of the two views still differ by {value:.2g} px (rms), more than {limit:g}.",
        _MOVED,
    ),
    "disparity_rms_px": Rule(
        0.15,
        0.5,
        "Disparity is {value:.2g} px (rms) away from that of the distances, more than {limit:g}.",
        _RULERS,
    ),
    "ruler_share": Rule(
        0.01,
        0.03,
        "Single distances are {value:.1%} (rms) away from what the frames say, more than "
        "{limit:.0%}.",
        _RULERS,
    ),
    "cubic_missing": Rule(
        0.02,
        0.3,
        "The cubics through a and b leave {value:.1%} of their spread over, more than "
        "{limit:.0%}: the method consensus will be less exact.",
        _BOARD,
    ),
    "joint_error_share": Rule(
        0.01,
        0.03,
        "Frames that were not calibrated with have an error of {value:.1%} of their distance "
        "(joint), more than {limit:.0%}.",
        _RULERS,
    ),
    "joint_holes": Rule(
        0.25,
        0.6,
        "{value:.0%} of the pixels of frames that were not calibrated with have no depth "
        "(joint), more than {limit:.0%}.",
        _BOARD,
    ),
}


def judge(measures: Mapping[str, float]) -> Verdict:
    """Verdict on the measures; a rule without its measure is skipped."""
    remarks = [
        remark
        for name, rule in RULES.items()
        if name in measures and (remark := _remark(rule, measures[name])) is not None
    ]
    remarks.sort(key=lambda remark: _WORST_FIRST.index(remark.grade))
    return Verdict(remarks[0].grade if remarks else "good", tuple(remarks))


def failure(problem: str) -> Verdict:
    """Verdict on a calibration in which a step failed."""
    return Verdict("bad", (Remark("bad", problem, ""),))


def _remark(rule: Rule, value: float) -> Remark | None:
    if value <= rule.good:
        return None
    # NaN is bad.
    is_usable = value <= rule.usable
    limit = rule.good if is_usable else rule.usable
    words = rule.words.format(value=value, limit=limit)
    return Remark("usable" if is_usable else "bad", words, rule.remedy)
