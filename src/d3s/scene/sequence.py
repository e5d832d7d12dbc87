"""Series of planes at known distances: what a camera is calibrated with, and judged by."""

from typing import Any

from d3s.errors import SceneError
from d3s.record import shown

# As many as anybody moves a plane, and few enough for a recipe that can be read again.
MOST_DISTANCES = 10_000

_DIGITS = 9  # a nanometre: 0.29 then, and not 0.29000000000000004


def even_distances_m(first_m: float, last_m: float, count: int) -> tuple[float, ...]:
    """Distances at even steps, both ends among them, rounded to a nanometre.

    Raises
    ------
    SceneError
        When `count` is not 1 to 10000, or 1 and the ends differ.
    """
    is_whole = isinstance(count, int) and not isinstance(count, bool)
    if not is_whole or not 1 <= count <= MOST_DISTANCES:
        raise SceneError(f"count={shown(count)} must be a whole number from 1 to {MOST_DISTANCES}.")
    if count == 1 and first_m != last_m:
        raise SceneError(
            f"count=1 leaves out one of {first_m:g} m and {last_m:g} m. Ask for at least 2."
        )
    step_m = (last_m - first_m) / max(count - 1, 1)
    return tuple(round(first_m + number * step_m, _DIGITS) for number in range(count))


# 25 planes each, every 4 cm, after the experiments of the paper.
CALIBRATION_DISTANCES_M = even_distances_m(0.25, 1.21, 25)
EVALUATION_DISTANCES_M = even_distances_m(1.01, 1.97, 25)

PROTOCOLS: dict[str, tuple[float, ...]] = {
    "calibration": CALIBRATION_DISTANCES_M,
    "evaluation": EVALUATION_DISTANCES_M,
}


def checked_distances_m(distances_m: Any) -> tuple[float, ...]:
    """Distances of one series.

    Raises
    ------
    ValueError
        When there are none, or too many.
    """
    if not distances_m:
        raise ValueError("must have at least 1 value.")
    if len(distances_m) > MOST_DISTANCES:
        raise ValueError(f"must have at most {MOST_DISTANCES} values.")
    return tuple(distances_m)
