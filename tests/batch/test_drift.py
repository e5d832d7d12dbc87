"""A camera that moves during a batch is said once, with the frame from which on."""

import numpy as np

import d3s
from d3s.batch import DepthJob, estimate_files
from d3s.files import write_image
from d3s.frames import find_frames

RIG = d3s.Rig.paper_prototype()
MOVED_AT = 4


def test_batch_dates_a_drift(tmp_path):
    texture = d3s.Texture(pattern="stone", seed=1)
    names = []
    for number in range(9):
        scene = d3s.Plane(depth_m=0.7 + 0.05 * number, texture=texture)
        rows = 0.4 if number >= MOVED_AT else 0.0
        mounts = (d3s.Mount(), d3s.Mount(shift_y_px=rows))
        pair = d3s.simulate(scene, RIG, noise=0.005, seed=number, shape=(160, 240), mounts=mounts)
        for side in ("left", "right"):
            names.append(tmp_path / f"{number}_{side}.png")
            view = np.clip(getattr(pair, side), 0, 1).astype(np.float32)
            write_image(names[-1], view)
    found = find_frames(names)
    job = DepthJob(rig=RIG, formats=("npz",))
    batch = estimate_files(found.frames, job, tmp_path / "moved")
    assert batch.drift is not None
    assert batch.drift.quantities == ("rows",)
    assert batch.drift.first == f"{MOVED_AT}"
    before = estimate_files(found.frames[:MOVED_AT], job, tmp_path / "before")
    assert before.drift is None
