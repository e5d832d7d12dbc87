"""Simple calibration for tests: no rotation, no magnification, no tuning."""

from typing import Any

from d3s.rig import Calibration, Provenance

_PROVENANCE = Provenance(
    residuals={}, input_sha256={}, created="2026-01-31T12:00:00+01:00", d3s_version="0.1.0"
)


def calibration(**changes: Any) -> Calibration:
    """Calibration of views of 61 x 81 px in a frame of 120 x 260 px, with changed fields."""
    values: dict[str, Any] = {
        "anchor_left_px": (190.0, 60.0),
        "anchor_right_px": (65.0, 58.0),
        "crop_rows_px": 61,
        "crop_cols_px": 81,
        "rectify_scale": 1.0,
        "rectify_angle_rad": 0.0,
        "rectify_shift_y_px": 0.0,
        "virtual_baselines_m": (5e-4,),
        "a_cubic_m_px": (1.0, 0.0, 0.0, 0.0),
        "b_cubic_m": (0.0, 0.0, 0.0, 0.0),
        "provenance": _PROVENANCE,
    }
    return Calibration(**values | changes)
