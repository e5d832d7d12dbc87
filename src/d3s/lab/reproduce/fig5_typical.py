"""Fig. 5c with typical lenses: accuracy over depth of a camera that was calibrated."""

from collections.abc import Mapping, Sequence

from d3s.lab.evaluate import PlaneSweep, evaluate_planes
from d3s.lab.evaluate.cameras import NOISE, Lens, tuned_rig, typical_rig
from d3s.lab.evaluate.evaluation import consecutive, sweep_parameters
from d3s.lab.evaluate.planes import evaluate_thresholds
from d3s.lab.evaluate.table import Row, SweepTable
from d3s.lab.reproduce.fig5_accuracy import (
    COLUMNS,
    PAPER_RIVALS,
    QUICK_TEXTURES,
    AccuracyCurve,
    by_range,
    curves_of,
    depth_rows,
    ends_text,
    is_behind,
    line_of,
    lines_of,
    range_comparison,
    reaches_of,
    rival_comparison,
)
from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Table
from d3s.lab.reproduce.protocol import ACCURACY_THRESHOLD, OTHERS, PRINTED_RANGE_M, TUNED
from d3s.lab.twin.sequence import even_distances_m
from d3s.lab.view.reproduction_accuracy import plot_methods
from d3s.rig import Rig

_TEXTURES = ("brick", "carpet", "bark")
"""Three of the textures of Fig. 5: a frame of this camera takes longer."""
_LENSES: tuple[Lens, ...] = ("perfect", "typical")
_FAR_M = (0.9, PRINTED_RANGE_M[1])
"""Far part of the paper's range, where stereo with this baseline is hard."""
_WHY = (
    "The prototype with CUReT textures against a simulated camera with other lenses, in the middle "
    "of its field, and ours"
)


def make_typical(context: Context) -> Result:
    """Make the item: the same planes with perfect and with typical lenses."""
    measured = {lens: _measure(context, lens) for lens in _LENSES}
    lines = {lens: lines_of(rows) for lens, rows in measured.items()}
    typical = lines["typical"]
    own, *rivals = (line_of(typical, name) for name in (TUNED.name, *PAPER_RIVALS))
    how = "with typical lenses"
    beside = f", the consensus {100 * own.over(PRINTED_RANGE_M)[0]:.2f} cm"
    rows: list[dict[str, Cell]] = [
        {"lens": lens, **row} for lens in _LENSES for one in lines[lens] for row in depth_rows(one)
    ]
    return Result(
        pictures=[
            Picture(
                name="methods_typical",
                figure=plot_methods(curves_of(typical), reaches_of(typical)),
                caption=_caption(context),
            )
        ],
        tables=[
            Table(name="accuracy_by_depth_typical", rows=rows),
            Table(
                name="lenses",
                rows=_lens_rows(lines),
                caption="The same planes with perfect and with typical lenses: working range, and "
                f"mean error over {ends_text(PRINTED_RANGE_M)} and over {ends_text(_FAR_M)}.",
                shown=True,
            ),
        ],
        comparisons=[
            range_comparison(own, f"{_WHY}, calibrated on boards of another texture.", f" {how}"),
            *(rival_comparison(one, own, how, f"{_WHY}.", beside) for one in rivals),
            _order_comparison(typical),
        ],
        remarks=_remarks(lines),
        sweeps=[
            sweep_parameters(_sweep(context, lens), _rig(lens), (TUNED, *OTHERS))
            for lens in _LENSES
        ],
    )


def _sweep(context: Context, lens: Lens) -> PlaneSweep:
    return PlaneSweep(
        depths_m=even_distances_m(0.25, 1.97, 5 if context.quick else 12),
        patterns=QUICK_TEXTURES if context.quick else _TEXTURES,
        shape=(150, 360),
        noise=NOISE,
        seed=context.seed,
        lens=lens,
        photos=context.photos,
    )


def _rig(lens: Lens) -> Rig:
    return typical_rig() if lens == "typical" else tuned_rig()


def _measure(context: Context, lens: Lens) -> SweepTable:
    """Errors of every method on every plane; the consensus at the paper's threshold."""
    sweep, number = _sweep(context, lens), _LENSES.index(lens)
    parts = consecutive(context.progress, 4 * [len(sweep.places)])
    rig, (begin, end) = _rig(lens), map(context.run, parts[2 * number : 2 * number + 2])
    own = evaluate_thresholds(TUNED, (ACCURACY_THRESHOLD,), sweep=sweep, rig=rig, **begin)
    others = evaluate_planes(OTHERS, sweep=sweep, rig=rig, **end)
    rows: list[Row] = [*own.rows, *others.rows]
    return SweepTable({name: row.get(name) for name in COLUMNS} for row in rows)


def _lens_rows(lines: Mapping[Lens, Sequence[AccuracyCurve]]) -> list[dict[str, Cell]]:
    """Rows of all methods, the longest range with typical lenses first."""
    rows = []
    for one in by_range(lines["typical"]):
        cells: dict[str, Cell] = {"method": one.method}
        for lens in _LENSES:
            line = line_of(lines[lens], one.method)
            cells[f"{lens}_range"] = ends_text(line.range_m)
            cells[f"{lens}_mae_cm"] = 100 * line.over(PRINTED_RANGE_M)[0]
            cells[f"{lens}_far_mae_cm"] = 100 * line.over(_FAR_M)[0]
            cells[f"{lens}_share"] = line.over(PRINTED_RANGE_M)[1]
        rows.append(cells)
    return rows


def _caption(context: Context) -> str:
    sweep = _sweep(context, "typical")
    rows, cols = sweep.shape
    return (
        f"Simulated with typical lenses and calibrated: {len(sweep.textures)} textures "
        f"({', '.join(sweep.textures)}) at {len(sweep.depths_m)} depths from "
        f"{sweep.depths_m[0]:g} to {sweep.depths_m[-1]:g} m, the middle {rows} x {cols} px of the "
        f"field, {sweep.noise:.0%} noise. Mean absolute error over the pixels that a method gives "
        f"a depth for, the consensus at C > {ACCURACY_THRESHOLD:g}, all others with their own "
        "defaults. Right: the longest interval with a mean error below 1 cm, and the share of the "
        "pixels that have a depth in it."
    )


def _order_comparison(lines: Sequence[AccuracyCurve]) -> Comparison:
    consensus = line_of(lines, TUNED.name)
    own_m = consensus.over(_FAR_M)[0]
    ratios = {name: line_of(lines, name).over(_FAR_M)[0] / own_m for name in PAPER_RIVALS}
    text = ", ".join(f"{name} {ratio:.2g}" for name, ratio in ratios.items())
    return Comparison(
        what=f"error of the paper's rivals over that of the consensus, {ends_text(_FAR_M)}, with "
        "typical lenses",
        paper="above 1 for all of them",
        ours=f"{text}; the consensus has {100 * own_m:.2f} cm",
        why=f"{_WHY}. A rival without any depth there has no ratio, and is behind.",
        agrees=not any(ratio <= 1 for ratio in ratios.values()),
    )


def _remarks(lines: Mapping[Lens, Sequence[AccuracyCurve]]) -> list[str]:
    consensus = line_of(lines["typical"], TUNED.name)
    ahead = [
        name for name in PAPER_RIVALS if not is_behind(line_of(lines["typical"], name), consensus)
    ]
    verdict = (
        "The paper's order of methods comes back: the consensus is ahead of all four of its rivals."
        if not ahead
        else "The paper's order of methods does not come back: "
        f"{', '.join(ahead)} {'is' if len(ahead) == 1 else 'are'} not behind the consensus."
    )
    order = {
        lens: ", ".join(
            f"{one.method} {100 * one.over(PRINTED_RANGE_M)[0]:.2f} cm"
            for one in sorted(lines[lens], key=lambda one: one.over(PRINTED_RANGE_M)[0])
        )
        for lens in _LENSES
    }
    return [
        verdict,
        f"Mean error over {ends_text(PRINTED_RANGE_M)}, the least first. Typical lenses: "
        f"{order['typical']}. Perfect lenses: {order['perfect']}.",
    ]


ITEM = Item(
    name="accuracy_typical",
    title="Accuracy on planes, with typical lenses",
    reference="Fig. 5c, typical lenses",
    places=("fig5", "fig5a", "fig5b", "fig5c"),
    what=(
        "Textured planes before a simulated camera with typical lenses: raw frames are split and "
        "rectified by the rig that `d3s calibrate` found from simulated boards, and every method "
        "gets that rig. The same planes with perfect lenses stand beside."
    ),
    needs="minutes",
    run=make_typical,
    lens="typical",
)
