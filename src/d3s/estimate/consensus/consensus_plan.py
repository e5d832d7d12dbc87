"""Plan of the consensus: candidate depths, virtual baselines, and the shifts that belong to them.

The compiled search and the NumPy reference share it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import OptionsError
from d3s.estimate.candidates import default_depth_range_m, even_candidates_m
from d3s.estimate.consensus.depth_lines import line_from_optics
from d3s.estimate.consensus.smoothing import reach_px, smoothed, without_mean
from d3s.estimate.lens_field import LensField, lens_field
from d3s.estimate.options import ConsensusOptions
from d3s.optics.stereo import alignment_shift_px
from d3s.rig import Calibration, Rig
from d3s.types import FloatArray, Image

# The virtual baselines that tuning on boards chose, and those of the paper, 0.45, 0.50 and 0.55 mm,
# as shares of the 3.84 mm of its prototype.
_BEST_SHARES = (0.09, 0.10, 0.11)
_PRINTED_SHARES = tuple(one_mm / 3.84 for one_mm in (0.45, 0.50, 0.55))


class RigDefaults(NamedTuple):
    """Options whose default depends on the rig."""

    candidates: int
    window_px: int
    prefilter_sigma_px: float
    local_mean_px: float


_BEST = RigDefaults(candidates=960, window_px=41, prefilter_sigma_px=4.0, local_mean_px=12.0)
_PRINTED = RigDefaults(candidates=240, window_px=21, prefilter_sigma_px=1.0, local_mean_px=0.0)


def settings_of(options: ConsensusOptions, calibration: Calibration | None) -> RigDefaults:
    """Settings from the options, else from the tuning of the rig, else the defaults."""
    settings = _PRINTED if options.as_printed else _BEST
    if calibration is not None:
        settings = settings._replace(**calibration.tuned)
    given = {name: getattr(options, name) for name in RigDefaults._fields}
    return settings._replace(**{name: value for name, value in given.items() if value is not None})


class ConsensusPlan(NamedTuple):
    """Candidates and virtual baselines to try, for views of one shape."""

    rig: Rig
    options: ConsensusOptions
    settings: RigDefaults
    candidates_m: FloatArray  # (candidates,), increasing
    steps_m: FloatArray  # (candidates,), distance between neighbouring candidates
    baselines_m: FloatArray  # (baselines,), virtual baselines
    lines: tuple[FloatArray, FloatArray] | None  # a and b of Eq. 17, (baselines,) each; Eq. 10 else
    shares: FloatArray  # (baselines,), virtual over real baseline
    shifts_px: FloatArray  # (candidates, baselines), of the right view to the right
    reach_px: int  # distance over which a depth depends on a view: window, differences, prefilter
    first_cols: NDArray[np.int64]  # (candidates,), first and last column of the left view
    last_cols: NDArray[np.int64]  # whose windows lie in both frames, for all baselines
    field: LensField | None  # lenses that differ from place to place


def make_plan(rig: Rig, options: ConsensusOptions, shape: tuple[int, int]) -> ConsensusPlan:
    """Plan the search of a pair.

    Parameters
    ----------
    rig
        The camera.
    options
        Options of the consensus.
    shape
        Rows and columns of a view.

    Raises
    ------
    OptionsError
        If a virtual baseline is not below the baseline of the rig.
    """
    optics, settings = rig.optics, settings_of(options, rig.calibration)
    candidates = candidates_m(rig, options)
    baselines = virtual_baselines_m(rig, options)
    shifts = alignment_shift_px(
        candidates[:, np.newaxis],
        baselines,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
    )
    # Finite differences need one pixel beyond the window.
    reach = settings.window_px // 2 + 1 + reach_px(settings.prefilter_sigma_px)
    first, last = _cols_in_frame(shifts, reach, shape[1])
    return ConsensusPlan(
        rig=rig,
        options=options,
        settings=settings,
        candidates_m=candidates,
        steps_m=np.abs(np.gradient(candidates)),
        baselines_m=baselines,
        lines=_lines(rig, options, baselines),
        shares=baselines / optics.baseline_m,
        shifts_px=shifts,
        reach_px=reach,
        first_cols=first,
        last_cols=last,
        field=lens_field(rig, shape),
    )


def candidates_m(rig: Rig, options: ConsensusOptions) -> FloatArray:
    """Candidate depths in metres, increasing.

    From the options, else even in inverse depth over the range of the options or of the camera.
    """
    if options.candidates_m is not None:
        return np.array(options.candidates_m)
    depth_range_m = options.depth_range_m or default_depth_range_m(rig.optics)
    return even_candidates_m(depth_range_m, settings_of(options, rig.calibration).candidates)


def virtual_baselines_m(rig: Rig, options: ConsensusOptions) -> FloatArray:
    """Virtual baselines in metres: from the options, the calibration, or shares of the real one.

    Raises
    ------
    OptionsError
        If a virtual baseline is not below the baseline of the rig.
    """
    if options.virtual_baselines_m is not None:
        given = np.array(options.virtual_baselines_m)
        if given.max() >= rig.optics.baseline_m:
            raise OptionsError(
                f"virtual_baselines_m={options.virtual_baselines_m} must be below "
                f"optics.baseline_m={rig.optics.baseline_m} of the rig: it is in metres."
            )
        return given
    if rig.calibration is not None:
        return np.array(rig.calibration.virtual_baselines_m)
    shares = _PRINTED_SHARES if options.as_printed else _BEST_SHARES
    return rig.optics.baseline_m * np.array(shares)


def _lines(
    rig: Rig, options: ConsensusOptions, baselines_m: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Scale a in m px and offset b in m of Eq. 17, by calibration or optics; None for Eq. 10."""
    if rig.calibration is not None:
        # The cubic a is of the magnitude of the baseline; the sign is that of the baseline.
        a_m_px = np.sign(baselines_m) * rig.calibration.a_m_px(baselines_m)
        return a_m_px, rig.calibration.b_m(baselines_m)
    if options.as_printed:
        return None
    filters = settings_of(options, None)[2:]
    a_m_px, b_m = np.transpose(
        [line_from_optics(rig.optics, one, *filters) for one in baselines_m.tolist()]
    )
    return a_m_px, b_m


def filtered(view: Image, plan: ConsensusPlan) -> FloatArray:
    """View (rows, cols) smoothed by the prefilter and without its local mean."""
    smooth = smoothed(view, plan.settings.prefilter_sigma_px)
    return without_mean(smooth, plan.settings.local_mean_px)


def tried_mask(plan: ConsensusPlan, cols: int) -> NDArray[np.bool_]:
    """Mask (candidates, cols): whether a candidate is tried in a column of the left view."""
    col = np.arange(cols)
    return (col >= plan.first_cols[:, np.newaxis]) & (col <= plan.last_cols[:, np.newaxis])


def _cols_in_frame(
    shifts_px: FloatArray, reach: int, cols: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Clipped first: the shifts of very near depths are too large for an integer.
    largest = np.clip(shifts_px.max(axis=1), 0.0, cols)
    smallest = np.clip(shifts_px.min(axis=1), -cols, 0.0)
    first = np.ceil(reach + largest).astype(np.int64)
    last = np.floor(cols - 1 - reach + smallest).astype(np.int64)
    return first, last
