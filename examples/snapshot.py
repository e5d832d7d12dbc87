"""One snapshot, its depth, sigma, and the reasons of holes."""

import d3s

rig = d3s.Rig.paper_prototype()
pair = d3s.simulate(d3s.RandomScene(seed=11), rig, noise=0.01, shape=(240, 400))
est = d3s.estimate(pair.left, pair.right, rig)
est.plot().savefig("snapshot.png", dpi=60)
