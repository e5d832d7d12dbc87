"""What a calibration found, step by step, and how far it can be trusted."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.anchors import Anchors
from d3s.calibrate.baselines import ChosenBaselines
from d3s.calibrate.defocus import Defocus
from d3s.calibrate.fields import Fields
from d3s.calibrate.findings import Finding, findings_of
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.matches import Matches
from d3s.calibrate.noise import Noise
from d3s.calibrate.rectify import Rectification
from d3s.calibrate.tuning import Tuning
from d3s.calibrate.validate import Validation
from d3s.calibrate.verdict import Verdict, failed, judged
from d3s.rig import Rig
from d3s.rig.split import view_to_raw_matrices
from d3s.types import FloatArray

Picture = NDArray[np.uint8]

# Longer lists are for figures, and make a file that nobody reads.
_LONGEST = 2000


class RowsLeft(NamedTuple):
    """Vertical disparity of every place that both views show."""

    frame: NDArray[np.int64]
    before_px: FloatArray  # with nothing but the anchors
    after_px: FloatArray


class Outlines(NamedTuple):
    """Corners of the parts that are cut from the raw frame, (4, 2) each: x, y."""

    left: FloatArray
    right: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """All findings of a calibration; what was not reached is None."""

    name: str
    version: str
    created: str
    names: tuple[str, ...]
    distances_m: FloatArray
    shape: tuple[int, int]
    not_read: dict[str, str]  # frames that were not even looked at by the steps, and why
    remarks: tuple[str, ...]
    thumbnails: dict[int, Picture] = field(default_factory=dict)
    overview: Picture | None = None
    fields: Fields | None = None
    matches: Matches | None = None
    anchors: Anchors | None = None
    rectification: Rectification | None = None
    geometry: Geometry | None = None
    noise: Noise | None = None
    defocus: Defocus | None = None
    tuning: Tuning | None = None
    baselines: ChosenBaselines | None = None
    validation: tuple[Validation, ...] = ()
    rig: Rig | None = None
    timings_s: dict[str, float] = field(default_factory=dict)
    problem: str = ""  # why it came to no end

    @property
    def left_out(self) -> dict[int, str]:
        """Frames that do not fit the others, and why; no later step has used them.

        What says nothing of the anchors may still have good rows and a good disparity, and is left
        out by that step alone.
        """
        out: dict[int, str] = {}
        for name in _FITTING:
            out = {**getattr(getattr(self, name), "left_out", {}), **out}
        return dict(sorted(out.items()))

    @property
    def left_out_by_step(self) -> dict[str, dict[int, str]]:
        """Frames that single steps could do nothing with, though they fit, and why."""
        # The virtual baselines are chosen with the frames of the tuning.
        told = (*_FITTING, "baselines")
        steps = {name: getattr(self, name) for name in _STEPS if name not in told}
        steps |= {f"test of {one.method}": one for one in self.validation}
        return {name: step.left_out for name, step in steps.items() if step and step.left_out}

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is worth a word: sentences, of the captures and then of the steps."""
        blur = () if self.defocus is None else self.defocus.undetermined
        tuned = () if self.tuning is None else self.tuning.warnings
        return tuple(f"{one[0].upper()}{one[1:]}" for one in (*self.remarks, *blur, *tuned))

    @property
    def verdict(self) -> Verdict:
        """Whether to trust it, why not, and what to do."""
        return failed(self.problem) if self.problem else judged(self.measures)

    @property
    def measures(self) -> dict[str, float]:
        """What the verdict rests on; less is better."""
        count, out = len(self.names), len(self.left_out)
        unread = len(self.not_read)
        found = {
            "share_left_out": (unread + out) / (unread + count),
            "frames_missing": float(max(10 - count + out, 0)),
            "inverse_span": float(self.distances_m[0] / self.distances_m[-1]),
        }
        if self.geometry is not None:
            found["anchor_sd_px"] = max(self.geometry.anchor_difference_sigma_px)
            found["disparity_rms_px"] = _rms(self.geometry.residuals_px)
            found["ruler_share"] = _rms(self.geometry.distance_errors_m / self.geometry.depths_m)
        if self.rectification is not None:
            found["vertical_rms_px"] = self.rectification.rms_px
        if self.tuning is not None:
            found["untested"] = float(not self.validation)
            found["cubic_missing"] = 1 - min(self.tuning.a_cubic.r2, self.tuning.b_cubic.r2)
        for one in self.validation:
            if one.method == "joint":
                found["joint_error_share"] = _median(one.mae_m / one.depths_m)
                found["joint_holes"] = 1 - float(np.median(one.density))
        return found

    @property
    def residuals(self) -> dict[str, float]:
        """What a rig file remembers of it, by names with their units."""
        out = {name: value for name, value in self.measures.items() if math.isfinite(value)}
        if self.geometry is not None:
            out["ruler_offset_m"] = self.geometry.ruler_offset_m
            out["focal_baseline_sd_px_m"] = self.geometry.focal_baseline_sigma_px_m
        for one in self.validation:
            if math.isfinite(one.overall_mae_m):
                out[f"{one.method}_mae_m"] = one.overall_mae_m
        return out

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The numbers of a table, in the order of the steps."""
        return tuple(findings_of(self))

    @property
    def rows(self) -> RowsLeft | None:
        """Vertical disparity of all places, before and after; None before rectification."""
        if self.matches is None or self.rectification is None or self.geometry is None:
            return None
        anchors = (self.geometry.anchor_left_px, self.geometry.anchor_right_px)
        moved = self.rectification._replace(shift_y_px=self.geometry.rectify_shift_y_px)
        pairs = [pair for pair in self.matches.across if pair.first not in self.left_out]
        before, after = [], []
        for pair in pairs:
            left, right = moved.rectified(pair.first_px, pair.second_px, anchors)
            after.append(left[:, 1] - right[:, 1])
            left_y, right_y = pair.first_px[:, 1], pair.second_px[:, 1]
            before.append(left_y - anchors[0][1] - right_y + anchors[1][1])
        frames = [np.full(len(pair.first_px), pair.first) for pair in pairs]
        return RowsLeft(np.concatenate(frames), np.concatenate(before), np.concatenate(after))

    @property
    def outlines(self) -> Outlines | None:
        """What is cut from the raw frame; None before it is known."""
        if self.rig is None or self.rig.calibration is None:
            return None
        cols, rows = self.rig.calibration.crop_cols_px, self.rig.calibration.crop_rows_px
        corners = np.array([[0, 0, 1], [cols - 1, 0, 1], [cols - 1, rows - 1, 1], [0, rows - 1, 1]])
        left, right = (corners @ place.T for place in view_to_raw_matrices(self.rig.calibration))
        return Outlines(left, right)

    def as_json(self) -> dict[str, Any]:
        """All numbers, as a program can read them: None for what is no number."""
        verdict = self.verdict
        told: dict[str, Any] = {
            "name": self.name,
            "d3s_version": self.version,
            "created": self.created,
            "verdict": {
                "grade": verdict.grade,
                "summary": verdict.summary,
                "remarks": [remark._asdict() for remark in verdict.remarks],
            },
            "frames": {
                "names": self.names,
                "distances_m": self.distances_m,
                "shape_px": self.shape,
                "left_out": {self.names[frame]: why for frame, why in self.left_out.items()}
                | self.not_read,
                "remarks": self.remarks,
            },
            "notes": self.notes,
            "findings": [one._asdict() for one in self.findings],
            "measures": self.measures,
        }
        told |= {name: getattr(self, name) for name in _STEPS if name != "matches"}
        told |= {"fields": self.fields, "cross_validation": self.validation}
        told |= {"rig": None if self.rig is None else self.rig.model_dump()}
        return {name: _plain(value) for name, value in told.items()} | {
            "timings_s": _plain(self.timings_s)
        }


_FITTING = ("matches", "rectification", "geometry")
_STEPS = (
    "matches", "anchors", "rectification", "geometry", "noise", "defocus", "tuning", "baselines",
)  # fmt: skip


def _rms(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else math.nan


def _median(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else math.nan


def _plain(value: Any) -> Any:
    """A value of JSON: lists for arrays, names for the fields of a finding."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist()) if np.size(value) <= _LONGEST else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
