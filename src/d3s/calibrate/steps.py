"""Groups of steps that a calibration and its cross-validation share: lenses, tuning, test.

Detail is shifted by blur that changes over the field. So the places on the board are corrected as
soon as the focus is known, and all that follows from them is found again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from d3s.calibrate.alignment import (
    AlignedMatches,
    Setup,
    align_matches,
    align_views,
    bowl_doubt_per_m,
    calibration_of,
    draft_rig,
    lens_maps_of,
    with_lenses,
    without_blur_shift,
)
from d3s.calibrate.baselines import ChosenBaselines, choose_baselines
from d3s.calibrate.coma import BoardBlur, Coma, board_spectrum, find_coma, scaled, without_coma
from d3s.calibrate.defocus import Defocus, find_defocus
from d3s.calibrate.disparity_map import (
    CellDisparity,
    DisparityMap,
    RemainingSigma,
    board_errors_px,
    fit_disparity_map,
    measure_cells,
    remaining_sigma,
    texture_errors_px,
)
from d3s.calibrate.fields import Fields
from d3s.calibrate.focus_map import FocusMap, find_focus_map
from d3s.calibrate.frames import Captures, MiddleViews, SplitViews
from d3s.calibrate.geometry import Geometry, disparity_in_powers
from d3s.calibrate.illumination import Illumination, find_illumination
from d3s.calibrate.sensor_noise import Noise
from d3s.calibrate.tuning import Tuning, find_tuning, options_for_lenses
from d3s.calibrate.validation import (
    RULER_SIGMA_M,
    FieldResiduals,
    Validation,
    errors_over_depth,
    mean_of_known,
)
from d3s.errors import CalibrationError, D3SError
from d3s.rig import Calibration, LensMaps, Rig
from d3s.rig.calibration import LEAST_SIGMA_PX
from d3s.types import FloatArray, Progress

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


# Part of the views that the focus of the axis is found from: farther out it is another one.
_MIDDLE_PX = 700
_WINDOW_SPREAD = 0.06  # field radii, over which the rows of windows are averaged for a cell


class Lenses(NamedTuple):
    """Errors of the lenses over the field, the places corrected for them, and the rig so far."""

    rig: Rig
    alignment: AlignedMatches
    illumination: Illumination
    defocus: Defocus
    focus_map: FocusMap
    coma: Coma
    disparity_map: DisparityMap


def find_lenses(
    captures: Captures,
    alignment: AlignedMatches,
    fields: Fields,
    noise: Noise,
    setup: Setup,
    percent: Percent,
) -> Lenses:
    """Find light, focus and remaining disparity over the field."""
    frames, depths_m, board = alignment.frames, alignment.depths_m, alignment.board
    radius_px = alignment.distortion.field_radius_px
    rig = draft_rig(setup, alignment, fields, noise, captures.shape)
    views = SplitViews(captures, frames, calibration_of(rig))
    light = find_illumination(views, depths_m, rig.optics, board, radius_px)
    rig = with_lenses(rig, illumination_left=light.left, illumination_right=light.right)
    views = SplitViews(captures, frames, calibration_of(rig))
    defocus = find_defocus(
        MiddleViews(views, _MIDDLE_PX), depths_m, rig.optics, progress=percent.of("defocus")
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
    alignment, coma = _without_shifts(alignment, focus.applied_to(rig), captures, setup)
    rig = draft_rig(setup, alignment, fields, noise, captures.shape)
    rig = with_lenses(rig, illumination_left=light.left, illumination_right=light.right)
    rig = with_lenses(focus.applied_to(rig), coma_left_px=coma.left_px, coma_right_px=coma.right_px)
    views = SplitViews(captures, alignment.frames, calibration_of(rig))
    cells = measure_cells(
        views, alignment.depths_m, rig, alignment.board, radius_px, progress=percent.of("disparity")
    )
    disparity = fit_disparity_map(cells, rig)
    return Lenses(disparity.applied_to(rig), alignment, light, defocus, focus, coma, disparity)


def _without_shifts(
    alignment: AlignedMatches, rig: Rig, captures: Captures, setup: Setup
) -> tuple[AlignedMatches, Coma]:
    """Alignment by places without the shifts that blur and coma cause."""
    distortion = alignment.distortion
    matches = without_blur_shift(alignment, rig)
    blur = BoardBlur(
        lens_maps_of(rig),
        rig.optics,
        (distortion.centre_px(0), distortion.centre_px(1)),
        alignment.geometry.depths_m,
        alignment.board,
    )
    waves = board_spectrum(matches, blur)
    coma = find_coma(matches, blur, waves) if setup.coma is None else setup.coma

    def align(share: float) -> AlignedMatches:
        """Align places without this share of the coma."""
        left, right = (scaled(one, share) for one in (coma.left_px, coma.right_px))
        places = without_coma(matches, (left, right), blur, waves)
        radius_px = distortion.field_radius_px
        aligned = align_matches(places, captures.distances_m, radius_px, setup, alignment)
        doubt = bowl_doubt_per_m(share * coma.growth_px, lens_maps_of(rig))
        return aligned._replace(bowl_doubt_per_m=doubt)

    aligned = align(1.0)
    if not coma.growth_px or setup.coma is not None:
        return aligned, coma
    # What coma may be wrong by changes the depths. A test has no use for that.
    try:
        other = align(1 + coma.sigma_px / abs(coma.growth_px))
    except CalibrationError:  # with this coma the frames do not fit each other
        return aligned, coma
    change_m = other.geometry.depths_m - aligned.geometry.depths_m
    return aligned._replace(geometry=_with_doubt(aligned.geometry, change_m)), coma


def _with_doubt(geometry: Geometry, change_m: FloatArray) -> Geometry:
    """Geometry with one more error of the disparity: that of a change of the depths."""
    known = np.isfinite(change_m + geometry.depths_m)
    if not change_m[known].any():
        return geometry
    vergence = 1 / geometry.depths_m[known]
    change_px = geometry.focal_baseline_px_m * vergence**2 * change_m[known]
    errors = np.vstack([geometry.disparity_errors_px, disparity_in_powers(change_px, vergence)])
    return geometry._replace(disparity_errors_px=errors)


def field_residuals(cells: CellDisparity, aligned: AlignedMatches) -> FieldResiduals:
    """Disparity, rows and light left over the field on frames that were not calibrated with."""
    rows_px = np.full(cells.residual_px.shape, np.nan)
    straight = aligned.distortion.removed_from(aligned.matches)
    anchors = (aligned.anchors.left_px, aligned.anchors.right_px)
    pairs = {pair.first: pair for pair in straight.across}
    for number, frame in enumerate(aligned.frames[1::2]):
        pair = pairs[frame]
        left, right = aligned.rectification.rectified(pair.first_px, pair.second_px, anchors)
        x, y = left.T / aligned.distortion.field_radius_px
        rows_px[number] = _local_means(cells, x, y, left[:, 1] - right[:, 1])
    return FieldResiduals(
        depths_m=cells.depths_m,
        x=cells.x,
        y=cells.y,
        residual_px=cells.residual_px,
        sigma_px=cells.sigma_px,
        rows_px=rows_px,
        light_ratio=mean_of_known(cells.light_ratio, 0),
    )


def _local_means(
    cells: CellDisparity, x: FloatArray, y: FloatArray, values: FloatArray
) -> FloatArray:
    """Weighted means of values around the centre of each cell; NaN far from all places."""
    square = (cells.x[..., np.newaxis] - x) ** 2 + (cells.y[..., np.newaxis] - y) ** 2
    weights = np.exp(-0.5 * square / _WINDOW_SPREAD**2)
    means = weights @ values / np.maximum(weights.sum(axis=-1), 1e-12)
    return np.where(square.min(axis=-1) < (2 * _WINDOW_SPREAD) ** 2, means, np.nan)


def with_sigma(lenses: Lenses, cells: CellDisparity | None) -> Rig:
    """Rig whose disparity has the standard deviation that calibration and test found.

    `cells` is the disparity left on frames that were not calibrated with; None if there was no
    test.
    """
    alignment, maps = lenses.alignment, lens_maps_of(lenses.rig)
    optics, geometry = lenses.rig.optics, alignment.geometry
    vergences_dpt = 1 / np.array(alignment.depths_m)
    errors = (
        # Those by the distances of the boards are alike all over the field.
        *(tuple((float(one),) for one in row) for row in geometry.disparity_errors_px),
        *board_errors_px(geometry, alignment.bend_sigma_per_m, optics, maps.field_radius_px),
        *texture_errors_px(lenses.coma, maps, optics, (vergences_dpt.min(), vergences_dpt.max())),
    )
    rms_px = 2 * lenses.disparity_map.after_rms_px
    left = RemainingSigma(rms_px, 0.0, 0.0) if cells is None else remaining_sigma(cells)
    return with_lenses(
        lenses.rig,
        disparity_sigma_px=max(left.axis_px, LEAST_SIGMA_PX),
        edge_sigma_px=left.edge_px,
        scale_sigma=0.0,
        disparity_errors_px=errors,
    )


def _noise_sigma(calibration: Calibration) -> float:
    """Standard deviation of the noise of a pixel of medium brightness."""
    read, gain = calibration.noise_read or 0.0, calibration.noise_gain or 0.0
    return float(np.sqrt(read**2 + 0.5 * gain))


# Methods that are tested, and the number of rows in the middle of the views that each is given:
# enough pixels for a mean, and no more time than the other steps take.
TESTED_ROWS_PX = {"joint": 600, "consensus": 120}
# Frames that methods are tested with, at most: the consensus takes two seconds for each.
_MOST_TESTED = {"joint": 1000, "consensus": 16}


# The depth equation is tuned where the focus differs from that of the axis by at most this much.
_EVEN_FOCUS_DPT = 0.15
_LEAST_EVEN_PX, _MOST_EVEN_PX = 500, 20_000


class Tuned(NamedTuple):
    """Results of the steps that use rectified views; the rig of `lenses` has all of them."""

    lenses: Lenses
    tuning: Tuning
    baselines: ChosenBaselines

    @property
    def rig(self) -> Rig:
        """The calibrated camera."""
        return self.lenses.rig


class CrossValidation(NamedTuple):
    """Results on frames that were not calibrated with."""

    validation: tuple[Validation, ...]
    cells: CellDisparity | None
    remarks: tuple[str, ...]


def tune_rig(
    captures: Captures,
    alignment: AlignedMatches,
    fields: Fields,
    noise: Noise,
    setup: Setup,
    percent: Percent,
) -> Tuned:
    """Find the errors of the lenses, the tuned depth equation and the virtual baselines.

    The message of an error names the files that its step rejected.
    """
    frames = alignment.frames
    try:
        lenses = find_lenses(captures, alignment, fields, noise, setup, percent)
        rig, alignment, board = lenses.rig, lenses.alignment, lenses.alignment.board
        frames, depths_m = alignment.frames, alignment.depths_m
        views = MiddleViews(
            SplitViews(captures, frames, calibration_of(rig)), _even_focus_px(lens_maps_of(rig))
        )
        options = options_for_lenses(rig)
        tuning = find_tuning(
            views, depths_m, rig, options=options, board=board, progress=percent.of("tuning")
        )
        chosen = choose_baselines(
            views,
            depths_m,
            rig,
            tuning,
            options=options,
            board=board,
            at_one_metre=True,
            progress=percent.of("baselines"),
        )
        calibration = calibration_of(rig).replace(
            virtual_baselines_m=chosen.chosen.virtual_baselines_m,
            a_cubic_m_px=tuning.a_cubic.coefficients,
            b_cubic_m=tuning.b_cubic.coefficients,
            tuned_candidates=options.candidates,
            tuned_window_px=options.window_px,
            tuned_prefilter_sigma_px=options.prefilter_sigma_px,
        )
        rig = rig.replace(calibration=calibration)
    except D3SError as error:
        names = [captures.names[frame] for frame in frames]
        raise CalibrationError(str(error) + _rejected_files(error, names)) from error
    return Tuned(
        lenses._replace(rig=rig, defocus=_renumbered(lenses.defocus, frames)),
        _renumbered(tuning, frames),
        _renumbered(chosen, frames),
    )


def cross_validate(
    captures: Captures,
    aligned: AlignedMatches,
    fields: Fields,
    noise: Noise,
    coma: Coma,
    setup: Setup,
    progress: Progress | None,
) -> CrossValidation:
    """Calibrate with every other frame, and measure errors on the frames between.

    Of the frames that fit each other, the first, third, ... calibrate, the others test. Fields,
    noise and coma are from all frames. There are no results, but a remark, if the test failed.
    """
    frames = aligned.frames
    setup = setup._replace(coma=coma)
    percent = Percent(progress, PERCENT_OF_TEST, start=sum(PERCENT.values()))
    try:
        training, tested = captures.some(frames[::2]), frames[1::2]
        alignment = align_views(training, fields, setup, percent.of("matches"))
        tuned = tune_rig(training, alignment, fields, noise, setup, percent)
        rig, alignment = tuned.rig, tuned.lenses.alignment
        views = SplitViews(captures, tested, calibration_of(rig))
        # Distances by the ruler, with the errors of single ones averaged out over all frames by the
        # expansion of the board: a wrong distance is no fault of the camera.
        true_m = aligned.depths_m[1::2]
        truth_sigma_m = aligned.geometry.ruler_sigma_m / len(frames) ** 0.5
        errors = []
        for method, rows_px in TESTED_ROWS_PX.items():
            some = _evenly(len(tested), _MOST_TESTED[method])
            numbers = [tested[number] for number in some]
            found = errors_over_depth(
                SplitViews(captures, numbers, calibration_of(rig)),
                [true_m[number] for number in some],
                rig,
                method,
                board=alignment.board,
                truth_sigma_m=max(truth_sigma_m, RULER_SIGMA_M),
                rows_px=rows_px,
                progress=percent.of(method),
            )
            errors.append(_renumbered(found, numbers))
        cells = measure_cells(
            views,
            _on_scale_of(alignment, frames[::2], aligned, true_m),
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
    return CrossValidation(tuple(errors), cells, ())


def _evenly(count: int, most: int) -> list[int]:
    """Numbers from 0 to `count` - 1, both ends included: all, or so many at most, spread evenly."""
    places = np.linspace(0, count - 1, min(count, most)).round()
    return [int(place) for place in places]


def _on_scale_of(
    training: AlignedMatches,
    numbers: Sequence[int],
    aligned: AlignedMatches,
    depths_m: Sequence[float],
) -> list[float]:
    """Depths as the frames of a training half would give them.

    Sigma counts what all depths are wrong by: what is left over the field of
    other frames shall not count it again.

    `numbers` are those of the training frames among all frames; `depths_m` are by all frames.
    """
    own_m = np.array(training.depths_m)
    by_all_m = aligned.geometry.depths_m[[numbers[frame] for frame in training.frames]]
    change = disparity_in_powers(1 / own_m - 1 / by_all_m, 1 / by_all_m)
    vergence = 1 / np.array(depths_m)
    on_scale: list[float] = (
        1 / (vergence + np.polynomial.polynomial.polyval(vergence, change))
    ).tolist()
    return on_scale


def _even_focus_px(lenses: LensMaps) -> int:
    """Size of the middle of the views in which the focus hardly changes, in pixels."""
    most_dpt = max(
        abs(value) for maps in (lenses.focus_left_dpt, lenses.focus_right_dpt) for value in maps
    )
    radius = lenses.field_radius_px * (_EVEN_FOCUS_DPT / max(most_dpt, 1e-6)) ** 0.5
    return int(min(max(2 * radius, _LEAST_EVEN_PX), _MOST_EVEN_PX))


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
