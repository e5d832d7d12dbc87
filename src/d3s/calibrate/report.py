"""Report of a calibration: results of all steps, a table of findings, and the verdict."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.anchors import Anchors
from d3s.calibrate.baselines import ChosenBaselines
from d3s.calibrate.defocus import Defocus
from d3s.calibrate.disparity_map import DisparityMap
from d3s.calibrate.distortion import Distortion
from d3s.calibrate.field_residuals import FieldResiduals, mean_of_known
from d3s.calibrate.fields import Fields
from d3s.calibrate.findings import Finding, findings_of
from d3s.calibrate.focus_map import FocusMap
from d3s.calibrate.frames import Picture
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.illumination import Illumination
from d3s.calibrate.matches import Matches
from d3s.calibrate.noise import Noise
from d3s.calibrate.rectification import Rectification
from d3s.calibrate.tuning import Tuning
from d3s.calibrate.validation import Validation
from d3s.calibrate.verdict import Measure, Verdict, failure, judge, table_of_measures
from d3s.rig import Rig
from d3s.rig.lens_maps import LensMaps
from d3s.rig.places import view_to_raw_places
from d3s.types import FloatArray

# Longer arrays are only for figures, and are not written to JSON.
_LONGEST = 2000
# Steps whose rejected frames no later step uses.
_FITTING = ("matches", "rectification", "geometry")
_STEPS = (
    "matches", "anchors", "rectification", "geometry", "noise", "defocus", "tuning", "baselines",
)  # fmt: skip


class RowsLeft(NamedTuple):
    """Vertical disparity of all places that both views show, (places,) each."""

    frame: NDArray[np.int64]  # number of the frame
    before_px: FloatArray  # aligned by the anchors only
    after_px: FloatArray  # rectified


class Outlines(NamedTuple):
    """Corners of the views in the raw frame, (4, 2) each: x, y."""

    left: FloatArray
    right: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """Results of all steps of a calibration; None for steps that were not reached.

    `as_json` has all numbers; `verdict` says whether to trust the calibration; `left_out` has the
    rejected frames.
    """

    name: str
    version: str
    created: str
    names: tuple[str, ...]
    distances_m: FloatArray
    shape: tuple[int, int]
    not_read: dict[str, str]  # frames rejected before the first step: the reason by name
    remarks: tuple[str, ...]
    thumbnails: dict[int, Picture] = field(default_factory=dict)
    overview: Picture | None = None
    fields: Fields | None = None
    matches: Matches | None = None
    anchors: Anchors | None = None
    rectification: Rectification | None = None
    geometry: Geometry | None = None
    distortion: Distortion | None = None
    bowl_doubt_per_m: float = 0.0  # standard deviation of the bowl by errors of the lenses
    illumination: Illumination | None = None
    focus_map: FocusMap | None = None
    disparity_map: DisparityMap | None = None
    noise: Noise | None = None
    defocus: Defocus | None = None
    tuning: Tuning | None = None
    baselines: ChosenBaselines | None = None
    lens_maps: LensMaps | None = None
    field_residuals: FieldResiduals | None = None
    validation: tuple[Validation, ...] = ()
    rig: Rig | None = None
    timings_s: dict[str, float] = field(default_factory=dict)
    problem: str = ""  # error of the step that failed

    @property
    def left_out(self) -> dict[int, str]:
        """Rejected frames, except those rejected by one step only: the reason by number.

        A frame that the anchor step rejects may still have good rows and a good disparity.
        """
        out: dict[int, str] = {}
        for name in _FITTING:
            out = {**getattr(getattr(self, name), "left_out", {}), **out}
        return dict(sorted(out.items()))

    @property
    def left_out_by_step(self) -> dict[str, dict[int, str]]:
        """Frames that one step rejected and others used: the reason by step and number."""
        # The virtual baselines are chosen with the frames of the tuning.
        elsewhere = (*_FITTING, "baselines")
        steps = {name: getattr(self, name) for name in _STEPS if name not in elsewhere}
        steps |= {f"test of {one.method}": one for one in self.validation}
        return {name: step.left_out for name, step in steps.items() if step and step.left_out}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the captures, and then on the steps, as sentences."""
        blur = () if self.defocus is None else self.defocus.undetermined
        tuned = () if self.tuning is None else self.tuning.warnings
        return tuple(f"{one[0].upper()}{one[1:]}" for one in (*self.remarks, *blur, *tuned))

    @property
    def verdict(self) -> Verdict:
        """Grade of the calibration, with reasons and remedies."""
        return failure(self.problem) if self.problem else judge(self.measures)

    @property
    def measures(self) -> dict[str, float]:
        """Measures that the verdict is made from; less is better."""
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
        return found | self._measures_of_field() | self._measures_of_test()

    def _measures_of_field(self) -> dict[str, float]:
        """Measures over the field, on frames that were not calibrated with."""
        left = self.field_residuals
        if left is None:
            return {}
        found = {"field_disparity_rms_px": left.spread_px, "light_ratio_rms": left.light_rms}
        if self.geometry is not None:
            # dZ / Z = Z / K dd
            share = left.largest_ninth_px * left.depths_m / self.geometry.focal_baseline_px_m
            known = share[np.isfinite(share)]
            found["largest_ninth_share"] = float(known.max()) if known.size else math.nan
        # A field without a single value was not measured, which is no fault of the lenses.
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def _measures_of_test(self) -> dict[str, float]:
        """Measures of the method joint, on frames that were not calibrated with."""
        found = {}
        for one in self.validation:
            if one.method == "joint":
                found["joint_error_share"] = _median(one.mae_m / one.depths_m)
                found["joint_holes"] = 1 - float(np.median(one.density))
                if one.within_3_sigma is not None:
                    found["beyond_3_sigma"] = 1 - float(mean_of_known(one.within_3_sigma))
        return found

    @property
    def table_of_measures(self) -> tuple[Measure, ...]:
        """All measures with their limits and grades, as shown."""
        return table_of_measures(self.measures)

    @property
    def residuals(self) -> dict[str, float]:
        """Numbers that the rig file keeps, by names with their units."""
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
        """Lines of the table of findings, in the order of the steps."""
        return tuple(findings_of(self))

    @property
    def rows(self) -> RowsLeft | None:
        """Vertical disparity before and after rectification; None if that was not reached."""
        if self.matches is None or self.rectification is None or self.geometry is None:
            return None
        anchors = (self.geometry.anchor_left_px, self.geometry.anchor_right_px)
        moved = self.rectification._replace(shift_y_px=0.0)  # the anchors include it
        matches = self.matches
        straight = matches if self.distortion is None else self.distortion.removed_from(matches)
        is_kept = [pair.first not in self.left_out for pair in matches.across]
        pairs = list(compress(matches.across, is_kept))
        before, after = [], []
        for pair, ideal in zip(pairs, compress(straight.across, is_kept), strict=True):
            left, right = moved.rectified(ideal.first_px, ideal.second_px, anchors)
            after.append(left[:, 1] - right[:, 1])
            left_y, right_y = pair.first_px[:, 1], pair.second_px[:, 1]
            before.append(left_y - anchors[0][1] - right_y + anchors[1][1])
        frames = [np.full(len(pair.first_px), pair.first) for pair in pairs]
        return RowsLeft(np.concatenate(frames), np.concatenate(before), np.concatenate(after))

    @property
    def outlines(self) -> Outlines | None:
        """Corners of the views in the raw frame; None if these are not known."""
        if self.rig is None or self.rig.calibration is None:
            return None
        cols, rows = self.rig.calibration.crop_cols_px, self.rig.calibration.crop_rows_px
        x, y = np.array([[0, cols - 1, cols - 1, 0], [0, 0, rows - 1, rows - 1]])
        left, right = (
            view_to_raw_places(self.rig.calibration, camera, x, y).T for camera in (0, 1)
        )
        return Outlines(left, right)

    def as_json(self) -> dict[str, Any]:
        """All numbers as values of JSON; None for NaN and infinity."""
        verdict = self.verdict
        values: dict[str, Any] = {
            "name": self.name,
            "d3s_version": self.version,
            "created": self.created,
            "verdict": {
                "grade": verdict.grade,
                "summary": verdict.summary,
                "remarks": [remark._asdict() for remark in verdict.remarks],
                "measures": [one._asdict() for one in self.table_of_measures],
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
        values |= {name: getattr(self, name) for name in _STEPS if name != "matches"}
        lenses, left = self.lens_maps, self.field_residuals
        values |= {"lens_maps": None if lenses is None else lenses.model_dump()}
        values |= {"field_residuals": None if left is None else left.as_json()}
        values |= {"fields": self.fields, "cross_validation": self.validation}
        values |= {"rig": None if self.rig is None else self.rig.model_dump()}
        return {name: _plain(value) for name, value in values.items()} | {
            "timings_s": _plain(self.timings_s)
        }


def _rms(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else math.nan


def _median(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else math.nan


def _plain(value: Any) -> Any:
    """Value of JSON: a list for an array, an object for a named tuple."""
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
