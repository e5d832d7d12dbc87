"""Frames of a small perfect camera, and its calibrated rig."""

import numpy as np

import d3s
from calibrations import calibration

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
        "frame_rows_px": rows,
        "frame_cols_px": 2 * cols,
        "noise_read": NOISE,
        "noise_gain": 0.0,
        "virtual_baselines_m": (3.84e-4,),
    }
    known = calibration(**{**values, **changes})
    return d3s.Rig.paper_prototype().replace(name="small", calibration=known)


def raw_of(scene, seed):
    pair = d3s.simulate(
        scene, d3s.Rig.paper_prototype(), noise=NOISE, seed=seed, shape=SHAPE, psf="gaussian"
    )
    return np.hstack([pair.right, pair.left])
