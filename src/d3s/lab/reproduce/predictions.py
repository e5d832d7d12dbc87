"""Predictions of the tuned depth equation in windows of a simulated plane."""

from typing import NamedTuple

import numpy as np

from d3s.calibrate.ratios import Sums, Windows, shift_sums
from d3s.calibrate.tuning import CONSENSUS, shifts_px
from d3s.lab.evaluate.cameras import TunedTwin
from d3s.optics.d3 import practical_depth_m
from d3s.types import FloatArray, Image


class WindowPredictions(NamedTuple):
    """Windows of a plane, with their sums over the shift between the views."""

    twin: TunedTwin
    windows: Windows
    sums: Sums

    def predicted_m(self, depths_m: FloatArray, baselines_m: FloatArray) -> FloatArray:
        """Predictions at the shifts that align given depths, (depths, baselines, windows)."""
        shifts = shifts_px(depths_m, baselines_m, self.twin.rig.optics)
        return np.stack(
            [
                self.at_shifts_m(shifts[k], float(baseline_m))
                for k, baseline_m in enumerate(baselines_m)
            ],
            axis=1,
        )

    def at_shifts_m(self, shift_px: FloatArray, baseline_m: float) -> FloatArray:
        """Predictions at shifts of the right view, (shifts, windows)."""
        line = self.twin.tuning.line_at(baseline_m)
        ratio = self.sums.ratios_per_px(shift_px[:, np.newaxis])
        return practical_depth_m(ratio, a_m_px=line.a_m_px, b_m=line.b_m)


def window_predictions(
    twin: TunedTwin, views: tuple[Image, Image], shifts_px: tuple[float, float], most_windows: int
) -> WindowPredictions:
    """Choose textured windows in the middle of a pair, with the options that the twin is tuned for.

    `shifts_px` are the least and the largest shift of the right view.
    """
    windows, sums = shift_sums(*views, shifts_px, CONSENSUS, most_windows)
    return WindowPredictions(twin, windows, sums)
