"""Files of depth, read back by Open3D where it is installed."""

import numpy as np
import pytest

from d3s.files import DepthImage, write_depth
from d3s.files.depth_image import points_of

o3d = pytest.importorskip("open3d", exc_type=ImportError)  # without libusb, say

DEPTH = np.array([[1.0, 2.0, np.nan], [4.0, 0.5, np.nan]], dtype=np.float32)
COLOUR = np.arange(0, 180, 10, dtype=np.uint8).reshape(2, 3, 3)
IMAGE = DepthImage(depth_m=DEPTH, sigma_m=0.01 * DEPTH, colour=COLOUR, focal_length_px=100.0)


def test_points_and_colours(tmp_path):
    write_depth(tmp_path / "scene.ply", IMAGE)
    cloud = o3d.io.read_point_cloud(str(tmp_path / "scene.ply"))
    expected = points_of(IMAGE)
    np.testing.assert_allclose(np.asarray(cloud.points), expected.xyz_m, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(cloud.colors), expected.colour / 255, atol=1e-6)
    tensor = o3d.t.io.read_point_cloud(str(tmp_path / "scene.ply"))
    np.testing.assert_array_equal(tensor.point["sigma"].numpy().ravel(), expected.sigma_m)


def test_depth_image_and_camera_give_the_same_points(tmp_path):
    write_depth(tmp_path / "scene.png", IMAGE)
    camera = o3d.io.read_pinhole_camera_intrinsic(str(tmp_path / "scene.camera.json"))
    depth = o3d.io.read_image(str(tmp_path / "scene.png"))
    cloud = o3d.geometry.PointCloud.create_from_depth_image(depth, camera, depth_scale=1000.0)
    np.testing.assert_allclose(np.asarray(cloud.points), points_of(IMAGE).xyz_m, rtol=1e-5)
