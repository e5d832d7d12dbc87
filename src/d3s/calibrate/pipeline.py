"""All steps of a calibration in their order, and a test of it on frames that it did not see."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.anchors import Anchors, find_anchors
from d3s.calibrate.baselines import ChosenBaselines, choose_baselines
from d3s.calibrate.captures import Captures, captures_of, read_captures
from d3s.calibrate.crop import largest_crop
from d3s.calibrate.defocus import Defocus, find_defocus
from d3s.calibrate.fields import Box, Fields, find_fields
from d3s.calibrate.geometry import Geometry, find_geometry
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

Half = Literal["left", "right"]

# Methods that are tested, and how many rows in the middle of the views they get: enough pixels for
# a mean, and no more time than the rest takes.
TESTED_ROWS_PX = {"joint": 600, "consensus": 120}
# Percent of the work that each step is, as measured on 50 frames of 3840 x 2160 px.
_SHARES = {
    "reading": 8,
    "fields": 2,
    "matches": 25,
    "noise": 2,
    "defocus": 6,
    "tuning": 6,
    "baselines": 8,
    "test": 43,
}
# Of the test, as the calibration above: half the frames, and then the other half.
_TEST_SHARES = {
    "matches": 13,
    "defocus": 3,
    "tuning": 4,
    "baselines": 4,
    "joint": 9,
    "consensus": 10,
}


class Alignment(NamedTuple):
    """What the places on the board say: where the views are, and what disparity means."""

    matches: Matches
    anchors: Anchors
    rectification: Rectification
    geometry: Geometry

    @property
    def left_out(self) -> dict[int, str]:
        """Frames that do not fit; those that only say nothing of the anchors do."""
        steps = self.matches, self.rectification, self.geometry
        out: dict[int, str] = {}
        for step in steps:
            out = {**step.left_out, **out}
        return out

    @property
    def frames(self) -> list[int]:
        """Frames whose rows and disparity fit."""
        return [frame for frame in self.matches.kept if frame not in self.left_out]


class Tuned(NamedTuple):
    """What the views say: where the lenses focus, and the tuned depth equation."""

    rig: Rig
    defocus: Defocus
    tuning: Tuning
    baselines: ChosenBaselines


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
    """A rig from raw frames of a board at known distances, and how far it can be trusted.

    Parameters
    ----------
    captures
        A folder of raw frames with distances.csv, or raw frames as arrays.
    distances_m
        Of the board in each frame, if these are arrays; increasing.
    design
        The camera as it was built: pixel pitch, sensor distance and aperture are believed. The
        paper's prototype if left.
    left_lens
        The half of the upright frame that the left lens lights.
    regions
        (row, col, rows, cols) of the fields of the left and the right lens; found if left.
    fit_ruler
        Whether distances are measured from another plane than that of the lenses: True to find
        the offset and apply it, False not to; if left, it is applied where it is clear.
    name
        What to call the camera.
    progress
        Called with how many percent are done, and 100.

    Raises
    ------
    CapturesError, InputError, RigError
        When the frames, their distances or an argument are such that there is nothing to calibrate
        with.
    CalibrationError
        When nothing usable came out; its `report` says why.

    Examples
    --------
    Simulate a camera with a small sensor before a board at five distances, and calibrate it:

    >>> import d3s
    >>> paper = d3s.Rig.paper_prototype()
    >>> design = paper.replace(optics=paper.optics.replace(pixel_pitch_m=9e-6))
    >>> layout = d3s.RawLayout(rows_px=430, cols_px=860, field_radius_px=212.0, field_edge_px=6.0)
    >>> distances_m = [0.3, 0.36, 0.43, 0.51, 0.6]
    >>> frames = [
    ...     d3s.simulate_raw(
    ...         d3s.Plane(depth_m=distance_m, texture="calibration"),
    ...         design,
    ...         noise=0.01,
    ...         seed=number,
    ...         layout=layout,
    ...     ).image
    ...     for number, distance_m in enumerate(distances_m)
    ... ]
    >>> rig, report = d3s.calibrate(frames, distances_m, design=design)
    >>> print(f"baseline {1e3 * rig.optics.baseline_m:.1f} mm, {report.verdict.grade}")
    baseline 3.8 mm, usable
    """
    percent, built = _Percent(progress), _checked_design(design)
    built.replace(name=name)  # refused now, and not after the work
    pictures = SmallPictures(_read(captures, distances_m, percent.part(_SHARES["reading"])))
    work = _Work(pictures, built, fit_ruler, name, percent)
    with _as_bad_input():
        work.find_fields(left_lens, regions)
        work.align()
    try:
        rig = work.tune()
        work.test()
        rig = work.finished(rig)
    except D3SError as error:
        raise CalibrationError(str(error), work.report(str(error))) from error
    report = work.report()
    if report.verdict.grade == "bad":
        reasons = " ".join(one.words for one in report.verdict.remarks if one.grade == "bad")
        raise CalibrationError(f"the calibration is bad: {reasons}", report)
    return rig, report


class _Percent:
    """How far the work is, in percent, from how far its parts are."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = 0.0

    def part(self, share: float) -> Progress | None:
        """To be called while a part of so many percent is done."""
        start, self._done = self._done, self._done + share
        told = self._progress
        if told is None:
            return None
        return lambda done, total: told(round(start + share * done / max(total, 1)), 100)


class _Work:
    """A calibration in the making: what was found so far."""

    def __init__(
        self,
        pictures: SmallPictures,
        design: Rig,
        fit_ruler: bool | None,
        name: str,
        percent: _Percent,
    ) -> None:
        self.captures = pictures.captures()
        self._pictures = pictures
        self._design = design
        self._fit_ruler = fit_ruler
        self._name = name
        self._percent = percent
        self._created = datetime.now(UTC).isoformat(timespec="seconds")
        self._found: dict[str, Any] = {}
        self._remarks: tuple[str, ...] = ()
        self._timings_s: dict[str, float] = {}

    def report(self, problem: str = "") -> Report:
        """What was found so far."""
        return Report(
            name=self._name,
            version=__version__,
            created=self._created,
            names=self.captures.names,
            distances_m=np.array(self.captures.distances_m),
            shape=self.captures.shape,
            not_read=self.captures.left_out,
            remarks=(*self.captures.remarks, *self._remarks),
            thumbnails=self._pictures.thumbnails,
            overview=self._pictures.overview,
            timings_s=dict(self._timings_s),
            problem=problem,
            **self._found,
        )

    def find_fields(self, left_lens: Half, regions: tuple[Box, Box] | None) -> None:
        """Where the lenses light the sensor."""
        told = self._percent.part(_SHARES["fields"])
        with self._timed("fields"):
            self._found["fields"] = find_fields(self.captures, left_lens=left_lens, boxes=regions)
        if told is not None:
            told(1, 1)

    def align(self) -> None:
        """What the places on the board say, from all frames."""
        told = self._percent.part(_SHARES["matches"])
        with self._timed("matches, anchors, rectification, geometry"):
            found = _aligned(self.captures, self._fields, self._design, self._fit_ruler, told)
        self._found |= found._asdict()

    def tune(self) -> Rig:
        """What the views say, from all frames that fit."""
        with self._timed("noise"):
            self._found["noise"] = find_noise(self.captures, self._fields)
        self._percent.part(_SHARES["noise"])
        shares = [_SHARES[step] for step in ("defocus", "tuning", "baselines")]
        alignment = self._alignment
        draft = self._draft(self.captures, alignment)
        self._found["rig"] = draft
        with self._timed("defocus, tuning, virtual baselines"):
            depths = alignment.geometry.depths_m[alignment.frames]
            tuned = _tuned(
                self.captures, alignment, depths.tolist(), draft, [*map(self._percent.part, shares)]
            )
        self._found |= tuned._asdict()
        self._remarks += _beyond(depths.tolist(), tuned.rig.optics)
        return tuned.rig

    def test(self) -> None:
        """Calibrate with every other frame, and see how the rig does on those between."""
        usable = self._alignment.frames
        trained, tested = usable[::2], usable[1::2]
        if len(trained) < FEWEST_FRAMES:
            return
        with self._timed("cross-validation"):
            try:
                self._found["validation"] = self._validated(trained, tested)
            except D3SError as error:
                # Half the frames may be too few where all of them do.
                self._remarks += (f"The test with every other frame came to nothing: {error}",)

    def _validated(self, trained: list[int], tested: list[int]) -> tuple[Validation, ...]:
        parts = {step: self._percent.part(share) for step, share in _TEST_SHARES.items()}
        some = self.captures.some(trained)
        found = _aligned(some, self._fields, self._design, self._fit_ruler, parts["matches"])
        geometry = found.geometry
        depths = geometry.depths_m[found.frames].tolist()
        shares = [parts[step] for step in ("defocus", "tuning", "baselines")]
        rig = _tuned(some, found, depths, self._draft(some, found), shares).rig
        views = SplitViews(self.captures, tested, _calibration(rig))
        # As a user would: what the ruler says, not what was found from these very frames.
        offset_m = geometry.ruler_offset_m if geometry.ruler_is_applied else 0.0
        true_m = [self.captures.distances_m[frame] + offset_m for frame in tested]
        errors = (
            errors_over_depth(
                views,
                true_m,
                rig,
                method,
                tilt=_slopes(geometry),
                rows_px=rows_px,
                progress=parts[method],
            )
            for method, rows_px in TESTED_ROWS_PX.items()
        )
        return tuple(_renumbered(one, tested) for one in errors)

    def finished(self, rig: Rig) -> Rig:
        """The rig with all that is left over, to be judged again."""
        calibration = _calibration(rig)
        provenance = calibration.provenance.replace(residuals=self.report().residuals)
        rig = rig.replace(calibration=calibration.replace(provenance=provenance))
        self._found["rig"] = rig
        return rig

    @property
    def _fields(self) -> Fields:
        found: Fields = self._found["fields"]
        return found

    @property
    def _alignment(self) -> Alignment:
        return Alignment(*(self._found[step] for step in Alignment._fields))

    def _draft(self, captures: Captures, alignment: Alignment) -> Rig:
        noise: Noise = self._found["noise"]
        provenance = Provenance(
            residuals={},
            input_sha256=self.captures.digests,
            created=self._created,
            d3s_version=__version__,
        )
        return _drafted(
            self._name, self._design, alignment, self._fields, captures.shape, noise, provenance
        )

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._timings_s[step] = time.perf_counter() - begun


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


@contextmanager
def _as_bad_input() -> Iterator[None]:
    """What the first steps cannot work with: other captures are needed, not another calibration."""
    try:
        yield
    except CalibrationError as error:
        raise CapturesError(str(error)) from error


def _aligned(
    captures: Captures,
    fields: Fields,
    design: Rig,
    fit_ruler: bool | None,
    progress: Progress | None,
) -> Alignment:
    matches = find_matches(captures, fields, progress)
    anchors = find_anchors(matches)
    rectification = find_rectification(matches, anchors)
    geometry = find_geometry(
        matches,
        anchors,
        rectification,
        captures.distances_m,
        design.optics,
        fit_ruler=fit_ruler,
    )
    return Alignment(matches, anchors, rectification, geometry)


def _drafted(
    name: str,
    design: Rig,
    alignment: Alignment,
    fields: Fields,
    shape: tuple[int, int],
    noise: Noise,
    provenance: Provenance,
) -> Rig:
    """The rig as far as it can cut frames; its depth equation is not tuned yet."""
    geometry, rectification = alignment.geometry, alignment.rectification
    optics = design.optics.replace(baseline_m=geometry.baseline_m, disparity_offset_px=0.0)
    calibration = Calibration(
        anchor_left_px=geometry.anchor_left_px,
        anchor_right_px=geometry.anchor_right_px,
        crop_rows_px=1,
        crop_cols_px=1,
        rectify_scale=rectification.scale,
        rectify_angle_rad=rectification.angle_rad,
        rectify_shift_y_px=geometry.rectify_shift_y_px,
        baseline_angle_rad=rectification.baseline_angle_rad,
        frame_rows_px=shape[0],
        frame_cols_px=shape[1],
        noise_read=noise.read,
        noise_gain=noise.gain,
        virtual_baselines_m=(0.1 * optics.baseline_m,),
        a_cubic_m_px=(0.0, 0.0, 0.0, 0.0),
        b_cubic_m=(0.0, 0.0, 0.0, 0.0),
        tuned_candidates=CONSENSUS.candidates,
        tuned_window_px=CONSENSUS.window_px,
        tuned_prefilter_sigma_px=CONSENSUS.prefilter_sigma_px,
        provenance=provenance,
    )
    nearest_px = geometry.focal_baseline_px_m / float(np.nanmin(geometry.depths_m))
    rows, cols = largest_crop(fields, calibration, shape, nearest_px)
    calibration = calibration.replace(crop_rows_px=rows, crop_cols_px=cols)
    return Rig(name=name, optics=optics, calibration=calibration)


def _tuned(
    captures: Captures,
    alignment: Alignment,
    depths_m: Sequence[float],
    draft: Rig,
    parts: Sequence[Progress | None],
) -> Tuned:
    """Focus, tuned depth equation and virtual baselines, and the rig that has them."""
    frames = alignment.frames
    views = SplitViews(captures, frames, _calibration(draft))
    tilt = _slopes(alignment.geometry)
    try:
        defocus = find_defocus(views, depths_m, draft.optics, progress=parts[0])
        rig = draft.replace(optics=defocus.applied_to(draft.optics))
        tuning = find_tuning(views, depths_m, rig, tilt=tilt, progress=parts[1])
        chosen = choose_baselines(views, depths_m, rig, tuning, tilt=tilt, progress=parts[2])
        calibration = _calibration(rig).replace(
            virtual_baselines_m=chosen.chosen.virtual_baselines_m,
            a_cubic_m_px=tuning.a_cubic.coefficients,
            b_cubic_m=tuning.b_cubic.coefficients,
        )
        rig = rig.replace(calibration=calibration)
    except D3SError as error:
        names = [captures.names[frame] for frame in frames]
        raise CalibrationError(str(error) + _left_out(error, names)) from error
    steps = (_renumbered(step, frames) for step in (defocus, tuning, chosen))
    return Tuned(rig, *steps)


def _beyond(depths_m: Sequence[float], optics: Optics) -> tuple[str, ...]:
    """That a user has to ask for depths at which boards were."""
    reach = reach_m(optics, depths_m)
    if reach is None:
        return ()
    nearest_m, farthest_m = default_depth_range_m(optics)
    return (
        f"Boards were from {min(depths_m):.2f} to {max(depths_m):.2f} m, and with this camera "
        f"depth is looked for from {nearest_m:.2f} to {farthest_m:.2f} m unless told otherwise: "
        f"the test was told depth_range_m=({reach[0]:.2f}, {reach[1]:.2f}).",
    )


def _slopes(geometry: Geometry) -> tuple[float, float]:
    """dZ/dX and dZ/dY of the board."""
    across, down = np.tan(geometry.tilt_rad)
    return float(across), float(down)


def _renumbered(step: Any, frames: Sequence[int]) -> Any:
    """A finding on some of the frames, with those that it left out called by their own numbers."""
    return step._replace(left_out={frames[number]: why for number, why in step.left_out.items()})


def _left_out(error: D3SError, names: Sequence[str]) -> str:
    """Frames that a failed step could not use, by the names of their files."""
    by_reason: dict[str, list[str]] = {}
    if isinstance(error, CalibrationError):
        for number, why in sorted(error.left_out.items()):
            by_reason.setdefault(why, []).append(names[number])
    told = "; ".join(f"{', '.join(files)}: {why}" for why, files in by_reason.items())
    return f" Left out were {told}." if told else ""


def _calibration(rig: Rig) -> Calibration:
    if rig.calibration is None:
        raise CalibrationError(f"the rig {rig.name!r} has no calibration.")
    return rig.calibration
