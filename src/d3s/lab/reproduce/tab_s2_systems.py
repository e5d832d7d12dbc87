"""Table S2 of the paper as data: published stereo and defocus systems, and a check of each row.

The farthest depth of a system is the depth at which its mean depth error reaches
`TABLE_DEPTH_ERROR_M`. The authors converted all but the last row from errors published by others.
The two columns of results are kept as printed, with their decimals, so that rounding can be told
from a contradiction.
"""

from dataclasses import dataclass
from decimal import Decimal

from d3s.optics import stereo

# No default of the functions below: a range means nothing without the error that it allows.
TABLE_DEPTH_ERROR_M = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One row of the comparison.

    Parameters
    ----------
    venue
        Place of publication as printed; None for the paper's own row.
    focal_length_m
        Effective focal length, or the sensor distance s0.
    printed_farthest_m
        Farthest depth with a mean error below 1 cm; None where the table has none.
    printed_disparity_error_px
        Disparity error at that depth; None where there is no such depth.
    evaluated_on
        Data, simulated or public, on which the error was measured.
    """

    name: str
    venue: str | None
    baseline_m: float
    focal_length_m: float
    pixel_pitch_m: float
    printed_farthest_m: Decimal | None
    printed_disparity_error_px: Decimal | None
    evaluated_on: str

    @property
    def focal_length_px(self) -> float:
        """Focal length in pixels, as `d3s.optics.stereo` takes it."""
        return self.focal_length_m / self.pixel_pitch_m


def disparity_error_at_farthest_px(system: System, depth_error_m: float) -> float | None:
    """Disparity error, in pixels, that causes a depth error at the printed farthest depth.

    Paper Eq. 18. None for a system without such a depth.
    """
    if system.printed_farthest_m is None:
        return None
    return _disparity_error_px(system, depth_error_m, system.printed_farthest_m)


def farthest_depth_m(system: System, depth_error_m: float) -> float | None:
    """Depth, in metres, at which the printed disparity error causes a depth error: Eq. 18 inverted.

    None for a system without a printed disparity error.
    """
    if system.printed_disparity_error_px is None:
        return None
    farthest = stereo.farthest_depth_m(
        depth_error_m,
        float(system.printed_disparity_error_px),
        focal_length_px=system.focal_length_px,
        baseline_m=system.baseline_m,
    )
    return float(farthest)


def printed_values_agree(system: System, depth_error_m: float) -> bool:
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
    least_px = _disparity_error_px(system, depth_error_m, farthest)
    most_px = _disparity_error_px(system, depth_error_m, nearest)
    return least_px <= highest and lowest <= most_px


def _disparity_error_px(system: System, depth_error_m: float, depth_m: Decimal) -> float:
    error_px = stereo.disparity_error_px(
        depth_error_m,
        float(depth_m),
        focal_length_px=system.focal_length_px,
        baseline_m=system.baseline_m,
    )
    return float(error_px)


def _before_rounding(printed: Decimal) -> tuple[Decimal, Decimal]:
    """Least and largest number that rounds to the printed one."""
    half_a_unit = Decimal("0.5").scaleb(int(printed.as_tuple().exponent))
    return printed - half_a_unit, printed + half_a_unit


# Columns as printed: name, venue, baseline (mm), focal length (mm), pixel (µm), farthest depth (m),
# disparity error (px), and the data on which the error was measured.
_TABLE = """
Takeda et al. 2012      | VISAPP '12 | 14.0| 30.0| 6.11| 0.37| 5.08| three simulated step scenes
Takeda et al. 2013      | CVPR '13   | 14.0| 51.3| 6.11| 1.47| 0.54| three simulated step scenes
Tang et al. 2017        | CVPR '17   | 1.72| 4.12| 1.55| 0.36| 0.36| Middlebury Stereo 2006
Tan et al. 2021         | CVPR '21   | 22.0| 52.6| 4.80|     |     | Scene Flow
Lopez et al. 2024       | ECCVW '24  | 120 | 100 | 3.72| 5.83| 0.95| Scene Flow
Liu et al. 2025         | CVPR '25   | 75.0| 35.0| 5.86| 1.92| 1.21| Scene Flow
Ou et al. 2025          | Vs. Cp. '25| 70.0| 35.9| 5.86| 1.78| 1.35| InStereo2K
D3S prototype, simulated|            | 3.84| 12.1| 2.00| 1.56| 0.11| the paper's own layered scenes
"""


def _system(row: str) -> System:
    name, venue, baseline, focal, pixel, farthest, error, data = map(str.strip, row.split("|"))
    return System(
        name=name,
        venue=venue or None,
        baseline_m=float(f"{baseline}e-3"),  # rounded once, unlike 1e-3 * float
        focal_length_m=float(f"{focal}e-3"),
        pixel_pitch_m=float(f"{pixel}e-6"),
        printed_farthest_m=Decimal(farthest) if farthest else None,
        printed_disparity_error_px=Decimal(error) if error else None,
        evaluated_on=data,
    )


COMPARED_SYSTEMS = tuple(map(_system, _TABLE.strip().splitlines()))
"""All rows of the table."""

OWN = COMPARED_SYSTEMS[-1]
"""The paper's own row: the prototype, simulated."""
