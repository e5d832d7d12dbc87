"""Fig. 6 and Table S2: working range against size of the systems that the paper compares."""

from collections.abc import Mapping

from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Table
from d3s.lab.reproduce.tab_s2_systems import (
    COMPARED_SYSTEMS,
    OWN,
    TABLE_DEPTH_ERROR_M,
    System,
    disparity_error_at_farthest_px,
    farthest_depth_m,
    printed_values_agree,
)
from d3s.lab.view.methods import PAPER
from d3s.lab.view.reproduction import OTHERS, Point, Side, plot_systems

# Side of a point on which its label has room.
_SIDES_OF_BASELINE: dict[str, Side] = {
    "Takeda et al. 2013": "se",
    "Lopez et al. 2024": "nw",
    "Liu et al. 2025": "nw",
    "Ou et al. 2025": "sw",
}
_SIDES_OF_FOCAL_LENGTH: dict[str, Side] = {
    "Takeda et al. 2012": "sw",
    "Takeda et al. 2013": "sw",
    "Lopez et al. 2024": "nw",
    "Liu et al. 2025": "nw",
    "D3S prototype, simulated": "nw",
}


def make_systems(context: Context) -> Result:
    """Make the item: the table, its last column computed from the others, and charts."""
    rows = [_row(system) for system in COMPARED_SYSTEMS]
    with_range = [one for one in COMPARED_SYSTEMS if one.printed_farthest_m is not None]
    errors_px = {
        one.name: (
            float(one.printed_disparity_error_px or 0),
            disparity_error_at_farthest_px(one, TABLE_DEPTH_ERROR_M) or 0.0,
        )
        for one in with_range
    }
    figure = plot_systems(
        [_point(one, one.baseline_m, _SIDES_OF_BASELINE) for one in with_range],
        [_point(one, one.focal_length_m, _SIDES_OF_FOCAL_LENGTH) for one in with_range],
        errors_px,
    )
    caption = (
        "Left and middle: farthest depth with a mean error below 1 cm, as printed. Right: the "
        "disparity error that this means, as printed and as Eq. 18 gives it. Not measured here."
    )
    return Result(
        pictures=[Picture(name="systems", figure=figure, caption=caption)],
        tables=[Table(name="systems", rows=rows, shown=True)],
        comparisons=[_others(), _own(), _baselines()],
    )


def _point(system: System, size_m: float, sides: Mapping[str, Side]) -> Point:
    is_own = system is OWN
    return Point(
        "D3S" if is_own else system.name.replace(" et al.", ""),
        1e3 * size_m,
        float(system.printed_farthest_m or 0),
        PAPER if is_own else OTHERS,
        "*" if is_own else "o",
        sides.get(system.name, "ne"),
    )


def _row(system: System) -> dict[str, Cell]:
    printed = system.printed_farthest_m, system.printed_disparity_error_px
    return {
        "system": system.name,
        "baseline_mm": round(1e3 * system.baseline_m, 6),
        "focal_length_mm": round(1e3 * system.focal_length_m, 6),
        "pixel_um": round(1e6 * system.pixel_pitch_m, 6),
        "farthest_m_printed": None if printed[0] is None else float(printed[0]),
        "farthest_m_computed": farthest_depth_m(system, TABLE_DEPTH_ERROR_M),
        "error_px_printed": None if printed[1] is None else float(printed[1]),
        "error_px_computed": disparity_error_at_farthest_px(system, TABLE_DEPTH_ERROR_M),
        "follows": printed_values_agree(system, TABLE_DEPTH_ERROR_M) if printed[0] else None,
    }


def _others() -> Comparison:
    """Compare the two result columns of the systems of others."""
    rows = [one for one in COMPARED_SYSTEMS if one is not OWN and one.printed_farthest_m]
    follow = [one for one in rows if printed_values_agree(one, TABLE_DEPTH_ERROR_M)]
    return Comparison(
        what="rows of others whose disparity error follows from the rest of the row",
        paper=f"all {len(rows)}",
        ours=f"{len(follow)} of {len(rows)}, within rounding",
        same_conditions=True,
        why="Eq. 18 with the numbers of the same table.",
        agrees=len(follow) == len(rows),
    )


def _own() -> Comparison:
    computed_px = disparity_error_at_farthest_px(OWN, TABLE_DEPTH_ERROR_M)
    reach_m = farthest_depth_m(OWN, TABLE_DEPTH_ERROR_M)
    return Comparison(
        what=f"disparity error of the paper's own system at {OWN.printed_farthest_m} m",
        paper=f"{OWN.printed_disparity_error_px} px",
        ours=f"{computed_px:.4f} px",
        same_conditions=True,
        why="Eq. 18 with the numbers of the same row. No rounding makes them agree; with the "
        f"printed error the farthest depth would be {reach_m:.2f} m. See the errata, E7.",
        agrees=printed_values_agree(OWN, TABLE_DEPTH_ERROR_M),
    )


def _baselines() -> Comparison:
    """Compare the baselines of systems with as long a range."""
    reach_m = OWN.printed_farthest_m or 0
    ratios = {
        one.name: one.baseline_m / OWN.baseline_m
        for one in COMPARED_SYSTEMS
        if one is not OWN and one.printed_farthest_m and one.printed_farthest_m >= reach_m
    }
    text = ", ".join(f"{ratio:.0f} times ({name})" for name, ratio in ratios.items())
    return Comparison(
        what=f"baseline of systems that reach {reach_m} m or more",
        paper="10 times as long",
        ours=text,
        same_conditions=True,
        why="From the same table. Takeda et al. 2013 reach 1.47 m, nearly as far, with 3.6 times "
        "the baseline and 4.2 times the focal length.",
        agrees=min(ratios.values()) >= 10,
    )


ITEM = Item(
    name="systems",
    title="Working range against size, of other systems",
    reference="Fig. 6, Table S2",
    places=("fig6", "tables2", "tabs2"),
    what=(
        "The paper converts the disparity errors of others to the depth at which they make 1 cm. "
        "Each row of its table holds the same thing twice, so that it can be checked: all rows "
        "follow within rounding but the paper's own, whose error is smaller than printed."
    ),
    needs="seconds",
    run=make_systems,
    has_quick=False,
)
