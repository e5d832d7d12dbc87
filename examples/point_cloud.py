"""Points in space with a sigma each, for a robot or a viewer."""

import matplotlib.pyplot as plt

import d3s

rig = d3s.Rig.paper_prototype()
pair = d3s.simulate(d3s.RandomScene(seed=3), rig, noise=0.01, shape=(240, 400))
est = d3s.estimate(pair.left, pair.right, rig)
cloud = est.points(mask=est.sigma_m < 0.01)
cloud_x, cloud_y, cloud_z = cloud.xyz_m[::7].T
axes = plt.figure(figsize=(5, 4), layout="constrained").add_subplot(projection="3d")
axes.scatter(cloud_x, cloud_z, -cloud_y, c=1e3 * cloud.sigma_m[::7], s=1, cmap="viridis")
axes.set(xlabel="x (m)", ylabel="z (m)", zlabel="-y (m)", title="colour: sigma")
plt.savefig("point_cloud.png", dpi=70)
est.save("points.ply", overwrite=True)
