"""Groups of steps that a calibration and its cross-validation share: tune, test."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from d3s.calibrate.alignment import (
    Alignment,
    Setup,
    align_views,
    calibration_of,
    lens_maps_of,
)
from d3s.calibrate.baselines import ChosenBaselines, choose_baselines
from d3s.calibrate.coma_fit import Coma
from d3s.calibrate.defocus import Defocus
from d3s.calibrate.disparity_map import CellDisparity, measure_cells
from d3s.calibrate.fields import Fields
from d3s.calibrate.frames import Captures, MiddleViews, SplitViews
from d3s.calibrate.geometry import disparity_in_powers
from d3s.calibrate.lenses import Lenses, find_lenses
from d3s.calibrate.noise import Noise
from d3s.calibrate.percent import PERCENT, PERCENT_OF_TEST, Percent
from d3s.calibrate.tuning import Tuning, find_tuning, options_for_lenses
from d3s.calibrate.validation import RULER_SIGMA_M, Validation, errors_over_depth
from d3s.errors import CalibrationError, D3SError
from d3s.rig import LensMaps, Rig
from d3s.types import Progress

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
    alignment: Alignment,
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
    aligned: Alignment,
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
    training: Alignment, numbers: Sequence[int], aligned: Alignment, depths_m: Sequence[float]
) -> list[float]:
    """Depths as the frames of a training half would give them.

    Sigma counts what all depths are wrong by (`distance_errors_px`): what is left over the field of
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
