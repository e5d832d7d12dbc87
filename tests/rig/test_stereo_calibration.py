"""Calibration files of stereo data sets."""

import pytest

from d3s.errors import InputError, RigError
from d3s.rig.imports.data_sets import read_stereo_calibration
from d3s.rig.optics import FARTHEST_M

MIDDLEBURY = """\
cam0=[1000 0 300; 0 1000 250; 0 0 1]
cam1=[1000 0 350; 0 1000 250; 0 0 1]
doffs=50
baseline=200
width=640
height=480
ndisp=101
isint=0
"""
KITTI = """\
calib_time: 09-Jan-2012 13:57:47
S_rect_02: 1.242000e+03 3.750000e+02
P_rect_02: 7.2e+02 0 6.0e+02 4.4e+01 0 7.2e+02 1.7e+02 2.1e-01 0 0 1 2.7e-03
P_rect_03: 7.2e+02 0 6.0e+02 -3.4e+02 0 7.2e+02 1.7e+02 2.1e+00 0 0 1 2.7e-03
"""


def read(tmp_path, text):
    path = tmp_path / "calib.txt"
    path.write_text(text)
    return read_stereo_calibration(path)[0]


def test_middlebury_by_hand(tmp_path):
    found = read(tmp_path, MIDDLEBURY)
    # Z = f B / (d + doffs): 1000 px * 0.2 m / (150 + 50) px
    assert float(found.optics.depth_m(150.0)) == pytest.approx(1.0)
    assert (found.stereo.disparity_range_px, found.stereo.shape) == ((0, 100), (480, 640))
    # 200 px m over 100 + 50 px and over 0 + 50 px
    assert found.optics.depth_range_m((0, 100)) == pytest.approx((200 / 150, 4.0))


def test_eth3d_has_no_offset_and_may_lack_lines(tmp_path):
    lines = [line for line in MIDDLEBURY.splitlines() if not line.startswith(("ndisp", "width"))]
    text = "\n".join(lines).replace("doffs=50\n", "").replace("350", "300")
    found = read(tmp_path, text)
    assert found.optics.disparity_offset_px == 0
    assert (found.stereo.disparity_range_px, found.stereo.shape) == (None, None)
    assert found.optics.depth_range_m((0, 64)) == pytest.approx((200 / 64, FARTHEST_M))


def test_missing_offset_is_that_of_the_principal_points(tmp_path):
    found = read(tmp_path, MIDDLEBURY.replace("doffs=50\n", ""))
    assert found.optics.disparity_offset_px == -50


def test_kitti_by_hand(tmp_path):
    found = read(tmp_path, KITTI)
    assert found.optics.focal_length_px == 720
    assert found.optics.baseline_m == pytest.approx((44 + 340) / 720)
    assert found.optics.disparity_offset_px == 0
    assert found.stereo.disparity_range_px is None


def test_infinity_within_the_range_ends_the_search_far_away(tmp_path):
    converging = MIDDLEBURY.replace("doffs=50", "doffs=-50").replace("0 350;", "0 250;")
    found = read(tmp_path, converging)
    assert found.optics.depth_range_m((0, 100)) == pytest.approx((200 / 50, FARTHEST_M))
    with pytest.raises(InputError, match="disparities up to 19 px reach to infinity only"):
        found.optics.depth_range_m((0, 19))


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("baseline=200", "baseline=-200", RigError, "baseline_m=-0.2 must be above 0"),
        ("doffs=50", "doffs=-50", InputError, "Are cam0 and cam1 swapped"),
        ("baseline=200\n", "", InputError, "has no baseline"),
        ("cam1=[1000 0 350; 0", "cam1=[1000 0 x; 0", InputError, "must be a matrix of 9 numbers"),
        ("ndisp=101", "ndisp=0", InputError, "ndisp=0 must be a whole number"),
        ("cam0", "camera", InputError, "neither cam0"),
    ],
)
def test_wrong_values_name_the_file_and_the_field(tmp_path, old, new, error, words):
    with pytest.raises(error, match=words) as caught:
        read(tmp_path, MIDDLEBURY.replace(old, new))
    assert "calib.txt" in str(caught.value)
