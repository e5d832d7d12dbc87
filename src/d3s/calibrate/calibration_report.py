"""Report of a calibration: results of all steps, a table of findings, and the verdict."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.anchors import Anchors, Method
from d3s.calibrate.baselines import ChosenBaselines
from d3s.calibrate.defocus import Defocus
from d3s.calibrate.disparity_map import DisparityMap
from d3s.calibrate.distortion_fit import Distortion
from d3s.calibrate.fields import Fields
from d3s.calibrate.focus_map import FocusMap
from d3s.calibrate.frames import Picture
from d3s.calibrate.geometry import Geometry
from d3s.calibrate.illumination import Illumination
from d3s.calibrate.matches import Matches
from d3s.calibrate.rectification import Rectification
from d3s.calibrate.robust import rms
from d3s.calibrate.sensor_noise import Noise
from d3s.calibrate.tuning import Tuning
from d3s.calibrate.validation import FieldResiduals, Validation, mean_of_known
from d3s.calibrate.verdict import LENSES, Measure, Verdict, failure, judge, table_of_measures
from d3s.rig import LensMaps, Optics, Rig
from d3s.rig.calibration import view_to_raw_places
from d3s.types import FloatArray

# Longer arrays are only for figures, and are not written to JSON.
_LONGEST = 2000
ENOUGH_FRAMES = 25
"""Frames that describe lenses with errors: fewer leave gaps (benchmarks/rehearsal.py)."""
_UNEVEN = 2.0  # widest gap in 1/distance over an even one, which distances even in metres exceed
# Bend of a board, over half a metre, that the terms of the fit may no longer describe.
_HALF_BOARD_M, _BENT_MM = 0.25, 10.0
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


class Finding(NamedTuple):
    """One line of the table of findings."""

    what: str
    value: float
    spread: float | None  # standard deviation, in the same unit
    unit: str
    digits: int
    kept: str = ""  # data that the value is from

    @property
    def shown(self) -> str:
        """Value with its unit."""
        if not math.isfinite(self.value):
            return "none"
        return f"{self.value:z.{self.digits}f}{self.unit}"

    @property
    def spread_shown(self) -> str:
        """Standard deviation with two digits and its unit; empty if there is none."""
        if self.spread is None or not math.isfinite(self.spread):
            return ""
        two_digits = np.format_float_positional(
            self.spread, precision=2, fractional=False, unique=False, trim="-"
        )
        return f"± {two_digits}{self.unit}"


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
        return failure(self.problem) if self.problem else judge(self.measures, self._lens_remedy)

    @property
    def _lens_remedy(self) -> str:
        """Remedy for what the maps of the lenses leave over: what these frames show to be amiss."""
        vergences = 1 / self.distances_m
        count, widest = len(vergences), float(np.abs(np.diff(vergences)).max(initial=0.0))
        uneven = widest * (count - 1) / max(abs(vergences[0] - vergences[-1]), 1e-9)
        found = []
        if count < ENOUGH_FRAMES or uneven > _UNEVEN:
            found.append(
                f"Take {max(count, ENOUGH_FRAMES)} frames, evenly in 1/distance: of these {count}, "
                f"each second one calibrated the camera that was tested, and the widest gap in "
                f"1/distance is {uneven:.1f} times an even one."
            )
        bend = () if self.distortion is None else self.distortion.bend_per_m
        bend_mm = 1e3 * _HALF_BOARD_M**2 * float(np.abs(bend).max(initial=0.0))
        if bend_mm > _BENT_MM:
            found.append(f"Flatten the board: it is bent by {bend_mm:.0f} mm over half a metre.")
        return " ".join(found) or LENSES

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
            found["disparity_rms_px"] = rms(self.geometry.residuals_px)
            found["ruler_share"] = rms(self.geometry.distance_errors_m / self.geometry.depths_m)
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
        return tuple(_findings_of(self))

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


def _findings_of(report: Report) -> Iterator[Finding]:
    """Lines of the table of findings, in the order of the steps."""
    if report.anchors is not None:
        yield from _anchors_findings(report.anchors, report.geometry, report.shape[0])
    if report.rectification is not None:
        yield from _rectification_findings(report.rectification)
    if report.geometry is not None:
        yield from _geometry_findings(report.geometry)
    if report.defocus is not None:
        yield from _defocus_findings(report.defocus)
    if report.tuning is not None:
        yield from _tuning_findings(report.tuning, report.baselines)
    if report.noise is not None:
        yield from _noise_findings(report.noise)
    if report.lens_maps is not None:
        yield from _lens_findings(report.lens_maps, _side_of_the_field(report))
        if report.rig is not None and report.geometry is not None:
            yield from _depth_sigma_findings(report.lens_maps, report.rig.optics, report.geometry)
    if report.field_residuals is not None:
        yield from _field_findings(report.field_residuals)
    for one in report.validation:
        yield from _validation_findings(one)


def _anchors_findings(
    anchors: Anchors, geometry: Geometry | None, rows_px: int
) -> Iterator[Finding]:
    views = {"left": anchors.left, "right": anchors.right}
    left_px = anchors.left_px if geometry is None else geometry.anchor_left_px
    right_px = anchors.right_px if geometry is None else geometry.anchor_right_px
    for (name, view), place in zip(views.items(), (left_px, right_px), strict=True):
        _, sigma_px = view.by(anchors.method)
        kept = f"{anchors.method}, {view.windows} places"
        for axis in (0, 1):
            what = f"anchor of the {name} view, {'xy'[axis]}"
            yield Finding(what, place[axis], sigma_px[axis], " px", 2, kept)
    other: Method = "least shift" if anchors.method == "expansion" else "expansion"
    for name, view in views.items():
        place, sigma_px = view.by(other)
        for axis in (0, 1):
            what = f"the same by {other}, {name} {'xy'[axis]}"
            yield Finding(what, place[axis], sigma_px[axis], " px", 2, "not used")
    for name, view in views.items():
        at_edge = 100 * view.distortion_per_px2 * (rows_px / 2) ** 2
        yield Finding(f"distortion at the {name} view's upper edge", at_edge, None, " %", 3)
        yield Finding(f"sway of the board, {name} view", view.sway_px, None, " px", 2)
    if geometry is not None:
        offset_px, offset_sd_px = geometry.disparity_offset_px, geometry.disparity_offset_sigma_px
        yield Finding("disparity of infinity, before", offset_px, offset_sd_px, " px", 3)


def _rectification_findings(found: Rectification) -> Iterator[Finding]:
    kept = f"{len(found.residuals)} frames"
    scale_sd, angle_sd, shift_sd, baseline_sd = found.sigma
    yield Finding("scale of the right view", found.scale, scale_sd, "", 5, kept)
    angle_deg, angle_sd_deg = np.degrees((found.angle_rad, angle_sd))
    yield Finding("roll of the right view", angle_deg, angle_sd_deg, "°", 4, kept)
    yield Finding("vertical shift", found.shift_y_px, shift_sd, " px", 3, kept)
    turn_deg, turn_sd_deg = np.degrees((found.baseline_angle_rad, baseline_sd))
    yield Finding("turn against the baseline", turn_deg, turn_sd_deg, "°", 4, kept)
    before_px = float(np.sqrt(np.mean([one.before_rms_px**2 for one in found.residuals])))
    yield Finding("rows apart before, rms", before_px, None, " px", 2, kept)
    yield Finding("rows apart after, rms", found.rms_px, None, " px", 3, kept)
    medians_px = found.median_rms_px
    yield Finding("the same by medians of the frames", medians_px, None, " px", 3, "not used")


def _geometry_findings(found: Geometry) -> Iterator[Finding]:
    kept = f"{int(np.isfinite(found.depths_m).sum())} frames"
    sigma = found.focal_baseline_sigma_px_m
    yield Finding("s0 B / p", found.focal_baseline_px_m, sigma, " px m", 4, kept)
    baseline_sd = found.baseline_m * sigma / found.focal_baseline_px_m
    yield Finding("baseline", 1e3 * found.baseline_m, 1e3 * baseline_sd, " mm", 4, kept)
    name = "offset of the ruler" if found.ruler_is_applied else "offset of the ruler, not applied"
    ruler_mm, ruler_sd_mm = 1e3 * found.ruler_offset_m, 1e3 * found.ruler_offset_sigma_m
    yield Finding(name, ruler_mm, ruler_sd_mm, " mm", 2, kept)
    yield Finding("single distances, off by", 1e3 * found.ruler_sigma_m, None, " mm", 2, kept)
    for name, tilt_rad, tilt_sd in zip(
        ("right", "lower"), found.tilt_rad, found.tilt_sigma_rad, strict=True
    ):
        tilt, sd = np.degrees((tilt_rad, tilt_sd))
        yield Finding(f"board: {name} side further away by", tilt, sd, "°", 3, kept)


def _defocus_findings(found: Defocus) -> Iterator[Finding]:
    kept = f"{found.comparisons} pairs of views"
    for name, distance_m, sd_m in zip(
        ("left", "right"), found.focus_distances_m, found.focus_sds_m, strict=True
    ):
        yield Finding(f"focus distance, {name} lens", distance_m, sd_m, " m", 3, kept)
    difference, sd = found.power_difference_dpt, found.power_difference_sd_dpt
    yield Finding("power, left less right", difference, sd, " dpt", 4, kept)
    radius_mm, radius_sd_mm = 1e3 * found.aperture_radius_m, 1e3 * found.aperture_radius_sd_m
    yield Finding("radius of the aperture", radius_mm, radius_sd_mm, " mm", 3, kept)


def _tuning_findings(tuning: Tuning, chosen: ChosenBaselines | None) -> Iterator[Finding]:
    kept = f"{int(np.isfinite(tuning.frame_error_m).all(axis=1).sum())} frames"
    yield Finding("R² of the cubic of a", tuning.a_cubic.r2, None, "", 4, kept)
    yield Finding("R² of the cubic of b", tuning.b_cubic.r2, None, "", 4, kept)
    if chosen is not None:
        for number, baseline_m in enumerate(chosen.chosen.virtual_baselines_m, start=1):
            what = f"virtual baseline {number}"
            yield Finding(what, 1e3 * baseline_m, None, " mm", 3, f"{chosen.sets_tried} sets")


def _noise_findings(found: Noise) -> Iterator[Finding]:
    kept = f"{len(found.frames)} frames"
    yield Finding("noise of a dark pixel", 100 * found.read, 100 * found.read_std, " %", 3, kept)
    at_full = float(np.sqrt(found.variance_at(1.0)))
    yield Finding("noise at full scale", 100 * at_full, None, " %", 3, kept)


def _side_of_the_field(report: Report) -> float:
    """Place of the side of a view, in units of the radius of the field."""
    calibration = None if report.rig is None else report.rig.calibration
    if report.lens_maps is None or calibration is None:
        return 1.0
    return calibration.crop_cols_px / 2 / report.lens_maps.field_radius_px


def _lens_findings(found: LensMaps, side: float) -> Iterator[Finding]:
    sides, middle = np.array([-side, side]), np.zeros(2)
    for camera, name in enumerate(("left", "right")):
        where = f"at the sides of the {name} view"
        across, _ = found.distorted(camera, sides, middle)
        distortion = 100 * float(np.mean(across / sides - 1))
        yield Finding(f"distortion {where}", distortion, None, " %", 3)
        axis, at_sides = (found.illumination(camera, x, 0 * x) for x in (np.zeros(1), sides))
        light = 100 * float(np.mean(at_sides / axis))
        yield Finding(f"light {where}, of that on its axis", light, None, " %", 1)
        along_x, _, along_y = found.focus_dpt(camera, sides, middle).mean(axis=-1)
        yield Finding(f"focus along rows {where}", along_x, None, " dpt", 3)
        yield Finding(f"focus along columns {where}", along_y, None, " dpt", 3)
    left, right = (float(found.illumination(camera, 0.0, 0.0)) for camera in (0, 1))
    yield Finding("light of the right axis, of the left", 100 * right / left, None, " %", 1)
    axis_px, edge_px = found.disparity_sigma_px, found.edge_sigma_px * side**2
    yield Finding("disparity left over on the axis, standard deviation", axis_px, None, " px", 4)
    yield Finding("the same more at the sides", edge_px, None, " px", 4)


def _depth_sigma_findings(found: LensMaps, optics: Optics, geometry: Geometry) -> Iterator[Finding]:
    """Standard deviation of depths on the axis by all errors of the calibration."""
    variance = found.disparity_variance(optics)
    for depth_m in (np.nanmin(geometry.depths_m), np.nanmax(geometry.depths_m)):
        sigma_px = float(np.sqrt(variance.at(0.0, 0.0, 1 / depth_m)))
        share = sigma_px * depth_m / (optics.focal_length_px * optics.baseline_m)
        what = f"depth at {depth_m:.2f} m, standard deviation by the calibration"
        yield Finding(what, 100 * share, None, " %", 3)


def _field_findings(found: FieldResiduals) -> Iterator[Finding]:
    kept = f"{len(found.depths_m)} other frames"
    yield Finding("disparity left, rms", found.rms_px, None, " px", 4, kept)
    yield Finding("the same over the field of a frame", found.spread_px, None, " px", 4, kept)
    yield Finding("rows apart over the field, rms", found.rows_rms_px, None, " px", 3, kept)
    yield Finding("light of the views apart, rms", 100 * found.light_rms, None, " %", 2, kept)


def _validation_findings(one: Validation) -> Iterator[Finding]:
    kept = f"{len(one.depths_m)} other frames"
    spread_cm = 100 * float(np.nanstd(one.mae_m))
    yield Finding(f"{one.method}: MAE", 100 * one.overall_mae_m, spread_cm, " cm", 2, kept)
    density = 100 * float(np.nanmean(one.density))
    yield Finding(f"{one.method}: have a depth", density, None, " %", 1, kept)
    for number, share in ((1, one.within_1_sigma), (3, one.within_3_sigma)):
        if share is not None:
            within = 100 * float(mean_of_known(share))
            yield Finding(f"{one.method}: within {number} sigma", within, None, " %", 1, kept)
    ends = one.working_range_m or (math.nan, math.nan)
    for word, end_m in zip(("from", "up to"), ends, strict=True):
        yield Finding(f"{one.method}: MAE below 1 cm {word}", end_m, None, " m", 2, kept)
