"""Distances of a series of planes, for calibration and evaluation."""

from collections.abc import Sequence

import numpy as np

from d3s.errors import SceneError
from d3s.record import short_repr

# More than any capture series has, and few enough for a recipe file.
MOST_DISTANCES = 10_000

# Separates errors of typing from other streams of the same seed.
_TYPED_KEY = int.from_bytes(b"typed")

_DIGITS = 9  # a nanometre: 0.29 instead of 0.29000000000000004


def even_distances_m(
    first_m: float, last_m: float, count: int, *, inverse: bool = False
) -> tuple[float, ...]:
    """Evenly spaced distances in metres, both ends included, rounded to a nanometre.

    With `inverse` they are even in 1/distance, as blur and disparity are. Raises a SceneError if
    `count` is not 1 to 10000, or is 1 with different ends.
    """
    is_whole = isinstance(count, int) and not isinstance(count, bool)
    if not is_whole or not 1 <= count <= MOST_DISTANCES:
        raise SceneError(
            f"count={short_repr(count)} must be a whole number from 1 to {MOST_DISTANCES}."
        )
    if count == 1 and first_m != last_m:
        raise SceneError(
            f"count=1 leaves out one of {first_m:g} m and {last_m:g} m. Ask for at least 2."
        )
    shares = [number / max(count - 1, 1) for number in range(count)]
    if inverse:
        series = (1 / ((1 - share) / first_m + share / last_m) for share in shares)
    else:
        series = (first_m + share * (last_m - first_m) for share in shares)
    return tuple(round(one_m, _DIGITS) for one_m in series)


def typed_distances_m(
    distances_m: Sequence[float], sigma_m: float, seed: int = 0
) -> tuple[float, ...]:
    """Distances as a person measures and types them, with an error each, rounded to a nanometre.

    `sigma_m` is the standard deviation of the errors; a SceneError if it is below 0 or not below a
    tenth of each distance.
    """
    nearest_m = min(distances_m, default=np.inf)
    if not 0 <= sigma_m < nearest_m / 10:
        raise SceneError(
            f"sigma_m={sigma_m:g} must be from 0 to below a tenth of the nearest distance, "
            f"{nearest_m:g} m: it is in metres. Did you pass millimetres?"
        )
    errors = sigma_m * np.random.default_rng((seed, _TYPED_KEY)).standard_normal(len(distances_m))
    pairs = zip(distances_m, errors.tolist(), strict=True)
    return tuple(round(true_m + error_m, _DIGITS) for true_m, error_m in pairs)


# 25 planes each, every 4 cm, as in the experiments of the paper.
CALIBRATION_DISTANCES_M = even_distances_m(0.25, 1.21, 25)
EVALUATION_DISTANCES_M = even_distances_m(1.01, 1.97, 25)

PROTOCOLS: dict[str, tuple[float, ...]] = {
    "calibration": CALIBRATION_DISTANCES_M,
    "evaluation": EVALUATION_DISTANCES_M,
}
