"""Frames of a small perfect camera, and its calibrated rig."""

import numpy as np

import d3s

SHAPE = (240, 320)
MARGIN = 20
NOISE = 0.005


def small_rig(**changes):
    rows, cols = SHAPE
    values = {
        "anchor_left_px": (cols + (cols - 1) / 2, (rows - 1) / 2),
        "anchor_right_px": ((cols - 1) / 2, (rows - 1) / 2),
        "crop_rows_px": rows - 2 * MARGIN,
        "crop_cols_px": cols - 2 * MARGIN,
        "rectify_scale": 1.0,
        "rectify_angle_rad": 0.0,
        "rectify_shift_y_px": 0.0,
        "frame_rows_px": rows,
        "frame_cols_px": 2 * cols,
        "noise_read": NOISE,
        "noise_gain": 0.0,
        "virtual_baselines_m": (3.84e-4,),
        "a_cubic_m_px": (0.0, 0.0, 0.0, 0.0),
        "b_cubic_m": (0.0, 0.0, 0.0, 0.0),
        "provenance": d3s.Provenance(
            residuals={}, input_sha256={}, created="2020-01-01T00:00:00+00:00", d3s_version="0"
        ),
    }
    calibration = d3s.Calibration(**{**values, **changes})
    return d3s.Rig.paper_prototype().replace(name="small", calibration=calibration)


def raw_of(scene, seed):
    pair = d3s.simulate(
        scene, d3s.Rig.paper_prototype(), noise=NOISE, seed=seed, shape=SHAPE, psf="gaussian"
    )
    return np.hstack([pair.right, pair.left])
