"""What a calibration found as the lines of a table."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from d3s.calibrate.report import Report


class Finding(NamedTuple):
    """One number that was found."""

    what: str
    value: float
    spread: float | None  # a standard deviation, in the same unit
    unit: str
    digits: int
    kept: str = ""  # what it is from

    @property
    def shown(self) -> str:
        """The number with its unit."""
        if not math.isfinite(self.value):
            return "none"
        return f"{self.value:z.{self.digits}f}{self.unit}"

    @property
    def spread_shown(self) -> str:
        """Its standard deviation, with as many digits as say something."""
        if self.spread is None or not math.isfinite(self.spread):
            return ""
        two_digits = np.format_float_positional(
            self.spread, precision=2, fractional=False, unique=False, trim="-"
        )
        return f"± {two_digits}{self.unit}"


def findings_of(report: "Report") -> Iterator[Finding]:
    """Lines in the order of the steps, for the steps that came to an end."""
    yield from _of_anchors(report)
    yield from _of_rectification(report)
    yield from _of_geometry(report)
    yield from _of_defocus(report)
    yield from _of_tuning(report)
    yield from _of_noise(report)
    yield from _of_validation(report)


def _of_anchors(report: "Report") -> Iterator[Finding]:
    anchors, geometry = report.anchors, report.geometry
    if anchors is None:
        return
    left_px = anchors.left_px if geometry is None else geometry.anchor_left_px
    right_px = anchors.right_px if geometry is None else geometry.anchor_right_px
    for name, place, view in (("left", left_px, anchors.left), ("right", right_px, anchors.right)):
        kept = f"{view.windows} places"
        for axis in (0, 1):
            what = f"anchor of the {name} view, {'xy'[axis]}"
            sigma_px = _used(anchors.method, view.sigma_px, view.least_shift_sigma_px)
            yield Finding(what, place[axis], sigma_px[axis], " px", 2, f"{anchors.method}, {kept}")
    other = _used(anchors.method, "least shift", "expansion")
    for name, view in (("left", anchors.left), ("right", anchors.right)):
        place = _used(anchors.method, view.least_shift_px, view.place_px)
        sigma_px = _used(anchors.method, view.least_shift_sigma_px, view.sigma_px)
        for axis in (0, 1):
            what = f"the same by {other}, {name} {'xy'[axis]}"
            yield Finding(what, place[axis], sigma_px[axis], " px", 2, "not used")
    for name, view in (("left", anchors.left), ("right", anchors.right)):
        at_edge = 100 * view.distortion_per_px2 * (report.shape[0] / 2) ** 2
        yield Finding(f"distortion at the {name} view's upper edge", at_edge, None, " %", 3)
        yield Finding(f"sway of the board, {name} view", view.sway_px, None, " px", 2)
    if geometry is not None:
        offset_px, offset_sd_px = geometry.disparity_offset_px, geometry.disparity_offset_sigma_px
        yield Finding("disparity of infinity, before", offset_px, offset_sd_px, " px", 3)


def _used(method: str, by_expansion: Any, by_least_shift: Any) -> Any:
    return by_expansion if method == "expansion" else by_least_shift


def _of_rectification(report: "Report") -> Iterator[Finding]:
    found = report.rectification
    if found is None:
        return
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


def _of_geometry(report: "Report") -> Iterator[Finding]:
    found = report.geometry
    if found is None:
        return
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


def _of_defocus(report: "Report") -> Iterator[Finding]:
    found = report.defocus
    if found is None:
        return
    kept = f"{found.comparisons} pairs of views"
    for name, distance_m, sd_m in zip(
        ("left", "right"), found.focus_distances_m, found.focus_sds_m, strict=True
    ):
        yield Finding(f"focus distance, {name} lens", distance_m, sd_m, " m", 3, kept)
    difference, sd = found.power_difference_dpt, found.power_difference_sd_dpt
    yield Finding("power, left less right", difference, sd, " dpt", 4, kept)
    radius_mm, radius_sd_mm = 1e3 * found.aperture_radius_m, 1e3 * found.aperture_radius_sd_m
    yield Finding("radius of the aperture", radius_mm, radius_sd_mm, " mm", 3, kept)


def _of_tuning(report: "Report") -> Iterator[Finding]:
    tuning, chosen = report.tuning, report.baselines
    if tuning is None:
        return
    kept = f"{int(np.isfinite(tuning.frame_error_m).all(axis=1).sum())} frames"
    yield Finding("R² of the cubic of a", tuning.a_cubic.r2, None, "", 4, kept)
    yield Finding("R² of the cubic of b", tuning.b_cubic.r2, None, "", 4, kept)
    if chosen is not None:
        for number, baseline_m in enumerate(chosen.chosen.virtual_baselines_m, start=1):
            what = f"virtual baseline {number}"
            yield Finding(what, 1e3 * baseline_m, None, " mm", 3, f"{chosen.sets_tried} sets")


def _of_noise(report: "Report") -> Iterator[Finding]:
    found = report.noise
    if found is None:
        return
    kept = f"{len(found.frames)} frames"
    yield Finding("noise of a dark pixel", 100 * found.read, 100 * found.read_std, " %", 3, kept)
    at_full = float(np.sqrt(found.variance_at(1.0)))
    yield Finding("noise at full scale", 100 * at_full, None, " %", 3, kept)


def _of_validation(report: "Report") -> Iterator[Finding]:
    for one in report.validation:
        kept = f"{len(one.depths_m)} other frames"
        spread_cm = 100 * float(np.nanstd(one.mae_m))
        yield Finding(f"{one.method}: MAE", 100 * one.overall_mae_m, spread_cm, " cm", 2, kept)
        density = 100 * float(np.nanmean(one.density))
        yield Finding(f"{one.method}: have a depth", density, None, " %", 1, kept)
        ends = one.working_range_m or (math.nan, math.nan)
        for word, end_m in zip(("from", "up to"), ends, strict=True):
            yield Finding(f"{one.method}: MAE below 1 cm {word}", end_m, None, " m", 2, kept)
