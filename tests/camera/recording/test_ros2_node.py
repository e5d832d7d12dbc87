"""examples/ros2/d3s_node.py on recorded messages, without ROS."""

import importlib.util

import numpy as np
import pytest

import d3s
from d3s.camera.recording import RecordingWriter
from d3s.files import ros
from d3s.frames import Frame
from pages import ROOT

RIG = d3s.Rig.from_pinhole(
    focal_length_px=500.0,
    baseline_m=0.05,
    principal_point_px=(98.0, 49.0),
    principal_point_right_px=(95.0, 49.0),
    shape=(100, 200),
)


@pytest.fixture(scope="module")
def node():
    spec = importlib.util.spec_from_file_location("d3s_node", ROOT / "examples/ros2/d3s_node.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_recorded_views_become_depth(node, tmp_path):
    from rosbags.highlevel import AnyReader

    pair = d3s.simulate(d3s.Plane(depth_m=1.0), RIG, noise=0.01, shape=(100, 200))
    with RecordingWriter(tmp_path / "a.mcap", rig=RIG) as writer:
        writer.write(Frame(number=0, views=(pair.left, pair.right)))
    with AnyReader([tmp_path / "a.mcap"]) as reader:
        messages = {
            one.topic.removeprefix("/"): reader.deserialize(data, one.msgtype)
            for one, _, data in reader.messages()
        }
    camera = node.rig_of(messages["left/camera_info"], messages["right/camera_info"])
    assert camera.optics.disparity_offset_px == pytest.approx(3)
    assert camera.principal_point_px == (98, 49)
    found = node.answers(messages)
    assert set(found) == set(node.OUTPUTS)
    read = {
        topic: ros.types().deserialize_cdr(ros.cdr(node.OUTPUTS[topic], fields), kind)
        for (topic, fields), kind in zip(found.items(), node.OUTPUTS.values(), strict=True)
    }
    stamp = messages["left/image_rect"].header.stamp
    assert all(one.header.stamp == stamp for one in read.values())
    depth_m = ros.pixels_of(read["depth/image"])
    assert np.nanmedian(depth_m) == pytest.approx(1.0, abs=0.01)
    disparity = read["depth/disparity"]
    known = np.isfinite(depth_m)
    px = ros.pixels_of(disparity.image)[known]
    np.testing.assert_allclose(disparity.f * disparity.t / px, depth_m[known], rtol=1e-4)
    cloud = read["depth/points"]
    assert (cloud.height, cloud.width) == (100, 200)


def test_exchanged_cameras_are_refused(node):
    from types import SimpleNamespace

    info = SimpleNamespace(p=[500.0, 0, 98, 25.0, 0, 500, 49, 0, 0, 0, 1, 0])
    with pytest.raises(d3s.errors.InputError, match=r"p\[3\]=25"):
        node.rig_of(info, info)
