"""A real stereo pair in colour: Motorcycle of Middlebury, which scikit-image carries."""

from skimage.data import stereo_motorcycle

import d3s

left, right, _ = stereo_motorcycle()  # RGB; of cv2.imread give image[..., ::-1]
rig = d3s.Rig.from_pinhole(focal_length_px=994.978, baseline_m=0.193, disparity_offset_px=-31.086)
est = d3s.estimate(left, right, rig, options={"depth_range_m": (1.8, 6)})
est.plot().savefig("stereo_pair.png", dpi=60)
est.save("motorcycle.ply", overwrite=True)  # with the colours of the left view
