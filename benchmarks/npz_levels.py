"""Size and time of an NPZ file of a depth map by the level of compression: table of docs/files.md.

The last row is as d3s writes it: level 1, without a search for repeats in arrays that have none.

Run: python benchmarks/npz_levels.py
"""

import io
import time
import zipfile

import d3s
from d3s.estimate.saving import _as_arrays
from d3s.files import npy
from d3s.files.arrays import packed

LEVELS = (0, 1, 3, 6, 9)
REPEATS = 3


def table(shape: tuple[int, int] = (902, 1802)) -> list[tuple[str, float, float]]:
    """Level in words, size in MB and shortest processor time in seconds."""
    rig = d3s.Rig.paper_prototype()
    pair = d3s.simulate(d3s.RandomScene(seed=3), rig, noise=0.01, shape=shape)
    found = d3s.estimate(pair.left, pair.right, rig)
    members = {name: npy.encode(array) for name, array in _as_arrays(found).items()}
    rows = []
    for level in LEVELS:
        times_s = []
        for _ in range(REPEATS):
            buffer = io.BytesIO()
            started = time.process_time()
            kind = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
            with zipfile.ZipFile(buffer, "w", kind, compresslevel=level or None) as archive:
                for name, content in members.items():
                    archive.writestr(f"{name}.npy", content)
            times_s.append(time.process_time() - started)
        words = str(level) if level else "none"
        rows.append((words, len(buffer.getvalue()) / 1e6, min(times_s)))
    times_s = []
    for _ in range(REPEATS):
        started = time.process_time()
        raw = packed(_as_arrays(found))
        times_s.append(time.process_time() - started)
    rows.append(("as written", len(raw) / 1e6, min(times_s)))
    return rows


if __name__ == "__main__":
    print("| level | size (MB) | time (s) |")
    print("|---|---|---|")
    for level, size_mb, time_s in table():
        print(f"| {level} | {size_mb:.1f} | {time_s:.2f} |")
