"""Fig. 6 and Table S2: working range against size of the systems that the paper compares.

The table is here as data, with a check of each row. The farthest depth of a system is the depth at
which its mean depth error reaches `TABLE_DEPTH_ERROR_M`. The authors converted all but the last row
from errors published by others. The two columns of results are kept as printed, with their
decimals, so that rounding can be told from a contradiction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Table
from d3s.lab.view.methods import PAPER
from d3s.lab.view.reproduction import OTHERS, Point, Side, plot_systems
from d3s.optics import stereo

TABLE_DEPTH_ERROR_M = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One row of the comparison."""

    name: str
    baseline_m: float
    focal_length_m: float  # effective focal length, or the sensor distance s0
    pixel_pitch_m: float
    printed_farthest_m: Decimal | None  # with a mean error below 1 cm; None if there is none
    printed_disparity_error_px: Decimal | None  # at that depth

    @property
    def focal_length_px(self) -> float:
        """Focal length in pixels, as `d3s.optics.stereo` takes it."""
        return self.focal_length_m / self.pixel_pitch_m


def disparity_error_at_farthest_px(system: System) -> float | None:
    """Disparity error, in pixels, at the printed farthest depth, if there is one: paper Eq. 18."""
    farthest_m = system.printed_farthest_m
    return None if farthest_m is None else _disparity_error_px(system, farthest_m)


def farthest_depth_m(system: System) -> float | None:
    """Farthest depth, in metres, by the printed disparity error, if there is one."""
    if system.printed_disparity_error_px is None:
        return None
    farthest = stereo.farthest_depth_m(
        TABLE_DEPTH_ERROR_M,
        float(system.printed_disparity_error_px),
        focal_length_px=system.focal_length_px,
        baseline_m=system.baseline_m,
    )
    return float(farthest)


def printed_values_agree(system: System) -> bool:
    """Whether the two printed results of a row can both be right, within rounding.

    Each stands for an interval of half a unit of its last decimal to either side. They agree if any
    depth and any disparity error in these intervals satisfy Eq. 18; the other columns are taken as
    exact. A row without results agrees.
    """
    if system.printed_farthest_m is None or system.printed_disparity_error_px is None:
        return True
    nearest, farthest = _before_rounding(system.printed_farthest_m)
    lowest, highest = _before_rounding(system.printed_disparity_error_px)
    # Farther away, the same depth error is a smaller disparity error.
    least_px = _disparity_error_px(system, farthest)
    most_px = _disparity_error_px(system, nearest)
    return least_px <= highest and lowest <= most_px


def _disparity_error_px(system: System, depth_m: Decimal) -> float:
    error_px = stereo.disparity_error_px(
        TABLE_DEPTH_ERROR_M,
        float(depth_m),
        focal_length_px=system.focal_length_px,
        baseline_m=system.baseline_m,
    )
    return float(error_px)


def _before_rounding(printed: Decimal) -> tuple[Decimal, Decimal]:
    """Least and largest number that rounds to the printed one."""
    half_a_unit = Decimal("0.5").scaleb(int(printed.as_tuple().exponent))
    return printed - half_a_unit, printed + half_a_unit


# Columns as printed: name, baseline (mm), focal length (mm), pixel (µm), farthest depth (m) and
# disparity error (px).
_TABLE = """
Takeda et al. 2012      | 14.0| 30.0| 6.11| 0.37| 5.08
Takeda et al. 2013      | 14.0| 51.3| 6.11| 1.47| 0.54
Tang et al. 2017        | 1.72| 4.12| 1.55| 0.36| 0.36
Tan et al. 2021         | 22.0| 52.6| 4.80|     |
Lopez et al. 2024       | 120 | 100 | 3.72| 5.83| 0.95
Liu et al. 2025         | 75.0| 35.0| 5.86| 1.92| 1.21
Ou et al. 2025          | 70.0| 35.9| 5.86| 1.78| 1.35
D3S prototype, simulated| 3.84| 12.1| 2.00| 1.56| 0.11
"""


def _system(row: str) -> System:
    name, baseline, focal, pixel, farthest, error = map(str.strip, row.split("|"))
    return System(
        name=name,
        baseline_m=float(f"{baseline}e-3"),  # rounded once, unlike 1e-3 * float
        focal_length_m=float(f"{focal}e-3"),
        pixel_pitch_m=float(f"{pixel}e-6"),
        printed_farthest_m=Decimal(farthest) if farthest else None,
        printed_disparity_error_px=Decimal(error) if error else None,
    )


COMPARED_SYSTEMS = tuple(map(_system, _TABLE.strip().splitlines()))
"""All rows of the table."""

OWN = COMPARED_SYSTEMS[-1]
"""The paper's own row: the prototype, simulated."""


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
            disparity_error_at_farthest_px(one) or 0.0,
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
        "farthest_m_computed": farthest_depth_m(system),
        "error_px_printed": None if printed[1] is None else float(printed[1]),
        "error_px_computed": disparity_error_at_farthest_px(system),
        "follows": printed_values_agree(system) if printed[0] else None,
    }


def _others() -> Comparison:
    rows = [one for one in COMPARED_SYSTEMS if one is not OWN and one.printed_farthest_m]
    follow = [one for one in rows if printed_values_agree(one)]
    return Comparison(
        what="rows of others whose disparity error follows from the rest of the row",
        paper=f"all {len(rows)}",
        ours=f"{len(follow)} of {len(rows)}, within rounding",
        same_conditions=True,
        why="Eq. 18 with the numbers of the same table.",
        agrees=len(follow) == len(rows),
    )


def _own() -> Comparison:
    computed_px = disparity_error_at_farthest_px(OWN)
    reach_m = farthest_depth_m(OWN)
    return Comparison(
        what=f"disparity error of the paper's own system at {OWN.printed_farthest_m} m",
        paper=f"{OWN.printed_disparity_error_px} px",
        ours=f"{computed_px:.4f} px",
        same_conditions=True,
        why="Eq. 18 with the numbers of the same row. No rounding makes them agree; with the "
        f"printed error the farthest depth would be {reach_m:.2f} m. See the errata, E7.",
        agrees=printed_values_agree(OWN),
    )


def _baselines() -> Comparison:
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
