"""`calibrate`: the steps of a calibration in their order, then a cross-validation.

The order is in `_run_steps`. Each step is a function of typed arguments that returns a frozen
result. The `Report` collects the results: a failed calibration still reports the steps before.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.anchors import Anchors, find_anchors
from d3s.calibrate.baselines import ChosenBaselines, choose_baselines
from d3s.calibrate.captures import Captures, captures_of, read_captures
from d3s.calibrate.crop import largest_crop
from d3s.calibrate.defocus import Defocus, find_defocus
from d3s.calibrate.fields import Box, Fields, find_fields
from d3s.calibrate.geometry import Geometry, find_geometry
from d3s.calibrate.kinds import Half
from d3s.calibrate.matches import Matches, find_matches
from d3s.calibrate.noise import Noise, find_noise
from d3s.calibrate.reach import reach_m
from d3s.calibrate.rectify import Rectification, find_rectification
from d3s.calibrate.report import Report
from d3s.calibrate.table import FEWEST_FRAMES
from d3s.calibrate.tuning import CONSENSUS, Tuning, find_tuning
from d3s.calibrate.validate import Validation, errors_over_depth
from d3s.calibrate.views import SmallPictures, SplitViews
from d3s.errors import CalibrationError, CapturesError, D3SError, InputError
from d3s.estimate.candidates import default_depth_range_m
from d3s.record import shown
from d3s.rig import Calibration, Optics, Provenance, Rig
from d3s.types import Progress
from d3s.version import __version__

# Methods that are tested, and the number of rows in the middle of the views that each is given:
# enough pixels for a mean, and no more time than the other steps take.
TESTED_ROWS_PX = {"joint": 600, "consensus": 120}

# Percent of the whole time that each step takes, as measured on 50 frames of 3840 x 2160 px.
_PERCENT = {
    "reading": 8,
    "fields": 2,
    "matches": 25,
    "noise": 2,
    "defocus": 6,
    "tuning": 6,
    "baselines": 8,
}
_PERCENT_OF_TEST = {
    "matches": 13,
    "defocus": 3,
    "tuning": 4,
    "baselines": 4,
    "joint": 9,
    "consensus": 10,
}


class Setup(NamedTuple):
    """Inputs that the calibration and its cross-validation share."""

    design: Rig
    fit_ruler: bool | None
    name: str
    provenance: Provenance


class Alignment(NamedTuple):
    """Results of the steps that use places on the board, not the views themselves."""

    matches: Matches
    anchors: Anchors
    rectification: Rectification
    geometry: Geometry

    @property
    def left_out(self) -> dict[int, str]:
        """Rejected frames, except those rejected by the anchor step only."""
        steps = self.matches, self.rectification, self.geometry
        out: dict[int, str] = {}
        for step in steps:
            out = {**step.left_out, **out}
        return out

    @property
    def frames(self) -> list[int]:
        """Numbers of the frames that no step but that of the anchors rejected."""
        return [frame for frame in self.matches.kept if frame not in self.left_out]

    @property
    def depths_m(self) -> list[float]:
        """Depth of the board on the left axis, of each of `frames`."""
        depths_m: list[float] = self.geometry.depths_m[self.frames].tolist()
        return depths_m


class Tuned(NamedTuple):
    """Results of the steps that use rectified views, and the rig that has these results."""

    rig: Rig
    defocus: Defocus
    tuning: Tuning
    baselines: ChosenBaselines


class CrossValidation(NamedTuple):
    """Errors on frames that were not calibrated with; none, with a remark, if the test failed."""

    validation: tuple[Validation, ...] = ()
    remarks: tuple[str, ...] = ()


def calibrate(
    captures: str | os.PathLike[str] | Sequence[Any] | NDArray[Any],
    distances_m: Sequence[float] | NDArray[Any] | None = None,
    *,
    design: Rig | None = None,
    left_lens: Half = "right",
    regions: tuple[Box, Box] | None = None,
    fit_ruler: bool | None = None,
    name: str = "calibrated camera",
    progress: Progress | None = None,
) -> tuple[Rig, Report]:
    """Calibrate a camera from raw frames of a board at known distances.

    Parameters
    ----------
    captures
        A folder of raw frames with distances.csv, or raw frames as arrays, (rows, cols) each: uint8
        or uint16 of their full scale, or floats with full scale 1. 5 to 400 frames.
    distances_m
        Distance of the board in each frame, in metres, increasing. Only with frames as arrays.
    design
        The camera as built: its pixel pitch, sensor distance and aperture are taken as true.
        Default: the paper's prototype.
    left_lens
        The half of the upright frame that the left lens lights.
    regions
        (row, col, rows, cols) in pixels of the fields of the left and the right lens. Default:
        found from the light in the frames.
    fit_ruler
        True: find the offset of the ruler and apply it. False: do not apply it. None: apply it
        where it exceeds four standard deviations and half a millimetre.
    name
        Name of the camera in the rig file.
    progress
        Called with the percent that is done, and 100.

    Returns
    -------
    rig, report
        The calibrated camera, and the results of all steps with a verdict.

    Raises
    ------
    CapturesError, InputError, RigError
        If the frames, their distances or an argument cannot be used.
    CalibrationError
        If no usable rig was found; its `report` says why.
    """
    built = _checked_design(design)
    built.replace(name=name)  # refuse a bad name before the work
    percent = _Percent(progress, _PERCENT)
    pictures = SmallPictures(_read(captures, distances_m, percent.of("reading")))
    setup = Setup(built, fit_ruler, name, _provenance(pictures.captures()))
    rig, report = _run_steps(pictures, setup, left_lens, regions, progress)
    if report.verdict.grade == "bad":
        reasons = " ".join(one.words for one in report.verdict.remarks if one.grade == "bad")
        raise CalibrationError(f"the calibration is bad: {reasons}", report)
    return rig, report


def _run_steps(
    pictures: SmallPictures,
    setup: Setup,
    left_lens: Half,
    regions: tuple[Box, Box] | None,
    progress: Progress | None,
) -> tuple[Rig, Report]:
    """All steps in their order; an error of a later step carries the report of those before."""
    captures, percent, timer = pictures.captures(), _Percent(progress, _PERCENT), _Timer()
    with _as_bad_input():
        with timer.measure("fields"):
            fields = find_fields(captures, left_lens=left_lens, boxes=regions)
        percent.finish("fields")
        with timer.measure("matches, anchors, rectification, geometry"):
            alignment = align_views(captures, fields, setup, percent.of("matches"))
    report = _begin_report(pictures, setup, fields, alignment, timer)
    try:
        with timer.measure("noise"):
            noise = find_noise(captures, fields)
        report = replace(report, noise=noise)
        draft = draft_rig(setup, alignment, fields, noise, captures.shape)
        report = replace(report, rig=draft)
        with timer.measure("defocus, tuning, virtual baselines"):
            tuned = tune_rig(captures, alignment, draft, percent)
        report = _with_tuned(report, tuned, alignment.depths_m)
        if len(alignment.frames[::2]) >= FEWEST_FRAMES:
            with timer.measure("cross-validation"):
                tested = cross_validate(captures, alignment.frames, fields, noise, setup, progress)
            remarks = report.remarks + tested.remarks
            report = replace(report, validation=tested.validation, remarks=remarks)
        rig = _with_residuals(tuned.rig, report.residuals)
        return rig, replace(report, rig=rig)
    except D3SError as error:
        raise CalibrationError(str(error), replace(report, problem=str(error))) from error


def align_views(
    captures: Captures, fields: Fields, setup: Setup, progress: Progress | None
) -> Alignment:
    """Find places on the board, and from these the anchors, the rectification and the geometry.

    Parameters
    ----------
    captures
        Raw frames, nearest board first, with the distances of the ruler.
    fields
        The parts of the frame that the two lenses light.
    setup
        The design, and whether the offset of the ruler is applied.
    progress
        Called after each frame with the number of frames done, and of all.
    """
    matches = find_matches(captures, fields, progress)
    anchors = find_anchors(matches)
    rectification = find_rectification(matches, anchors)
    geometry = find_geometry(
        matches,
        anchors,
        rectification,
        captures.distances_m,
        setup.design.optics,
        fit_ruler=setup.fit_ruler,
    )
    return Alignment(matches, anchors, rectification, geometry)


def draft_rig(
    setup: Setup,
    alignment: Alignment,
    fields: Fields,
    noise: Noise,
    frame_shape: tuple[int, int],
) -> Rig:
    """Make a rig that can split frames; its focus and its depth equation are not tuned yet.

    Parameters
    ----------
    setup
        The design, the name of the camera and its provenance.
    alignment
        Anchors, rectification and geometry.
    fields
        The parts of the frame that the two lenses light: the views are cut from these.
    noise
        Noise of the sensor.
    frame_shape
        Rows and columns of the raw frame, in pixels.
    """
    geometry, rectification = alignment.geometry, alignment.rectification
    optics = setup.design.optics.replace(baseline_m=geometry.baseline_m, disparity_offset_px=0.0)
    calibration = Calibration(
        anchor_left_px=geometry.anchor_left_px,
        anchor_right_px=geometry.anchor_right_px,
        crop_rows_px=1,
        crop_cols_px=1,
        rectify_scale=rectification.scale,
        rectify_angle_rad=rectification.angle_rad,
        rectify_shift_y_px=geometry.rectify_shift_y_px,
        baseline_angle_rad=rectification.baseline_angle_rad,
        frame_rows_px=frame_shape[0],
        frame_cols_px=frame_shape[1],
        noise_read=noise.read,
        noise_gain=noise.gain,
        virtual_baselines_m=(0.1 * optics.baseline_m,),
        a_cubic_m_px=(0.0, 0.0, 0.0, 0.0),
        b_cubic_m=(0.0, 0.0, 0.0, 0.0),
        tuned_candidates=CONSENSUS.candidates,
        tuned_window_px=CONSENSUS.window_px,
        tuned_prefilter_sigma_px=CONSENSUS.prefilter_sigma_px,
        provenance=setup.provenance,
    )
    largest_disparity_px = geometry.focal_baseline_px_m / float(np.nanmin(geometry.depths_m))
    rows, cols = largest_crop(fields, calibration, frame_shape, largest_disparity_px)
    calibration = calibration.replace(crop_rows_px=rows, crop_cols_px=cols)
    return Rig(name=setup.name, optics=optics, calibration=calibration)


def tune_rig(captures: Captures, alignment: Alignment, draft: Rig, percent: "_Percent") -> Tuned:
    """Find focus, tuned depth equation and virtual baselines from rectified views.

    Parameters
    ----------
    captures
        Raw frames that `alignment` was found from.
    alignment
        Gives the frames to use, their depths and the tilt of the board.
    draft
        The rig as far as it is known: `draft_rig`.
    percent
        Progress of the three steps.

    Raises
    ------
    CalibrationError
        If a step fails; the message names the files that this step rejected.
    """
    frames, depths_m = alignment.frames, alignment.depths_m
    views = SplitViews(captures, frames, _calibration(draft))
    tilt = alignment.geometry.slopes
    try:
        defocus = find_defocus(views, depths_m, draft.optics, progress=percent.of("defocus"))
        rig = draft.replace(optics=defocus.applied_to(draft.optics))
        tuning = find_tuning(views, depths_m, rig, tilt=tilt, progress=percent.of("tuning"))
        chosen = choose_baselines(
            views, depths_m, rig, tuning, tilt=tilt, progress=percent.of("baselines")
        )
        calibration = _calibration(rig).replace(
            virtual_baselines_m=chosen.chosen.virtual_baselines_m,
            a_cubic_m_px=tuning.a_cubic.coefficients,
            b_cubic_m=tuning.b_cubic.coefficients,
        )
        rig = rig.replace(calibration=calibration)
    except D3SError as error:
        names = [captures.names[frame] for frame in frames]
        raise CalibrationError(str(error) + _rejected_files(error, names)) from error
    return Tuned(
        rig,
        _renumbered(defocus, frames),
        _renumbered(tuning, frames),
        _renumbered(chosen, frames),
    )


def cross_validate(
    captures: Captures,
    frames: Sequence[int],
    fields: Fields,
    noise: Noise,
    setup: Setup,
    progress: Progress | None,
) -> CrossValidation:
    """Calibrate with every other frame, and measure errors on the frames between.

    Parameters
    ----------
    captures
        All raw frames.
    frames
        Numbers of the frames that fit each other: the first, third, ... calibrate, the others test.
    fields, noise
        Results from all frames; neither depends on the distances.
    setup
        The design, and whether the offset of the ruler is applied.
    progress
        Called with the percent of the whole calibration that is done, and 100.
    """
    percent = _Percent(progress, _PERCENT_OF_TEST, start=sum(_PERCENT.values()))
    try:
        training, tested = captures.some(frames[::2]), frames[1::2]
        alignment = align_views(training, fields, setup, percent.of("matches"))
        draft = draft_rig(setup, alignment, fields, noise, training.shape)
        rig = tune_rig(training, alignment, draft, percent).rig
        views = SplitViews(captures, tested, _calibration(rig))
        # The truth is what the ruler says, as for a user; not the depths found from these frames.
        offset_m = alignment.geometry.applied_ruler_offset_m
        true_m = [captures.distances_m[frame] + offset_m for frame in tested]
        errors = [
            errors_over_depth(
                views,
                true_m,
                rig,
                method,
                tilt=alignment.geometry.slopes,
                rows_px=rows_px,
                progress=percent.of(method),
            )
            for method, rows_px in TESTED_ROWS_PX.items()
        ]
    except D3SError as error:
        # Half the frames may be too few for a step where all of them are enough.
        return CrossValidation((), (f"The test with every other frame came to nothing: {error}",))
    return CrossValidation(tuple(_renumbered(one, tested) for one in errors))


def _begin_report(
    pictures: SmallPictures, setup: Setup, fields: Fields, alignment: Alignment, timer: "_Timer"
) -> Report:
    """Report of the steps up to the geometry; its times are filled in as the steps end."""
    captures = pictures.captures()
    return Report(
        name=setup.name,
        version=__version__,
        created=setup.provenance.created,
        names=captures.names,
        distances_m=np.array(captures.distances_m),
        shape=captures.shape,
        not_read=captures.left_out,
        remarks=captures.remarks,
        thumbnails=pictures.thumbnails,
        overview=pictures.overview,
        timings_s=timer.seconds,
        fields=fields,
        matches=alignment.matches,
        anchors=alignment.anchors,
        rectification=alignment.rectification,
        geometry=alignment.geometry,
    )


def _with_tuned(report: Report, tuned: Tuned, depths_m: Sequence[float]) -> Report:
    return replace(
        report,
        rig=tuned.rig,
        defocus=tuned.defocus,
        tuning=tuned.tuning,
        baselines=tuned.baselines,
        remarks=report.remarks + _depth_range_remark(depths_m, tuned.rig.optics),
    )


def _with_residuals(rig: Rig, residuals: dict[str, float]) -> Rig:
    """Rig with the residuals of the calibration, by which it can be judged again."""
    calibration = _calibration(rig)
    provenance = calibration.provenance.replace(residuals=residuals)
    return rig.replace(calibration=calibration.replace(provenance=provenance))


def _depth_range_remark(depths_m: Sequence[float], optics: Optics) -> tuple[str, ...]:
    """Remark that boards stood outside the default depth range of this camera, if they did."""
    reach = reach_m(optics, depths_m)
    if reach is None:
        return ()
    nearest_m, farthest_m = default_depth_range_m(optics)
    return (
        f"Boards were from {min(depths_m):.2f} to {max(depths_m):.2f} m, and with this camera "
        f"depth is looked for from {nearest_m:.2f} to {farthest_m:.2f} m unless told otherwise: "
        f"the test was told depth_range_m=({reach[0]:.2f}, {reach[1]:.2f}).",
    )


_Step = TypeVar("_Step", Defocus, Tuning, ChosenBaselines, Validation)


def _renumbered(step: _Step, frames: Sequence[int]) -> _Step:
    """Result from some of the frames, its `left_out` by the numbers among all frames."""
    return step._replace(left_out={frames[number]: why for number, why in step.left_out.items()})


def _rejected_files(error: D3SError, names: Sequence[str]) -> str:
    """Sentence with the files that a failed step rejected, and why; empty if there are none."""
    by_reason: dict[str, list[str]] = {}
    if isinstance(error, CalibrationError):
        for number, why in sorted(error.left_out.items()):
            by_reason.setdefault(why, []).append(names[number])
    listed = "; ".join(f"{', '.join(files)}: {why}" for why, files in by_reason.items())
    return f" Left out were {listed}." if listed else ""


def _read(captures: Any, distances_m: Any, progress: Progress | None) -> Captures:
    if isinstance(captures, str | os.PathLike):
        if distances_m is not None:
            raise InputError(
                "distances_m is for frames as arrays: those of a folder are in its distances.csv. "
                "Leave it."
            )
        return read_captures(captures, progress=progress)
    if distances_m is None:
        raise InputError("distances_m must be given with frames as arrays, one for each.")
    return captures_of(captures, distances_m, progress=progress)


def _checked_design(design: Any) -> Rig:
    if design is None:
        return Rig.paper_prototype()
    if not isinstance(design, Rig):
        raise InputError(f"design={shown(design)} must be a Rig. Read a rig file with Rig.load.")
    if design.optics.aperture_radius_m == 0:
        raise InputError(
            f"the design {design.name!r} is a pinhole pair, with aperture_radius_m=0: this "
            "calibration is for two lenses in front of one sensor."
        )
    return design


def _provenance(captures: Captures) -> Provenance:
    return Provenance(
        residuals={},
        input_sha256=captures.digests,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        d3s_version=__version__,
    )


def _calibration(rig: Rig) -> Calibration:
    if rig.calibration is None:
        raise CalibrationError(f"the rig {rig.name!r} has no calibration.")
    return rig.calibration


@contextmanager
def _as_bad_input() -> Iterator[None]:
    """Turn errors of the first steps into CapturesError: other captures are needed."""
    try:
        yield
    except CalibrationError as error:
        raise CapturesError(str(error)) from error


class _Percent:
    """Percent of the whole calibration that is done, from the progress of single steps."""

    def __init__(
        self, progress: Progress | None, shares: Mapping[str, float], start: float = 0.0
    ) -> None:
        self._progress = progress
        self._shares = shares
        self._start = start

    def of(self, step: str) -> Progress | None:
        """Progress function to pass to a step."""
        report = self._progress
        if report is None:
            return None
        names = list(self._shares)
        start = self._start + sum(self._shares[name] for name in names[: names.index(step)])
        share = self._shares[step]
        return lambda done, total: report(round(start + share * done / max(total, 1)), 100)

    def finish(self, step: str) -> None:
        """Report a step as done that reports no progress itself."""
        progress = self.of(step)
        if progress is not None:
            progress(1, 1)


class _Timer:
    """Wall time of the steps, in seconds, by their names."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = time.perf_counter() - begin
