"""Errors over the sigma that was predicted for each pixel: a normal distribution, if it is true."""

import matplotlib.pyplot as plt
import numpy as np

import d3s

rig = d3s.Rig.paper_prototype()
pair = d3s.simulate(d3s.Plane(depth_m=1.0, texture="gravel"), rig, noise=0.01, shape=(240, 400))
est = d3s.estimate(pair.left, pair.right, rig)
ratio = ((est.depth_m - pair.depth_m) / est.sigma_m)[est.valid]
x = np.linspace(-4, 4, 81)
plt.figure(figsize=(5, 3), layout="constrained")
plt.hist(ratio, bins=x, density=True, label="pixels")
plt.plot(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), label="normal distribution")
plt.xlabel("error over sigma")
plt.legend(loc="upper left")
plt.savefig("sigma.png", dpi=80)
