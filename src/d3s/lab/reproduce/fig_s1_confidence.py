"""Fig. S1: confidence over the candidates of one pixel, with and without inverse depth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.tuning import CONSENSUS, shifts_px
from d3s.estimate.consensus.plan import candidates_m
from d3s.lab.evaluate.cameras import TunedTwin, plane_views
from d3s.lab.evaluate.sweep import REPORT_PATTERNS
from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Table
from d3s.lab.reproduce.predictions import window_predictions
from d3s.lab.reproduce.protocol import twin_for
from d3s.lab.view.reproduction_consensus import plot_confidence
from d3s.optics.consensus import confidence, depth_only_confidence
from d3s.types import FloatArray

DEPTHS_M = (0.8, 1.1, 1.4, 1.7)
QUICK_DEPTHS_M = (1.1, 1.7)
_SHAPE = (260, 520)
_WINDOWS = 60
_RIGHT_SHARE = 0.05  # largest relative error of a correct depth
_NEAR_SHARE = 0.6  # of the true depth: a nearer one is the failure that the figure shows


class Pixel(NamedTuple):
    """One window: texture, true depth, and both confidences over the candidates."""

    pattern: str
    true_m: float
    both: FloatArray
    depth_only: FloatArray


class SearchedWindows(NamedTuple):
    """Windows of many planes, with their confidences over the candidates."""

    candidates_m: FloatArray
    pixels: list[Pixel]

    def error_shares(self, kind: str) -> FloatArray:
        """Relative error of the depth of highest confidence, for every window."""
        return np.array(
            [
                self.candidates_m[getattr(one, kind).argmax()] / one.true_m - 1.0
                for one in self.pixels
            ]
        )


def make_zici(context: Context) -> Result:
    """Make the item: a pixel where depth alone fails, the first in a fixed order of planes."""
    depths_m = QUICK_DEPTHS_M if context.quick else DEPTHS_M
    return zici_of(search_windows(twin_for(context), depths_m, REPORT_PATTERNS, context.seed))


def search_windows(
    twin: TunedTwin, depths_m: tuple[float, ...], patterns: tuple[str, ...], seed: int
) -> SearchedWindows:
    """Compute both confidences in windows of planes, with the virtual baselines of the twin."""
    candidates = candidates_m(twin.rig, CONSENSUS)
    baselines_m = np.array(twin.baselines.chosen.virtual_baselines_m)
    shifts = shifts_px(candidates, baselines_m, twin.rig.optics)
    ends_px = float(shifts.min()), float(shifts.max())
    pixels = []
    for i, pattern in enumerate(patterns):
        for j, depth_m in enumerate(depths_m):
            views = plane_views(twin.rig, depth_m, pattern, seed=(seed, 2, i, j), shape=_SHAPE)
            in_windows = window_predictions(twin, views, ends_px, _WINDOWS)
            predicted = in_windows.predicted_m(candidates, baselines_m)
            for number in range(in_windows.windows.rows.size):
                each = predicted[..., number].T
                both, alone = confidence(candidates, each), depth_only_confidence(candidates, each)
                pixels.append(Pixel(pattern, depth_m, both, alone))
    return SearchedWindows(candidates, pixels)


def zici_of(found: SearchedWindows) -> Result:
    """Make the figure of the first window that fails, and count the windows like it."""
    both, alone = found.error_shares("both"), found.error_shares("depth_only")
    telling = np.flatnonzero(_is_right(both) & _is_far_too_near(alone))
    # Without any such window: the one where depth alone gives the nearest depth.
    number = int(telling[0]) if telling.size else int(alone.argmin())
    pixel = found.pixels[number]
    chosen = (
        "the first where depth alone picks a candidate that is far too near"
        if telling.size
        else "of which depth alone picks none far too near while both terms are right; the one "
        "that it draws nearest"
    )
    caption = (
        f"Simulated: a pixel of a plane of {pixel.pattern} at {pixel.true_m:g} m, with 1 % noise; "
        f"number {number + 1} of {len(found.pixels)} windows, {chosen}."
    )
    figure = plot_confidence(found.candidates_m, pixel.both, pixel.depth_only, pixel.true_m)
    return Result(
        pictures=[Picture(name="zici", figure=figure, caption=caption)],
        tables=[Table(name="zici", rows=_rows(found, pixel))],
        comparisons=[_pixel(found, pixel), _all(both, alone)],
    )


def _is_right(error_shares: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.abs(error_shares) < _RIGHT_SHARE)


def _is_far_too_near(error_shares: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(error_shares < _NEAR_SHARE - 1.0)


def _rows(found: SearchedWindows, pixel: Pixel) -> list[dict[str, Cell]]:
    return [
        {"candidate_m": float(z), "confidence": float(c), "depth_only_confidence": float(d)}
        for z, c, d in zip(found.candidates_m, pixel.both, pixel.depth_only, strict=True)
    ]


def _pixel(found: SearchedWindows, pixel: Pixel) -> Comparison:
    picked, alone = (found.candidates_m[one.argmax()] for one in (pixel.both, pixel.depth_only))
    return Comparison(
        what=f"picked depth where the truth is {pixel.true_m:.2f} m",
        paper="right with both terms; far too near with depth alone",
        ours=f"{picked:.2f} m with both terms; {alone:.2f} m with depth alone",
        why="The paper's pixel is of a real scene; ours was looked for among simulated ones.",
        agrees=bool(
            abs(picked / pixel.true_m - 1) < _RIGHT_SHARE and alone / pixel.true_m < _NEAR_SHARE
        ),
    )


def _all(both: FloatArray, alone: FloatArray) -> Comparison:
    right, right_alone = (float(_is_right(one).mean()) for one in (both, alone))
    near, near_alone = (float(_is_far_too_near(one).mean()) for one in (both, alone))
    return Comparison(
        what=f"how often, of {both.size} windows",
        paper="sometimes",
        ours=f"depth alone is right (within {100 * _RIGHT_SHARE:g} %) in {100 * right_alone:.1f} % "
        f"and far too near in {100 * near_alone:.1f} %; both terms in {100 * right:.1f} % and "
        f"{100 * near:.1f} %",
        why="Planes of the twin, every threshold left out.",
        agrees=right > right_alone,
    )


ITEM = Item(
    name="zici",
    title="Confidence over candidates at one pixel",
    reference="Fig. S1",
    places=("figs1",),
    what=(
        "The confidence asks whether predictions agree with the candidate. In depth alone a near "
        "candidate agrees too easily, since all depths are small there; in inverse depth as well "
        "it does not. Both have a peak at the truth, and only one of them has its highest there."
    ),
    needs="seconds",
    run=make_zici,
)
