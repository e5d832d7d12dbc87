"""What a largest sigma costs in pixels, and what it buys in error."""

import matplotlib.pyplot as plt
import numpy as np

import d3s

rig = d3s.Rig.paper_prototype()
pair = d3s.simulate(d3s.RandomScene(seed=6), rig, noise=0.02, shape=(240, 400))
est = d3s.estimate(pair.left, pair.right, rig)
limits_mm = (0.5, 1, 2, 4, 8)
kept = [est.filter(max_sigma_m=limit / 1e3) for limit in limits_mm]
errors_mm = [1e3 * np.nanmean(np.abs(one.depth_m - pair.depth_m)) for one in kept]
plt.figure(figsize=(5, 3), layout="constrained")
plt.plot([100 * one.density for one in kept], errors_mm, "o-")
for one, limit, error in zip(kept, limits_mm, errors_mm, strict=True):
    plt.annotate(f"{limit} mm  ", (100 * one.density, error), ha="right")
plt.margins(0.2)
plt.gca().set(xlabel="pixels with a depth (%)", ylabel="mean error (mm)", title="largest sigma")
plt.savefig("filter.png", dpi=80)
