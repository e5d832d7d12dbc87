"""Fig. 3b: predicted depth over the plane of virtual baseline and shift."""

import numpy as np

from d3s.calibrate.tuning import shifts_px
from d3s.lab.evaluate.cameras import TunedTwin, plane_views
from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Table
from d3s.lab.reproduce.predictions import window_predictions
from d3s.lab.reproduce.protocol import twin_for
from d3s.lab.view.reproduction_consensus import Predictions, plot_plane
from d3s.optics.consensus import disagreement
from d3s.types import FloatArray

TRUE_M = 1.0
PATTERN = "gravel"
BASELINES_M = np.linspace(0.35e-3, 0.65e-3, 7)
"""Seven virtual baselines, as in the paper's figure, around its choice of three."""
_FACTOR = 1.06  # between the depths of neighbouring lines
_LINES = 4  # to either side of the true line
_SHAPE = (200, 420)
_FIELD = (161, 121)  # shifts, virtual baselines
_WINDOWS = 25


def make_consensus_plane(context: Context) -> Result:
    """Make the item: predictions for one pixel over the plane, and on the lines of candidates."""
    return consensus_plane_of(twin_for(context), context.seed)


def consensus_plane_of(twin: TunedTwin, seed: int) -> Result:
    """Make the figure for one pixel of a simulated view."""
    predictions = predictions_of(twin, seed)
    gap_m = disagreement(predictions.candidates_m, predictions.depths_m.T).depth_m
    caption = (
        f"Simulated: one pixel of a plane of {PATTERN} at {TRUE_M:g} m, with 1 % noise. Left: "
        "predictions (points) of seven virtual baselines on the lines of nine candidates, both in "
        "the colour of their depth. Middle: predictions all over the plane. Right: along the true "
        "line and two others."
    )
    picture = Picture(name="consensus_plane", figure=plot_plane(predictions), caption=caption)
    return Result(
        pictures=[picture],
        tables=[Table(name="consensus_plane", rows=_rows(predictions))],
        comparisons=[_comparison(predictions, gap_m)],
    )


def predictions_of(twin: TunedTwin, seed: int) -> Predictions:
    """Predictions of the depth equation at the middle window of a plane."""
    candidates_m = TRUE_M * _FACTOR ** np.arange(-_LINES, _LINES + 1.0)
    shifts = shifts_px(candidates_m, BASELINES_M, twin.rig.optics)
    ends_px = float(shifts.min()), float(shifts.max())
    views = plane_views(twin.rig, TRUE_M, PATTERN, seed=(seed, 1), shape=_SHAPE)
    in_windows = window_predictions(twin, views, ends_px, _WINDOWS)
    pixel = in_windows.windows.rows.size // 2
    field_shifts_px = np.linspace(*ends_px, _FIELD[0])
    field_baselines_m = np.linspace(BASELINES_M[0], BASELINES_M[-1], _FIELD[1])
    field_m = [
        in_windows.at_shifts_m(field_shifts_px, float(one))[:, pixel] for one in field_baselines_m
    ]
    return Predictions(
        baselines_m=BASELINES_M,
        candidates_m=candidates_m,
        shifts_px=shifts.T,
        depths_m=in_windows.predicted_m(candidates_m, BASELINES_M)[..., pixel],
        field_baselines_m=field_baselines_m,
        field_shifts_px=field_shifts_px,
        field_m=np.array(field_m).T,
        true_m=TRUE_M,
    )


def _rows(predictions: Predictions) -> list[dict[str, Cell]]:
    return [
        {
            "candidate_m": float(candidate_m),
            "virtual_baseline_m": float(baseline_m),
            "shift_px": float(predictions.shifts_px[i, j]),
            "predicted_m": float(predictions.depths_m[i, j]),
        }
        for i, candidate_m in enumerate(predictions.candidates_m)
        for j, baseline_m in enumerate(predictions.baselines_m)
    ]


def _comparison(predictions: Predictions, gap_m: FloatArray) -> Comparison:
    right = int(np.abs(predictions.candidates_m - TRUE_M).argmin())
    beside = np.delete(gap_m, right)
    return Comparison(
        what="largest disagreement of a prediction with its line",
        paper="none on the true line, and some on all others",
        ours=f"{100 * gap_m[right]:.1f} cm on the true line, {100 * beside.min():.0f} to "
        f"{100 * beside.max():.0f} cm on the others",
        why="The paper's figure is a sketch of the idea; this is a simulated pixel with noise.",
        agrees=bool(gap_m[right] < beside.min()),
    )


ITEM = Item(
    name="consensus_plane",
    title="Predictions over virtual baseline and shift",
    reference="Fig. 3b",
    places=("fig3b", "fig3"),
    what=(
        "Every candidate depth is a line in the plane of virtual baseline and shift. On that of "
        "the true depth all points predict that depth, so that points and line have one colour; on "
        "others they do not. The predicted depth changes much faster across the lines than their "
        "own does, which is what makes the crossing sharp."
    ),
    needs="seconds",
    run=make_consensus_plane,
    has_quick=False,
)
