from decimal import Decimal

import pytest

from d3s.lab.reproduce.fig6_systems import (
    COMPARED_SYSTEMS,
    TABLE_DEPTH_ERROR_M,
    System,
    disparity_error_at_farthest_px,
    farthest_depth_m,
    printed_values_agree,
)

SYSTEMS = {system.name: system for system in COMPARED_SYSTEMS}
OWN = SYSTEMS["D3S prototype, simulated"]


# baseline (mm) * focal length (mm) / pitch (um) / depth(m)^2 / 100 is the disparity error in px
# that makes 1 cm of depth error.
@pytest.mark.parametrize(
    ("name", "by_hand_px"),
    [
        ("Takeda et al. 2012", 5.021),  # 14.0 * 30.0 / 6.11 = 68.740; / 0.1369 / 100
        ("Takeda et al. 2013", 0.5440),  # 14.0 * 51.3 / 6.11 = 117.545; / 2.1609 / 100
        ("Tang et al. 2017", 0.3528),  # 1.72 * 4.12 / 1.55 = 4.5719; / 0.1296 / 100
        ("Lopez et al. 2024", 0.9491),  # 120 * 100 / 3.72 = 3225.8; / 33.989 / 100
        ("Liu et al. 2025", 1.2151),  # 75.0 * 35.0 / 5.86 = 447.95; / 3.6864 / 100
        ("Ou et al. 2025", 1.3535),  # 70.0 * 35.9 / 5.86 = 428.84; / 3.1684 / 100
        ("D3S prototype, simulated", 0.09546),  # 3.84 * 12.1 / 2.00 = 23.232; / 2.4336 / 100
    ],
)
def test_disparity_error_at_the_farthest_depth(name: str, by_hand_px: float):
    error_px = disparity_error_at_farthest_px(SYSTEMS[name], TABLE_DEPTH_ERROR_M)
    # The numbers by hand are rounded to four digits.
    assert error_px == pytest.approx(by_hand_px, rel=2e-4)


def test_farthest_depth_of_the_papers_printed_error_is_not_the_printed_depth():
    # sqrt(23.232 / 100 / 0.11) = sqrt(2.1120)
    assert farthest_depth_m(OWN, TABLE_DEPTH_ERROR_M) == pytest.approx(1.4533, abs=1e-4)


# One unit of everything: 0.01 * 1 * 1 / 1e-6 / Z^2 = 1e4 / Z^2 px. Printed as 100 m, the depth
# lies in [99.5, 100.5] and the error in [0.99007, 1.01008].
@pytest.mark.parametrize(
    ("depth", "error", "agree"),
    [
        ("100", "1.01", True),  # [1.005, 1.015] overlaps
        ("100", "1.02", False),  # [1.015, 1.025] is above
        ("100", "0.99", True),  # [0.985, 0.995] overlaps
        ("100", "0.98", False),  # [0.975, 0.985] is below
        ("100.0", "1.01", False),  # one decimal more: [0.9990, 1.0010] is below 1.005
        ("100.0", "1.0", True),
    ],
)
def test_agreement_counts_the_decimals_that_were_printed(depth: str, error: str, agree: bool):
    system = System(
        name="unit",
        baseline_m=1.0,
        focal_length_m=1.0,
        pixel_pitch_m=1e-6,
        printed_farthest_m=Decimal(depth),
        printed_disparity_error_px=Decimal(error),
    )
    assert printed_values_agree(system, 0.01) is agree
