"""Time to split a raw frame of 3840 x 2160 pixels, with and without errors of the lenses.

    .venv/bin/python benchmarks/split_time.py [--rounds N]

Views have 902 x 1802 pixels. With lenses, distortion of 2 % and vignetting are removed. The first
call for a calibration, which works out its polynomials, is not counted; it is printed beside the
best of the others. D3S_THREADS sets the number of threads.
"""

import argparse
import time

import numpy as np

import d3s
from d3s.rig import Calibration, LensMaps, Provenance
from d3s.runtime.parallel import thread_count
from timing import Work, race

FRAME = (2160, 3840)
LENSES = LensMaps(
    field_radius_px=900.0,
    distortion_left=(-0.016, -0.004, 0.0005, -0.0003),
    distortion_right=(-0.017, -0.003, 0.0, 0.0),
    illumination_left=(1.0, 0.01, 0.0, -0.1, 0.0, -0.1),
    illumination_right=(0.95, 0.0, 0.01, -0.1, 0.0, -0.1),
)
CALIBRATION = Calibration(
    anchor_left_px=(2830.4, 1079.8),
    anchor_right_px=(1011.3, 1081.2),
    crop_rows_px=902,
    crop_cols_px=1802,
    rectify_scale=1.0009,
    rectify_angle_rad=0.0021,
    rectify_shift_y_px=0.0,
    baseline_angle_rad=-0.0037,
    virtual_baselines_m=(5e-4,),
    a_cubic_m_px=(1.0, 0.0, 0.0, 0.0),
    b_cubic_m=(0.0, 0.0, 0.0, 0.0),
    provenance=Provenance(
        residuals={}, input_sha256={}, created="2026-01-31T12:00:00+01:00", d3s_version="0.1.0"
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    light = 0.5 + 0.1 * np.random.default_rng(0).standard_normal(FRAME, dtype=np.float32)
    frames = {
        "uint8": (light.clip(0, 1) * 255).astype(np.uint8),
        "uint16": (light.clip(0, 1) * 65535).astype(np.uint16),
        "float32": light,
    }
    prototype = d3s.Rig.paper_prototype()
    without = prototype.replace(calibration=CALIBRATION)
    lenses = prototype.replace(calibration=CALIBRATION.replace(lenses=LENSES))
    for rig in (without, lenses):
        rig.split(light[:, ::-1])  # compiles and loads code, if necessary
    print(f"{thread_count()} threads, best of {rounds}, ms")
    for number, (kind, frame) in enumerate(frames.items()):
        # Another calibration each time, as its polynomials are kept.
        new = LENSES.replace(disparity_sigma_px=0.001 * (number + 1))
        fresh = prototype.replace(calibration=CALIBRATION.replace(lenses=new))
        begun = time.perf_counter()
        fresh.split(frame)
        first = time.perf_counter() - begun
        best = race(
            {
                "without": Work(lambda frame=frame: without.split(frame)),
                "lenses": Work(lambda frame=frame: lenses.split(frame)),
            },
            rounds=rounds,
            budget_s=60,
        )
        print(
            f"{kind:8} without {1e3 * best['without']:6.1f}   with lenses "
            f"{1e3 * best['lenses']:6.1f} ({best['lenses'] / best['without']:.2f} times), "
            f"first {1e3 * first:6.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
