"""Holes filled where the surroundings tell the depth to 5 cm, and flagged."""

import matplotlib.pyplot as plt

import d3s
from d3s.lab.dense import densify

rig = d3s.Rig.paper_prototype()
pair = d3s.simulate(d3s.RandomScene(seed=11), rig, noise=0.01, shape=(240, 400))
est = d3s.estimate(pair.left, pair.right, rig)
shown = {"true": pair.depth_m, "measured": est.depth_m, "filled": densify(est).depth_m}
_, panels = plt.subplots(1, 3, figsize=(9, 2.2), layout="constrained")
for axes, (title, depth_m) in zip(panels, shown.items(), strict=True):
    axes.imshow(depth_m, cmap="viridis_r", vmin=pair.depth_m.min(), vmax=pair.depth_m.max())
    axes.set(title=title, xticks=[], yticks=[])
plt.savefig("dense.png", dpi=70)
