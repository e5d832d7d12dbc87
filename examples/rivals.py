"""Three methods on the same pair: ours, the paper's, and the best-known stereo matcher."""

import matplotlib.pyplot as plt
import numpy as np

import d3s

rig = d3s.Rig.paper_prototype()
pair = d3s.simulate(d3s.RandomScene(seed=8), rig, noise=0.01, shape=(160, 300))
_, panels = plt.subplots(1, 3, figsize=(9, 2.2), layout="constrained")
for axes, method in zip(panels, ("joint", "consensus", "sgbm"), strict=True):
    est = d3s.estimate(pair.left, pair.right, rig, method=method)
    error_cm = 100 * (est.depth_m - pair.depth_m)
    shown = axes.imshow(error_cm, cmap="RdBu_r", vmin=-3, vmax=3)
    axes.set(title=f"{method}: {np.nanmean(np.abs(error_cm)):.2f} cm", xticks=[], yticks=[])
plt.colorbar(shown, ax=panels, label="error (cm)", shrink=0.8)
plt.savefig("rivals.png", dpi=70)
