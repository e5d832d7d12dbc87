from decimal import Decimal

import pytest

from d3s.lab.reproduce.fig6_systems import System, printed_values_agree


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
    assert printed_values_agree(system) is agree
