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


COMPARED_SYSTEMS: tuple[System, ...] = (
    System(
        name="Takeda et al. 2012",
        venue="VISAPP '12",
        baseline_m=14.0e-3,
        focal_length_m=30.0e-3,
        pixel_pitch_m=6.11e-6,
        printed_farthest_m=Decimal("0.37"),
        printed_disparity_error_px=Decimal("5.08"),
        evaluated_on="three simulated step scenes",
    ),
    System(
        name="Takeda et al. 2013",
        venue="CVPR '13",
        baseline_m=14.0e-3,
        focal_length_m=51.3e-3,
        pixel_pitch_m=6.11e-6,
        printed_farthest_m=Decimal("1.47"),
        printed_disparity_error_px=Decimal("0.54"),
        evaluated_on="three simulated step scenes",
    ),
    System(
        name="Tang et al. 2017",
        venue="CVPR '17",
        baseline_m=1.72e-3,
        focal_length_m=4.12e-3,
        pixel_pitch_m=1.55e-6,
        printed_farthest_m=Decimal("0.36"),
        printed_disparity_error_px=Decimal("0.36"),
        evaluated_on="Middlebury Stereo 2006",
    ),
    System(
        name="Tan et al. 2021",
        venue="CVPR '21",
        baseline_m=22.0e-3,
        focal_length_m=52.6e-3,
        pixel_pitch_m=4.80e-6,
        printed_farthest_m=None,
        printed_disparity_error_px=None,
        evaluated_on="Scene Flow",
    ),
    System(
        name="Lopez et al. 2024",
        venue="ECCVW '24",
        baseline_m=120e-3,
        focal_length_m=100e-3,
        pixel_pitch_m=3.72e-6,
        printed_farthest_m=Decimal("5.83"),
        printed_disparity_error_px=Decimal("0.95"),
        evaluated_on="Scene Flow",
    ),
    System(
        name="Liu et al. 2025",
        venue="CVPR '25",
        baseline_m=75.0e-3,
        focal_length_m=35.0e-3,
        pixel_pitch_m=5.86e-6,
        printed_farthest_m=Decimal("1.92"),
        printed_disparity_error_px=Decimal("1.21"),
        evaluated_on="Scene Flow",
    ),
    System(
        name="Ou et al. 2025",
        venue="Vs. Cp. '25",
        baseline_m=70.0e-3,
        focal_length_m=35.9e-3,
        pixel_pitch_m=5.86e-6,
        printed_farthest_m=Decimal("1.78"),
        printed_disparity_error_px=Decimal("1.35"),
        evaluated_on="InStereo2K",
    ),
    System(
        name="D3S prototype, simulated",
        venue=None,
        baseline_m=3.84e-3,
        focal_length_m=12.1e-3,
        pixel_pitch_m=2.00e-6,
        printed_farthest_m=Decimal("1.56"),
        printed_disparity_error_px=Decimal("0.11"),
        evaluated_on="the paper's own layered scenes",
    ),
)

OWN = COMPARED_SYSTEMS[-1]
"""The paper's own row: the prototype, simulated."""
