"""Fig. 1b: working range against the size of the camera."""

from collections.abc import Mapping, Sequence

from d3s.lab.reproduce.fig6_systems import COMPARED_SYSTEMS, OWN, System
from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Rows, Table
from d3s.lab.reproduce.protocol import ACCURACY_THRESHOLD, PRINTED_RANGE_M, holds_printed_range
from d3s.lab.view.methods import styles_of
from d3s.lab.view.reproduction import OTHERS, PROTOTYPE, Range, plot_working_ranges
from d3s.rig import Rig

COMMERCIAL_BASELINE_M = 0.05
_SHOWN = ("joint", "consensus")


def make_teaser(context: Context) -> Result:
    """Make the item: ranges of the paper, of methods on the twin if measured, and of others."""
    tables = context.tables_of("accuracy")
    return teaser_of(() if tables is None else measured_ranges(tables))


def measured_ranges(tables: Mapping[str, Rows]) -> list[tuple[str, float, float]]:
    """Method, nearest and farthest depth of the working ranges in the tables of Fig. 5."""
    found = {
        str(row["method"]): (float(row["nearest_m"] or 0.0), float(row["farthest_m"]))
        for row in tables["working_ranges"]
        if row["threshold"] in (None, ACCURACY_THRESHOLD) and row["farthest_m"] is not None
    }
    return [(name, *ends) for name, ends in found.items() if name.startswith(_SHOWN)]


def teaser_of(measured: Sequence[tuple[str, float, float]]) -> Result:
    """Make the figure and its rows from working ranges: method, nearest and farthest depth."""
    size_mm = 1e3 * _size_m(OWN)
    ranges = [Range("paper: prototype", size_mm, *PRINTED_RANGE_M, PROTOTYPE)]
    styles = styles_of(method for method, *_ in measured)
    ranges += [
        Range(name, size_mm, near_m, far_m, styles[name].colour) for name, near_m, far_m in measured
    ]
    ranges += [
        Range(one.name, 1e3 * _size_m(one), 0.0, float(one.printed_farthest_m), OTHERS, True)
        for one in COMPARED_SYSTEMS
        if one is not OWN and one.printed_farthest_m is not None
    ]
    caption = (
        "Black: the paper's prototype, measured by its authors. Coloured: methods on the same "
        f"images of its simulated twin. These are of one camera, {size_mm:.1f} mm large, and stand "
        "side by side. Grey: farthest depths of research systems as the paper has them. The "
        "paper's own figure shows commercial cameras instead, whose ranges its text does not give."
    )
    figure = plot_working_ranges(ranges, 1e3 * COMMERCIAL_BASELINE_M)
    return Result(
        pictures=[Picture(name="teaser", figure=figure, caption=caption)],
        tables=[Table(name="teaser", rows=[_row(one) for one in ranges])],
        comparisons=[_size(), *(_range(*one) for one in measured)],
        remarks=[]
        if measured
        else ["No working range was measured here yet: d3s reproduce accuracy, then teaser again."],
    )


def _size_m(system: System) -> float:
    """Significant dimension as the paper defines it: the larger of baseline and focal length."""
    return max(system.baseline_m, system.focal_length_m)


def _row(one: Range) -> dict[str, Cell]:
    return {
        "name": one.name,
        "size_mm": one.size_mm,
        "nearest_m": None if one.is_open else one.nearest_m,
        "farthest_m": one.farthest_m,
    }


def _size() -> Comparison:
    optics = Rig.paper_prototype().optics
    size_mm = 1e3 * max(optics.baseline_m, optics.sensor_distance_m)
    return Comparison(
        what="size of the camera, against the shortest of commercial baselines",
        paper="12 mm against 5 cm or more",
        ours=f"{size_mm:.1f} mm: {1e3 * COMMERCIAL_BASELINE_M / size_mm:.1f} times smaller",
        same_conditions=True,
        why="The printed optics; the larger of baseline and focal length counts.",
        agrees=round(size_mm) == 12,
    )


def _range(method: str, nearest_m: float, farthest_m: float) -> Comparison:
    is_theirs = method.startswith("consensus")
    return Comparison(
        what=f"working range of {method}" + ": at least as long as printed?" * is_theirs,
        paper=f"{PRINTED_RANGE_M[0]:g} to {PRINTED_RANGE_M[1]:g} m, of the consensus",
        ours=f"{nearest_m:.2f} to {farthest_m:.2f} m",
        why="The paper's is of the real prototype and four photographed textures; ours of its "
        "simulated twin and textures of our own, with 1 % noise.",
        agrees=holds_printed_range(nearest_m, farthest_m) if is_theirs else None,
    )


ITEM = Item(
    name="teaser",
    title="Working range against size",
    reference="Fig. 1b",
    places=("fig1b", "fig1"),
    what=(
        "A working range is the longest stretch of depth with a mean error below 1 cm; the size of "
        "a camera is the larger of its baseline and its focal length. The point is the distance to "
        "the left of everything else at a comparable height."
    ),
    needs="seconds",
    run=make_teaser,
    uses=("accuracy",),
)
