"""A raw frame of a camera that is being built, and what to turn."""

import matplotlib.pyplot as plt

import d3s
from d3s.camera.align import measure

rig = d3s.Rig.paper_prototype()
rig = rig.replace(optics=rig.optics.replace(pixel_pitch_m=9e-6))  # a small sensor
layout = d3s.RawLayout(rows_px=460, cols_px=860, field_radius_px=228.0, field_edge_px=6.0)
mounts = (d3s.Mount(roll_rad=0.01), d3s.Mount(shift_y_px=-7.0))
wall = d3s.Plane(depth_m=0.42, texture="leaves")
frame = d3s.simulate_raw(wall, rig, noise=0.01, layout=layout, mounts=mounts).image
readings = measure(frame, rig).readings
turn = [one.kind.title for one in readings.values() if one.state == "turn"]
plt.figure(figsize=(5, 3), layout="constrained")
plt.imshow(frame, cmap="gray")
plt.title(f"turn: {', '.join(turn)}")
plt.savefig("align.png", dpi=70)
