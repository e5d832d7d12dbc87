"""How exact two cameras will be, before one is built."""

import matplotlib.pyplot as plt

from d3s.lab.design import Camera, Lighting, predict

plt.figure(figsize=(5, 3), layout="constrained")
for baseline_m in (2.5e-3, 5e-3):
    camera = Camera.of_lenses(
        focal_length_m=8e-3, f_number=4.0, baseline_m=baseline_m, focus_m=(0.6, 0.7),
        pixel_pitch_m=2e-6, sensor_px=(2160, 5000),
    )  # fmt: skip
    found = predict(camera, reach_m=(0.3, 2), light=Lighting(noise=0.01))
    plt.plot(found.depth_m, 1e3 * found.mae_m, label=f"baseline {1e3 * baseline_m:g} mm")
plt.gca().set(xlabel="depth (m)", ylabel="mean error (mm)")
plt.legend()
plt.savefig("design.png", dpi=80)
