"""Errors of depth from rows or light of the two views that are apart: what limits are argued by.

    .venv/bin/python benchmarks/calibration_limits.py

Walls with the textures of the tuning and 1 % noise, seen by the twin of the prototype. The right
view is moved down by part of a pixel, or darkened. Consensus keeps pixels with a confidence above
0.8.
"""

from typing import NamedTuple

import numpy as np

import d3s
from d3s.calibrate.tuning import CONSENSUS
from d3s.lab.evaluate import TUNING_PATTERNS
from d3s.lab.evaluate.tuned_twin import tuned_rig

RIG = tuned_rig()
SHAPE, NOISE = (200, 500), 0.01
DEPTHS_M = (1.0, 1.5, 1.9)
OPTIONS = {"joint": None, "consensus": CONSENSUS}


class Fault(NamedTuple):
    """Error of the right view."""

    rows_px: float = 0.0
    light: float = 1.0

    @property
    def words(self) -> str:
        """Name of the fault in the table."""
        if self.light != 1:
            return f"light {1 - self.light:.1%} less"
        return f"rows {self.rows_px:g} px" if self.rows_px else "none"


FAULTS = (
    *(Fault(rows_px=rows) for rows in (0.0, 0.1, 0.25, 0.4, 0.6)),
    *(Fault(light=light) for light in (0.995, 0.99, 0.98, 0.95)),
)


def error(method: str, fault: Fault, depth_m: float) -> tuple[float, float]:
    """Mean absolute error in cm and share of pixels with a depth, means of the textures.

    Textures without a single depth have no error.
    """
    errors, shares = [], []
    mounts = d3s.Mount(), d3s.Mount(shift_y_px=fault.rows_px)
    for pattern in TUNING_PATTERNS:
        scene = d3s.Plane(depth_m=depth_m, texture=pattern)
        pair = d3s.simulate(scene, RIG, shape=SHAPE, noise=NOISE, mounts=mounts)
        right = pair.right * np.float32(fault.light)
        found = d3s.estimate(pair.left, right, RIG, method=method, options=OPTIONS[method])
        shares.append(float(np.mean(found.valid)))
        if found.valid.any():
            errors.append(float(np.nanmean(np.abs(found.depth_m - depth_m))))
    return 100 * float(np.mean(errors)) if errors else np.nan, float(np.mean(shares))


def main() -> None:
    """Print the table."""
    print("| method, fault | " + " | ".join(f"{depth_m:g} m" for depth_m in DEPTHS_M) + " |")
    print("|---" * (1 + len(DEPTHS_M)) + "|")
    for method in OPTIONS:
        for fault in FAULTS:
            cells = [error(method, fault, depth_m) for depth_m in DEPTHS_M]
            told = " | ".join(f"{mae_cm:.2f} cm, {share:.0%}" for mae_cm, share in cells)
            print(f"| {method}, {fault.words} | {told} |", flush=True)


if __name__ == "__main__":
    main()
