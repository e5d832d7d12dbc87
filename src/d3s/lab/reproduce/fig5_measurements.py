"""Measurements of Fig. 5: every method on the planes of the paper's protocol."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from d3s.calibrate.validation import ACCURATE_M, working_range_m
from d3s.lab.evaluate import PlaneSweep, evaluate_planes
from d3s.lab.evaluate.cameras import FAR_M, NEAR_M, NOISE, QUICK_FAR_M, QUICK_NEAR_M
from d3s.lab.evaluate.evaluation import sweep_parameters
from d3s.lab.evaluate.metrics import finite_mean, ratio
from d3s.lab.evaluate.table import Row, SweepTable, worst_error_m
from d3s.lab.evaluate.thresholds import evaluate_thresholds
from d3s.lab.reproduce.item import Context
from d3s.lab.reproduce.protocol import (
    ACCURACY_THRESHOLD,
    OTHERS,
    PRINTED,
    TUNED,
    consecutive,
    twin_for,
)
from d3s.rig import Rig
from d3s.types import FloatArray

TEXTURES = ("brick", "grass", "carpet", "bark")
"""Textures in place of the paper's four from CUReT, which has such materials too."""
THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)
_SHAPE, _QUICK_SHAPE = (300, 640), (200, 400)
QUICK_TEXTURES = TEXTURES[:2]
"""Textures of a quick run."""

COLUMNS = (
    *("method", "threshold", "texture", "depth_m", "pixels", "retained", "mae_m", "median_m"),
    "density",  # share of the textured pixels that are retained
)
"""Columns of a measurement."""


class Line(NamedTuple):
    """One method at one threshold over all depths; means over the planes of a depth."""

    method: str
    threshold: float | None
    depth_m: FloatArray
    mae_m: FloatArray  # NaN where no plane has any depth
    worst_mae_m: FloatArray  # infinite where a textured plane has no depth; NaN without any texture
    share: FloatArray  # share of the pixels that have a depth

    @property
    def range_m(self) -> tuple[float, float] | None:
        """Depths at which the mean absolute error is below 1 cm: the paper's working range."""
        return working_range_m(self.depth_m.tolist(), (self.mae_m < ACCURATE_M).tolist())

    @property
    def strict_range_m(self) -> tuple[float, float] | None:
        """Depths at which the mean absolute error is below 1 cm on every texture."""
        return working_range_m(self.depth_m.tolist(), (self.worst_mae_m < ACCURATE_M).tolist())

    def over(self, ends_m: tuple[float, float] | None) -> tuple[float, float]:
        """Mean error and share of pixels between two depths; NaN if there are none.

        A depth without any pixel has no error, but counts in the share.
        """
        near_m, far_m = ends_m or (np.inf, -np.inf)
        inside = (self.depth_m >= near_m) & (self.depth_m <= far_m)
        return finite_mean(self.mae_m[inside]), finite_mean(self.share[inside])

    def largest_m(self, ends_m: tuple[float, float]) -> float:
        """Largest mean error between two depths; infinite if one depth has no pixel."""
        inside = (self.depth_m >= ends_m[0]) & (self.depth_m <= ends_m[1])
        return float(np.nan_to_num(self.mae_m[inside], nan=np.inf).max(initial=0.0))


def sweeps(context: Context) -> tuple[PlaneSweep, PlaneSweep]:
    """Sweeps over the near and the far series of the paper."""
    near_m, far_m = (QUICK_NEAR_M, QUICK_FAR_M) if context.quick else (NEAR_M, FAR_M)
    near = PlaneSweep(
        depths_m=near_m,
        patterns=QUICK_TEXTURES if context.quick else TEXTURES,
        shape=_QUICK_SHAPE if context.quick else _SHAPE,
        noise=NOISE,
        seed=context.seed,
    )
    return near, near.replace(depths_m=far_m)


def measure(context: Context) -> SweepTable:
    """Errors of every method on every plane of both series; no threshold is the default filter."""
    bare, tuned = Rig.paper_prototype(), twin_for(context).rig
    both = sweeps(context)
    parts = consecutive(context.progress, 3 * [len(one.places) for one in both])
    rows: list[Row] = []
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
        rows += (*own.rows, *printed.rows, *others.rows)
    return SweepTable({name: row.get(name) for name in COLUMNS} for row in rows)


def parameters(context: Context) -> list[dict[str, Any]]:
    """Parameters of all sweeps that `measure` runs."""
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


def lines_of(measured: SweepTable) -> list[Line]:
    """Return a line for each method and threshold, in order of first appearance."""
    return [_line(rows) for rows in measured.groups("method", "threshold")]


def by_range(lines: Sequence[Line]) -> list[Line]:
    """Lines sorted by range, the longest first; ties by the least error."""
    return sorted(lines, key=lambda one: (-length_m(one.range_m), one.over(one.range_m)[0]))


def length_m(range_m: tuple[float, float] | None) -> float:
    """Length of a working range in metres; -1 if there is none."""
    return range_m[1] - range_m[0] if range_m else -1.0


def ends_text(range_m: tuple[float, float] | None) -> str:
    """Ends of a working range, as text."""
    return f"{range_m[0]:.2f} to {range_m[1]:.2f} m" if range_m else "no range"


def _line(rows: SweepTable) -> Line:
    at = rows.by_depth()
    return Line(
        rows[0]["method"],
        rows[0]["threshold"],
        np.array([planes[0]["depth_m"] for planes in at]),
        np.array([finite_mean(planes.column("mae_m")) for planes in at]),
        np.array([worst_error_m(planes) for planes in at]),
        np.array([finite_mean(map(_share, planes)) for planes in at]),
    )


def _share(row: Row) -> float:
    return ratio(row["retained"], row["pixels"])
