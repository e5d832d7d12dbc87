"""Every method on the planes of the paper's protocol: what was measured, and lines over depth."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from d3s.calibrate.reach import ACCURATE_M
from d3s.evaluate import PlaneSweep, evaluate_planes, working_range_m
from d3s.evaluate.evaluation import sweep_parameters
from d3s.evaluate.metrics import finite_mean, penalised_mae_m, ratio, worst
from d3s.evaluate.table import Row
from d3s.evaluate.thresholds import evaluate_thresholds
from d3s.evaluate.tuned_twin import FAR_M, NEAR_M, NOISE, QUICK_FAR_M, QUICK_NEAR_M
from d3s.reproduce.item import Context
from d3s.reproduce.shared import (
    ACCURACY_THRESHOLD,
    OTHERS,
    PRINTED,
    TUNED,
    in_turn,
    twin_for,
)
from d3s.rig import Rig
from d3s.types import FloatArray

TEXTURES = ("brick", "grass", "carpet", "bark")
"""In place of the four that the paper took from CUReT, which has such materials too."""
THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)
_SHAPE, _QUICK_SHAPE = (300, 640), (200, 400)
_QUICK_TEXTURES = TEXTURES[:2]


class Measured(NamedTuple):
    """One method on one plane."""

    method: str
    threshold: float | None  # None for the default filter of the method
    texture: str
    depth_m: float
    pixels: int
    retained: int
    mae_m: float
    median_m: float
    density: float  # of the textured pixels


class Line(NamedTuple):
    """One method at one threshold over all depths, planes of a depth counting alike."""

    method: str
    threshold: float | None
    depth_m: FloatArray
    mae_m: FloatArray  # NaN where no plane has any depth
    worst_mae_m: FloatArray  # infinite where a plane that holds depth has none, NaN if none does
    share: FloatArray  # of the pixels that have a depth

    @property
    def range_m(self) -> tuple[float, float] | None:
        """Where the mean absolute error is below a centimetre, as the paper has it."""
        return working_range_m(self.depth_m.tolist(), (self.mae_m < ACCURATE_M).tolist())

    @property
    def strict_range_m(self) -> tuple[float, float] | None:
        """Where it is on every texture."""
        return working_range_m(self.depth_m.tolist(), (self.worst_mae_m < ACCURATE_M).tolist())

    def over(self, ends_m: tuple[float, float] | None) -> tuple[float, float]:
        """Mean error and share from one depth to another; NaN if there are none.

        A depth at which nothing was found has no error, but counts in the share.
        """
        near_m, far_m = ends_m or (np.inf, -np.inf)
        inside = (self.depth_m >= near_m) & (self.depth_m <= far_m)
        return finite_mean(self.mae_m[inside]), finite_mean(self.share[inside])

    def largest_m(self, ends_m: tuple[float, float]) -> float:
        """Largest mean error of a depth between two; infinite if at one nothing was found."""
        inside = (self.depth_m >= ends_m[0]) & (self.depth_m <= ends_m[1])
        return float(np.nan_to_num(self.mae_m[inside], nan=np.inf).max(initial=0.0))


def sweeps(context: Context) -> tuple[PlaneSweep, PlaneSweep]:
    """The near and the far series."""
    near_m, far_m = (QUICK_NEAR_M, QUICK_FAR_M) if context.quick else (NEAR_M, FAR_M)
    near = PlaneSweep(
        depths_m=near_m,
        patterns=_QUICK_TEXTURES if context.quick else TEXTURES,
        shape=_QUICK_SHAPE if context.quick else _SHAPE,
        noise=NOISE,
        seed=context.seed,
    )
    return near, near.replace(depths_m=far_m)


def measure(context: Context) -> list[Measured]:
    """Every method on every plane of both series."""
    bare, tuned = Rig.paper_prototype(), twin_for(context).rig
    both = sweeps(context)
    parts = in_turn(context.progress, 3 * [len(one.places) for one in both])
    measured: list[Measured] = []
    for number, sweep in enumerate(both):
        common: dict[str, Any] = {
            "sweep": sweep,
            "workers": context.workers,
            "folder": context.folder,
        }
        begin, middle, end = parts[number::2]
        own = evaluate_thresholds(TUNED, THRESHOLDS, rig=tuned, progress=begin, **common)
        printed = evaluate_thresholds(
            PRINTED, (ACCURACY_THRESHOLD,), rig=bare, progress=middle, **common
        )
        others = evaluate_planes(OTHERS, rig=tuned, progress=end, **common)
        measured += map(_measured, (*own.rows, *printed.rows, *others.rows))
    return measured


def parameters(context: Context) -> list[dict[str, Any]]:
    """What decides the figures of both series, for all that `measure` runs on them."""
    bare, tuned = Rig.paper_prototype(), twin_for(context).rig
    return [
        {**sweep_parameters(sweep, rig, contenders), "thresholds": thresholds}
        for sweep in sweeps(context)
        for rig, contenders, thresholds in (
            (tuned, (TUNED,), THRESHOLDS),
            (bare, (PRINTED,), (ACCURACY_THRESHOLD,)),
            (tuned, OTHERS, ()),
        )
    ]


def _measured(row: Row) -> Measured:
    """Columns of a row of planes, which has no threshold, or of thresholds."""
    return Measured(
        row["method"],
        row.get("threshold"),
        row["texture"],
        row["depth_m"],
        row["pixels"],
        row["retained"],
        row["mae_m"],
        row["median_m"],
        row["density"],
    )


def lines_of(measured: Sequence[Measured]) -> list[Line]:
    """One for each method and threshold, in the order in which they first come."""
    keys = dict.fromkeys((one.method, one.threshold) for one in measured)
    return [_line([one for one in measured if (one.method, one.threshold) == key]) for key in keys]


def _line(rows: Sequence[Measured]) -> Line:
    depths_m = sorted({one.depth_m for one in rows})
    at = [[one for one in rows if one.depth_m == depth_m] for depth_m in depths_m]
    return Line(
        rows[0].method,
        rows[0].threshold,
        np.array(depths_m),
        np.array([finite_mean(one.mae_m for one in planes) for planes in at]),
        np.array([worst(map(_answered_mae_m, planes)) for planes in at]),
        np.array([finite_mean(ratio(one.retained, one.pixels) for one in planes) for planes in at]),
    )


def _answered_mae_m(one: Measured) -> float:
    """Its error to find the worst by; a plane without textured pixels has no density."""
    holds_depth = bool(np.isfinite(one.density))
    return penalised_mae_m(one.mae_m, one.retained, is_textured=holds_depth)
