"""Pictures of two cameras, rectified in one resampling."""

import numpy as np
import pytest

import d3s
import stereo_cameras as made
from d3s.errors import InputError, RigError
from d3s.rig.stereo_camera import RawCamera, Stereo
from stereo_cameras import FISHEYE, RADTAN, RATIONAL, RECTIFIED

SHAPE = made.SIZE[::-1]
MODELS = pytest.mark.parametrize(
    "cameras", [RADTAN, RATIONAL, FISHEYE], ids=["radtan", "rational", "fisheye"]
)


def sky(directions):
    """Smooth brightness of directions (n, 3) at infinity."""
    x, y = (directions[:, :2] / directions[:, 2:]).T
    return 0.5 + 0.2 * np.sin(21 * x + 5 * y) + 0.2 * np.cos(17 * y - 9 * x)


def raw_pictures(cameras):
    """Pictures of the sky; directions are those of the left camera."""
    places = made.picture_places()
    return [
        sky(camera.rays(places) @ turn).reshape(SHAPE).astype(np.float32)
        for camera, turn in ((cameras.left, np.eye(3)), (cameras.right, cameras.rotation))
    ]


@pytest.fixture
def rig(tmp_path):
    return d3s.Rig.from_file(*made.write_opencv_stereo(RADTAN, tmp_path))


@MODELS
def test_views_show_what_rectified_cameras_would(tmp_path, cameras):
    rig = d3s.Rig.from_file(*made.write_opencv_stereo(cameras, tmp_path))
    views = rig.rectify(*raw_pictures(cameras))
    x, y = rig.stereo.principal_point_px
    rays = np.c_[(made.picture_places() - (x, y)) / rig.optics.focal_length_px, np.ones(240 * 320)]
    expected = sky(rays @ np.array(rig.stereo.left.rotation)).reshape(SHAPE)
    # A point at infinity is at one place of both views.
    for view in views:
        is_seen = np.isfinite(view)
        assert is_seen.mean() > 0.7
        assert np.abs(view - expected)[is_seen].max() < 2e-3


def test_pictures_side_by_side(rig):
    pictures = raw_pictures(RADTAN)
    for one, other in zip(rig.rectify(*pictures), rig.split(np.hstack(pictures)), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InputError, match=r"side by side has \(240, 640\)"):
        rig.split(pictures[0])


def test_pictures_of_another_size_are_refused(rig, tmp_path):
    small = np.zeros((120, 160), np.float32)
    words = "left picture has 120 x 160 px .* is of pictures of 240 x 320.*neither cropped nor"
    with pytest.raises(InputError, match=words):
        rig.rectify(small, small)
    rectified = d3s.Rig.from_file(*made.write_middlebury(RECTIFIED, tmp_path))
    with pytest.raises(InputError, match=words):
        rectified.rectify(small, small)


def test_rectified_pictures_stay_as_they_are(tmp_path):
    rectified = d3s.Rig.from_file(*made.write_middlebury(RECTIFIED, tmp_path))
    pictures = raw_pictures(RECTIFIED)
    assert all(
        one is other for one, other in zip(rectified.rectify(*pictures), pictures, strict=True)
    )
    left, right = np.zeros((4, 5)), np.zeros((4, 5))
    assert d3s.Rig.paper_prototype().rectify(left, right) == (left, right)


def test_pictures_become_depth(tmp_path):
    paths = tmp_path / "left.png", tmp_path / "right.png"
    made.write_pictures(RADTAN, *paths)
    rig = d3s.Rig.from_file(*made.write_ros(RADTAN, tmp_path))
    pair = d3s.load_pair(*paths, rig=rig)
    est = d3s.estimate(pair.left, pair.right, rig)
    assert est.density > 0.5
    assert est.warnings == ()
    # The wall faces the left camera, from whose axis the rectified view is turned.
    rows, cols = np.nonzero(est.valid)
    x, y = rig.stereo.principal_point_px
    z = est.depth_m[est.valid]
    points = np.stack([(cols - x) * z, (rows - y) * z, z * rig.optics.focal_length_px], axis=1)
    wall = (points / rig.optics.focal_length_px) @ np.array(rig.stereo.left.rotation)
    assert np.median(np.abs(wall[:, 2] - made.WALL_M)) < 0.004


@pytest.mark.parametrize("mistake", ["pictures", "cameras", "raw as rectified"])
def test_wrong_file_and_wrong_order_are_told(tmp_path, mistake):
    paths = tmp_path / "left.png", tmp_path / "right.png"
    made.write_pictures(RADTAN, *paths)
    cameras = RADTAN
    if mistake == "cameras":
        cameras = made.replace(RADTAN, rotation=RADTAN.rotation.T)
    rig = d3s.Rig.from_file(*made.write_ros(cameras, tmp_path), rectified=mistake[:3] == "raw")
    pair = d3s.load_pair(*(paths[::-1] if mistake == "pictures" else paths), rig=rig)
    est = d3s.estimate(pair.left, pair.right, rig)
    told = " ".join(est.warnings)
    words = {
        "pictures": "seem to be swapped",
        "cameras": "Check that the calibration is of these cameras",
        "raw as rectified": "The rig takes the pictures for rectified ones",
    }
    assert words[mistake] in told


def test_rules_of_the_records():
    camera = {
        "model": "fisheye",
        "rows_px": 240,
        "cols_px": 320,
        "focal_lengths_px": [300.0, 300.0],
        "principal_point_px": [160.0, 120.0],
    }
    with pytest.raises(RigError, match="must have 0 or 4 values for a fisheye camera"):
        RawCamera(**camera, distortion=[0.1] * 5)
    with pytest.raises(RigError, match="must be a rotation matrix"):
        RawCamera(**camera, rotation=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    with pytest.raises(RigError, match="needs left beside it"):
        Stereo(principal_point_px=(1.0, 1.0), rows_px=240, cols_px=320, right=camera)
    with pytest.raises(RigError, match="needs rows_px and cols_px"):
        Stereo(principal_point_px=(1.0, 1.0), left=camera, right=camera)
    with pytest.raises(RigError, match="then a larger one"):
        Stereo(principal_point_px=(1.0, 1.0), disparity_range_px=(3.0, 3.0))
