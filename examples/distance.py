"""The distance between two pixels in space, with its sigma."""

import matplotlib.pyplot as plt

import d3s

rig = d3s.Rig.paper_prototype()
scene = d3s.TiltedPlane(depth_m=0.6, tilt_x_rad=0.6, texture="brick")
pair = d3s.simulate(scene, rig, noise=0.01, shape=(200, 400))
est = d3s.estimate(pair.left, pair.right, rig)
a, b = (100, 140), (100, 340)
plt.figure(figsize=(5, 2.8), layout="constrained")
plt.imshow(pair.left, cmap="gray")
plt.plot((a[1], b[1]), (a[0], b[0]), "o-", color="tab:orange")
plt.title(str(est.distance(a, b)))
plt.savefig("distance.png", dpi=70)
