"""Groups of steps that a calibration and its cross-validation share: align, draft, tune, test."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from d3s.calibrate.anchors import Anchors, find_anchors
from d3s.calibrate.baselines import ChosenBaselines, choose_baselines
from d3s.calibrate.board import Board
from d3s.calibrate.defocus import Defocus, find_defocus
from d3s.calibrate.disparity_map import (
    LEAST_SIGMA_PX,
    CellDisparity,
    DisparityMap,
    fit_disparity_map,
    measure_cells,
    remaining_sigma_px,
)
from d3s.calibrate.distortion import Distortion, find_distortion
from d3s.calibrate.field_residuals import FieldResiduals, mean_of_known
from d3s.calibrate.fields import Fields, largest_crop
from d3s.calibrate.focus_map import FocusMap, find_focus_map
from d3s.calibrate.frames import Captures, MiddleViews, SplitViews
from d3s.calibrate.geometry import Geometry, find_geometry
from d3s.calibrate.illumination import Illumination, find_illumination
from d3s.calibrate.matches import Matches, find_matches
from d3s.calibrate.noise import Noise
from d3s.calibrate.rectification import Rectification, find_rectification
from d3s.calibrate.tuning import CONSENSUS, Tuning, find_tuning
from d3s.calibrate.validation import RULER_SIGMA_M, Validation, errors_over_depth
from d3s.errors import CalibrationError, D3SError
from d3s.rig import Calibration, LensMaps, Provenance, Rig
from d3s.types import Progress

# Methods that are tested, and the number of rows in the middle of the views that each is given:
# enough pixels for a mean, and no more time than the other steps take.
TESTED_ROWS_PX = {"joint": 600, "consensus": 120}

# Part of the views that the focus of the axis is found from: farther out it is another one.
_MIDDLE_PX = 700

# Percent of the whole time that each step takes, as measured on 50 frames of 3840 x 2160 px.
PERCENT = {
    "reading": 8,
    "fields": 2,
    "matches": 25,
    "noise": 2,
    "defocus": 5,
    "focus": 6,
    "disparity": 6,
    "tuning": 5,
    "baselines": 6,
}
PERCENT_OF_TEST = {
    "matches": 10,
    "defocus": 3,
    "focus": 3,
    "disparity": 3,
    "tuning": 3,
    "baselines": 3,
    "joint": 5,
    "consensus": 5,
}


class Percent:
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


class Setup(NamedTuple):
    """Inputs that the calibration and its cross-validation share."""

    design: Rig  # the camera as built
    fit_ruler: bool | None  # apply the offset of the ruler; None: if it is significant
    name: str  # of the camera
    provenance: Provenance  # residuals still empty


class Alignment(NamedTuple):
    """Results of the steps that use places on the board, not the views themselves."""

    matches: Matches
    distortion: Distortion
    anchors: Anchors  # of views without distortion, as are the next two
    rectification: Rectification
    geometry: Geometry

    @property
    def left_out(self) -> dict[int, str]:
        """Rejected frames, except those rejected by the anchor step only."""
        return self.geometry.left_out | self.rectification.left_out | self.matches.left_out

    @property
    def frames(self) -> list[int]:
        """Numbers of the frames that no step but that of the anchors rejected."""
        return [frame for frame in self.matches.kept if frame not in self.left_out]

    @property
    def board(self) -> Board:
        """Shape of the board."""
        return Board(self.geometry.slopes, self.distortion.bend_per_m)

    @property
    def depths_m(self) -> list[float]:
        """Depth of the board on the left axis, of each of `frames`."""
        depths_m: list[float] = self.geometry.depths_m[self.frames].tolist()
        return depths_m


class Tuned(NamedTuple):
    """Results of the steps that use rectified views, and the rig that has these results."""

    rig: Rig
    illumination: Illumination
    defocus: Defocus
    focus_map: FocusMap
    disparity_map: DisparityMap
    tuning: Tuning
    baselines: ChosenBaselines


class CrossValidation(NamedTuple):
    """Results on frames that were not calibrated with."""

    validation: tuple[Validation, ...]
    cells: CellDisparity | None
    remarks: tuple[str, ...]


def align_views(
    captures: Captures, fields: Fields, setup: Setup, progress: Progress | None
) -> Alignment:
    """Find places on the board, and from these the anchors, the rectification and the geometry.

    Parameters
    ----------
    captures, fields
        Raw frames, nearest board first, and the parts of them that the two lenses light.
    setup
        The design, and whether the offset of the ruler is applied.
    progress
        Called after each frame with the number of frames done, and of all.
    """
    matches = find_matches(captures, fields, progress)
    optics = setup.design.optics
    distortion, anchors = find_distortion(
        matches,
        find_anchors(matches),
        captures.distances_m,
        focal_length_px=optics.focal_length_px,
        field_radius_px=fields.radius_px,
    )
    straight = distortion.removed_from(matches)
    rectification = find_rectification(straight, anchors)
    geometry = find_geometry(
        straight,
        anchors,
        rectification,
        captures.distances_m,
        optics,
        fit_ruler=setup.fit_ruler,
    )
    return Alignment(matches, distortion, anchors, rectification, geometry)


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
    alignment, fields, noise
        Results of the steps before; the views are cut from the fields.
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
        rectify_shift_y_px=0.0,  # the anchors of the geometry include it
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
        lenses=LensMaps(
            field_radius_px=alignment.distortion.field_radius_px,
            distortion_left=alignment.distortion.left,
            distortion_right=alignment.distortion.right,
        ),
        provenance=setup.provenance,
    )
    largest_disparity_px = geometry.focal_baseline_px_m / float(np.nanmin(geometry.depths_m))
    rows, cols = largest_crop(fields, calibration, frame_shape, largest_disparity_px)
    calibration = calibration.replace(crop_rows_px=rows, crop_cols_px=cols)
    return Rig(name=setup.name, optics=optics, calibration=calibration)


def tune_rig(captures: Captures, alignment: Alignment, draft: Rig, percent: Percent) -> Tuned:
    """Find focus, tuned depth equation and virtual baselines from rectified views.

    Parameters
    ----------
    captures, alignment
        Raw frames; which of these to use, their depths and the tilt of the board.
    draft
        The rig as far as it is known: `draft_rig`.
    percent
        Progress of the three steps.

    Raises
    ------
    CalibrationError
        If a step fails; the message names the files that this step rejected.
    """
    frames, depths_m, board = alignment.frames, alignment.depths_m, alignment.board
    radius_px = alignment.distortion.field_radius_px
    try:
        views = SplitViews(captures, frames, calibration_of(draft))
        illumination = find_illumination(views, depths_m, draft.optics, board, radius_px)
        rig = _with_lenses(
            draft, illumination_left=illumination.left, illumination_right=illumination.right
        )
        views = SplitViews(captures, frames, calibration_of(rig))
        defocus = find_defocus(
            MiddleViews(views, _MIDDLE_PX),
            depths_m,
            rig.optics,
            progress=percent.of("defocus"),
        )
        focus = find_focus_map(
            views,
            depths_m,
            defocus.applied_to(rig.optics),
            board,
            radius_px,
            noise=_noise_sigma(calibration_of(rig)),
            progress=percent.of("focus"),
        )
        rig = _with_lenses(
            rig.replace(optics=focus.applied_to(rig.optics)),
            focus_left_dpt=focus.left_dpt,
            focus_right_dpt=focus.right_dpt,
            focus_centre_left=focus.centre_left,
            focus_centre_right=focus.centre_right,
        )
        cells = measure_cells(
            views, depths_m, rig, board, radius_px, progress=percent.of("disparity")
        )
        disparity = fit_disparity_map(cells)
        rig = _with_lenses(rig, disparity_px=disparity.maps_px)
        tuning = find_tuning(views, depths_m, rig, board=board, progress=percent.of("tuning"))
        chosen = choose_baselines(
            views, depths_m, rig, tuning, board=board, progress=percent.of("baselines")
        )
        calibration = calibration_of(rig).replace(
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
        illumination,
        _renumbered(defocus, frames),
        focus,
        disparity,
        _renumbered(tuning, frames),
        _renumbered(chosen, frames),
    )


def cross_validate(
    captures: Captures,
    aligned: Alignment,
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
    aligned
        Alignment by all frames. Of the frames that fit each other, the first, third, ... calibrate,
        the others test.
    fields, noise
        Results from all frames; neither depends on the distances.
    setup
        As for `align_views`.
    progress
        Called with the percent of the whole calibration that is done, and 100.

    Returns
    -------
    CrossValidation
        Errors of each method and disparity left over the field; none, with a remark, if the test
        failed.
    """
    frames = aligned.frames
    percent = Percent(progress, PERCENT_OF_TEST, start=sum(PERCENT.values()))
    try:
        training, tested = captures.some(frames[::2]), frames[1::2]
        alignment = align_views(training, fields, setup, percent.of("matches"))
        draft = draft_rig(setup, alignment, fields, noise, training.shape)
        rig = tune_rig(training, alignment, draft, percent).rig
        views = SplitViews(captures, tested, calibration_of(rig))
        # The truth is the distance by the ruler, as for a user, not a depth found from the frames.
        offset_m = alignment.geometry.applied_ruler_offset_m
        true_m = [captures.distances_m[frame] + offset_m for frame in tested]
        errors = [
            errors_over_depth(
                views,
                true_m,
                rig,
                method,
                board=alignment.board,
                truth_sigma_m=max(alignment.geometry.ruler_sigma_m, RULER_SIGMA_M),
                rows_px=rows_px,
                progress=percent.of(method),
            )
            for method, rows_px in TESTED_ROWS_PX.items()
        ]
        cells = measure_cells(
            views,
            aligned.depths_m[1::2],
            rig,
            aligned.board,
            aligned.distortion.field_radius_px,
            progress=percent.of("disparity"),
        )
    except D3SError as error:
        # Half the frames may be too few for a step where all of them are enough.
        return CrossValidation(
            (), None, (f"The test with every other frame came to nothing: {error}",)
        )
    return CrossValidation(tuple(_renumbered(one, tested) for one in errors), cells, ())


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


def field_residuals(cells: CellDisparity, aligned: Alignment) -> FieldResiduals:
    """Disparity, rows and light left over the field on frames that were not calibrated with."""
    shape = cells.x.shape
    rows_px = np.full(cells.residual_px.shape, np.nan)
    straight = aligned.distortion.removed_from(aligned.matches)
    anchors = (aligned.anchors.left_px, aligned.anchors.right_px)
    edges = [
        np.concatenate([line[:1] - np.diff(line[:2]) / 2, line + np.diff(line[:2]) / 2])
        for line in (cells.y[:, 0], cells.x[0])
    ]
    pairs = {pair.first: pair for pair in straight.across}
    for number, frame in enumerate(aligned.frames[1::2]):
        pair = pairs[frame]
        left, right = aligned.rectification.rectified(pair.first_px, pair.second_px, anchors)
        places = left[:, ::-1] / aligned.distortion.field_radius_px
        sums, counts = (
            np.histogramdd(places, bins=edges, weights=weights)[0]
            for weights in (left[:, 1] - right[:, 1], None)
        )
        rows_px[number] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(shape)
    return FieldResiduals(
        depths_m=cells.depths_m,
        x=cells.x,
        y=cells.y,
        residual_px=cells.residual_px,
        sigma_px=cells.sigma_px,
        rows_px=rows_px,
        light_ratio=mean_of_known(cells.light_ratio, 0),
    )


def with_sigma(rig: Rig, cells: CellDisparity | None, map_rms_px: float) -> Rig:
    """Rig whose disparity has the standard deviation that a test has found.

    Parameters
    ----------
    rig
        The calibrated camera.
    cells
        Disparity left on frames that were not calibrated with; None if there was no test.
    map_rms_px
        Disparity that the map left on the frames it was fitted to, used without a test.
    """
    sigma_px = 2 * map_rms_px if cells is None else remaining_sigma_px(cells)
    return _with_lenses(rig, disparity_sigma_px=max(sigma_px, LEAST_SIGMA_PX))


def _with_lenses(rig: Rig, **values: Any) -> Rig:
    """Rig with other values of its lens maps."""
    calibration = calibration_of(rig)
    lenses = calibration.lenses or LensMaps(field_radius_px=1000.0)
    return rig.replace(calibration=calibration.replace(lenses=lenses.replace(**values)))


def _noise_sigma(calibration: Calibration) -> float:
    """Standard deviation of the noise of a pixel of medium brightness."""
    read, gain = calibration.noise_read or 0.0, calibration.noise_gain or 0.0
    return float(np.sqrt(read**2 + 0.5 * gain))


def calibration_of(rig: Rig) -> Calibration:
    """Calibration of a rig that has one."""
    if rig.calibration is None:
        raise CalibrationError(f"the rig {rig.name!r} has no calibration.")
    return rig.calibration
