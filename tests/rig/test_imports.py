"""Calibrations of stereo cameras in the files of other programs."""

import json

import numpy as np
import pytest

import d3s
import stereo_cameras as made
from d3s.errors import InputError, RigError
from stereo_cameras import FISHEYE, RADTAN, RATIONAL, RECTIFIED

EXACT = 1e-6

WRITERS = {
    "opencv stereo": made.write_opencv_stereo,
    "opencv rectified": lambda *a: made.write_opencv_stereo(*a, with_rectification=True),
    "opencv mono": made.write_opencv_mono,
    "opencv xml": made.write_opencv_xml,
    "kalibr": made.write_kalibr,
    "ros": made.write_ros,
    "ros message": made.write_ros_message,
    "oak": made.write_oak,
    "realsense": made.write_realsense,
}
RECTIFIED_WRITERS = {
    "middlebury": made.write_middlebury,
    "kitti": made.write_kitti,
    "kitti odometry": made.write_kitti_odometry,
    "opencv stereo": made.write_opencv_stereo,
    "kalibr": made.write_kalibr,
    "oak": made.write_oak,
    "realsense": made.write_realsense,
}
# Kalibr and RealSense have no rational model.
CASES = [
    pytest.param(write, cameras, id=f"{name}, {kind}")
    for name, write in WRITERS.items()
    for kind, cameras in (("radtan", RADTAN), ("rational", RATIONAL), ("fisheye", FISHEYE))
    if not (kind == "rational" and name in ("kalibr", "realsense"))
]


def some_points(count=60):
    """Points before the left camera, in metres."""
    rng = np.random.default_rng(4)
    depth = 1 / rng.uniform(1 / 20, 1 / 0.8, count)
    return np.stack([*(rng.uniform(-0.45, 0.45, (2, count)) * depth), depth], axis=1)


def seen(camera, points):
    """Places of points of a raw camera of a rig."""
    fisheye = camera.model == "fisheye"
    lens = made.Camera(matrix=camera.matrix, distortion=camera.distortion, fisheye=fisheye)
    return lens.project(points)


@pytest.mark.parametrize(("write", "cameras"), CASES)
def test_points_come_through_a_format_and_back(tmp_path, write, cameras):
    rig = d3s.Rig.from_file(*write(cameras, tmp_path))
    left, right = rig.stereo.raw_cameras
    points = some_points()
    # Into the rectified views: by the rotation of the left camera, and by the baseline.
    first = points @ np.array(left.rotation).T
    second = first - [rig.optics.baseline_m, 0, 0]
    places = seen(right, second @ np.array(right.rotation))
    expected = cameras.right.project(points @ cameras.rotation.T + cameras.translation)
    assert np.abs(places - expected).max() < EXACT
    assert np.abs(seen(left, points) - cameras.left.project(points)).max() < EXACT
    # And out of them: disparity to depth, and K to a point.
    x, y = rig.stereo.principal_point_px
    focal, offset = rig.optics.focal_length_px, rig.optics.disparity_offset_px
    column = x + focal * first[:, 0] / first[:, 2]
    other = x - offset + focal * second[:, 0] / second[:, 2]
    row = y + focal * first[:, 1] / first[:, 2]
    depth = rig.optics.depth_m(column - other)
    again = np.stack([(column - x) * depth / focal, (row - y) * depth / focal, depth], axis=1)
    assert np.abs(again @ np.array(left.rotation) - points).max() < EXACT


@pytest.mark.parametrize("name", RECTIFIED_WRITERS)
def test_rectified_cameras_stay_as_they_are(tmp_path, name):
    rig = d3s.Rig.from_file(*RECTIFIED_WRITERS[name](RECTIFIED, tmp_path))
    assert rig.stereo.raw_cameras is None
    points = some_points()
    left, right = (
        one.project(points + shift)
        for one, shift in ((RECTIFIED.left, 0), (RECTIFIED.right, RECTIFIED.translation))
    )
    depth = rig.optics.depth_m(left[:, 0] - right[:, 0])
    x, y = rig.stereo.principal_point_px
    across = (left - [x, y]) * depth[:, None] / rig.optics.focal_length_px
    assert np.abs(np.c_[across, depth] - points).max() < EXACT
    assert rig.stereo.shape in ((240, 320), None)
    assert rig.optics.disparity_offset_px == pytest.approx(161.5 - 174.125)


def test_rig_file_has_all_of_it(tmp_path):
    rig = d3s.Rig.from_file(*made.write_opencv_stereo(RATIONAL, tmp_path))
    rig.save(tmp_path / "rig.toml")
    assert d3s.Rig.load(tmp_path / "rig.toml") == rig
    assert d3s.Rig.from_file(tmp_path / "rig.toml") == rig


def test_rectified_pictures_need_the_projections_only(tmp_path):
    paths = made.write_ros(RADTAN, tmp_path)
    rig = d3s.Rig.from_file(*paths, rectified=True)
    assert rig.stereo.raw_cameras is None
    assert rig.optics == d3s.Rig.from_file(*paths).optics
    with pytest.raises(InputError, match="no projection matrices P"):
        d3s.Rig.from_file(*made.write_kalibr(RADTAN, tmp_path), rectified=True)


@pytest.mark.parametrize("name", WRITERS)
def test_wrong_order_is_told_and_swap_mends_it(tmp_path, name):
    paths = WRITERS[name](RADTAN.swapped(), tmp_path)
    words = "to the left of the first one: the left camera goes first"
    with pytest.raises(InputError, match=words) as caught:
        d3s.Rig.from_file(*paths)
    assert str(paths[0]) in str(caught.value)
    rig = d3s.Rig.from_file(*paths, swap=True)
    assert rig.stereo.left.matrix == pytest.approx(RADTAN.left.matrix)
    assert rig.optics.baseline_m == pytest.approx(np.linalg.norm(RADTAN.translation))


def test_cameras_above_each_other_are_refused(tmp_path):
    above = made.replace(RADTAN, translation=np.array([0.002, -0.12, 0.0]))
    with pytest.raises(InputError, match=r"above or below the first one.* turn the pictures"):
        d3s.Rig.from_file(*made.write_kalibr(above, tmp_path))


def test_millimetres_are_asked_about_and_not_refused(tmp_path):
    paths = made.write_opencv_stereo(RADTAN, tmp_path, unit=0.001)
    with pytest.warns(UserWarning, match=r"119.026 m long. If it is in millimetres.*unit_m=0.001"):
        rig = d3s.Rig.from_file(*paths)
    assert rig.optics.baseline_m == pytest.approx(119.026, rel=1e-4)
    rig = d3s.Rig.from_file(*paths, unit_m=0.001)
    assert rig.optics.baseline_m == pytest.approx(0.119026, rel=1e-4)


def test_size_may_come_from_the_user(tmp_path):
    (path,) = made.write_opencv_stereo(RADTAN, tmp_path)
    text = path.read_text()
    path.write_text("\n".join(one for one in text.split("\n") if not one.startswith("image_")))
    with pytest.raises(InputError, match="does not say the size of the pictures"):
        d3s.Rig.from_file(path)
    assert d3s.Rig.from_file(path, shape=(240, 320)).stereo.shape == (240, 320)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("opencv stereo", "D1:", "E1:", "no distortion coefficients"),
        ("opencv stereo", "M2:", "N2:", "alone, and a stereo camera has two"),
        ("opencv stereo", "T:", "U:", "has no R and T from the left camera to the right one"),
        ("opencv mono", "T:", "U:", "no calibration of a stereo camera|has no R and T"),
        ("kalibr", "cam1:", "cam2:", "has no cam1"),
        ("kalibr", "T_cn_cnm1", "T_other", r"has no cam1\.T_cn_cnm1"),
        ("kalibr", "radtan", "fov", "distortion_model='fov' is not supported"),
        ("kalibr", "camera_model: pinhole", "camera_model: omni", "'omni' is not supported"),
        ("kalibr", "resolution", "size", r"has no cam0\.resolution"),
        ("ros", "plumb_bob", "thin_prism", "distortion_model='thin_prism' is not supported"),
        ("ros", "rectification_matrix", "other", "has no rectification_matrix"),
        ("ros", "image_width", "breadth", "has no image_width"),
        ("oak", '"toCameraSocket": 2', '"toCameraSocket": -1', "no extrinsics that connect"),
        ("oak", "intrinsicMatrix", "other", "has no intrinsicMatrix"),
        ("realsense", '"infra2"', '"color"', "has no infra2"),
        ("realsense", '"extrinsics"', '"other"', "has no extrinsics from infra1 to infra2"),
        ("realsense", '"ppx"', '"px"', "has a camera without ppx"),
        ("realsense", "brown_conrady", "ftheta", "model='ftheta'"),
    ],
)
def test_missing_and_unknown_values_are_named(tmp_path, name, old, new, words):
    paths = WRITERS[name](RADTAN, tmp_path)
    for path in paths:
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=words) as caught:
        d3s.Rig.from_file(*paths)
    assert any(str(path) in str(caught.value) for path in paths)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no calibration file: it has no values by name"),
        (b"a: b\nc: 4\n", "is no calibration of a stereo camera that is known: it has a, c"),
        (b"{", "cannot be read as a calibration file"),
        (b"<svg></svg>", "cannot be read as a calibration file"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is no short text"),
        (b"x: 1\n" * 300_000, "is no short text"),
        (b"a: !!python/object/apply:os.getcwd []", "cannot be read as a calibration file"),
    ],
)
def test_other_files_are_refused_in_a_sentence(tmp_path, content, words):
    path = tmp_path / "calibration.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        d3s.Rig.from_file(path)


def test_files_that_do_not_belong_together(tmp_path):
    kalibr, ros = made.write_kalibr(RADTAN, tmp_path), made.write_ros(RADTAN, tmp_path)
    with pytest.raises(InputError, match="is one of 1 CameraInfo files"):
        d3s.Rig.from_file(ros[0])
    with pytest.raises(InputError, match="Give this file alone"):
        d3s.Rig.from_file(*kalibr, ros[0])
    with pytest.raises(InputError, match="no file to read a camera from"):
        d3s.Rig.from_file()
    with pytest.raises(InputError, match="cannot be read: No such file"):
        d3s.Rig.from_file(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="is a folder"):
        d3s.Rig.from_file(tmp_path)
    with pytest.raises(InputError, match="a rig file has the whole camera"):
        d3s.Rig.from_file(tmp_path / "a.toml", ros[0])


def test_numbers_out_of_range_are_named(tmp_path):
    (path,) = made.write_realsense(RADTAN, tmp_path)
    values = json.loads(path.read_text())
    values["infra2"]["fx"] = -300.0
    path.write_text(json.dumps(values))
    with pytest.raises(RigError, match=r"realsense\.json: .*focal_lengths_px\[0\]=-300.0"):
        d3s.Rig.from_file(path)
