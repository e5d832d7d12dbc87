"""ROS messages and MCAP recordings, read back by the readers of others."""

import numpy as np
import pytest

import d3s
from d3s import formats
from d3s.errors import InputError
from d3s.estimate.saving import as_image
from d3s.files import DepthImage, ros
from d3s.files.ros import write_recording

NAN = np.nan
DEPTH = np.array([[1.0, 2.0, NAN], [4.0, 0.5003, NAN]], dtype=np.float32)
COLOUR = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
IMAGE = DepthImage(
    depth_m=DEPTH,
    sigma_m=0.01 * DEPTH,
    baseline_m=0.04,
    confidence=np.full_like(DEPTH, 0.9),
    colour=COLOUR,
    focal_length_px=100.0,
)
HEAD = ros.header_ns(12_250_000_000, "eye")


def _values(message, kind: str) -> np.ndarray:
    data = np.frombuffer(bytes(message["data"]), kind)
    assert message["step"] * message["height"] == len(message["data"])
    return data.reshape(message["height"], message["width"])


def test_floats_have_nan_and_integers_have_zero():
    floats = ros.image_32fc1(DEPTH, HEAD)
    assert floats["encoding"] == "32FC1"
    np.testing.assert_array_equal(_values(floats, "<f4"), DEPTH)
    integers = ros.depth_16uc1(DEPTH, HEAD)
    assert integers["encoding"] == "16UC1"
    np.testing.assert_array_equal(_values(integers, "<u2"), [[1000, 2000, 0], [4000, 500, 0]])


@pytest.mark.parametrize("depth_m", [65.6, 0.0004])
def test_millimetres_that_do_not_fit_are_refused(depth_m):
    with pytest.raises(InputError, match=r"do not fit into 16UC1.*Use 32FC1"):
        ros.depth_16uc1(np.float32([[1.0, depth_m]]), HEAD)


def test_camera_info_is_of_a_rectified_view():
    info = ros.camera_info(IMAGE, HEAD)
    assert (info["height"], info["width"]) == (2, 3)
    assert info["k"] == [100, 0, 1, 0, 100, 0.5, 0, 0, 1]
    assert info["p"] == [100, 0, 1, 0, 0, 100, 0.5, 0, 0, 0, 1, 0]
    assert info["r"] == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    assert info["d"] == [0] * 5
    with pytest.raises(InputError, match="focal length of the camera is not known"):
        ros.camera_info(DepthImage(depth_m=DEPTH), HEAD)


@pytest.fixture
def recording(tmp_path):
    pytest.importorskip("rosbags")
    path = tmp_path / "depth.mcap"
    far = DepthImage(depth_m=np.full((2, 3), 70, np.float32), focal_length_px=100.0)
    write_recording(path, [(10.0, IMAGE), (10.5, far)], frame_id="eye")
    return path


TOPICS = {"camera_info", "image", "image_raw", "sigma", "points", "disparity"}


def test_recording_is_read_by_rosbags(recording):
    highlevel = pytest.importorskip("rosbags.highlevel")
    found = {}
    with highlevel.AnyReader([recording]) as reader:
        for connection, time_ns, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            found.setdefault(connection.topic.removeprefix("/depth/"), []).append(
                (time_ns, message)
            )
    assert set(found) == TOPICS
    assert [time_ns for time_ns, _ in found["image"]] == [10_000_000_000, 10_500_000_000]
    assert len(found["image_raw"]) == 1  # 70 m do not fit into the second
    image = found["image"][0][1]
    assert (image.encoding, image.header.frame_id) == ("32FC1", "eye")
    np.testing.assert_array_equal(image.data.view("<f4").reshape(2, 3), DEPTH)
    info = found["camera_info"][0][1]
    np.testing.assert_array_equal(info.k, [100, 0, 1, 0, 100, 0.5, 0, 0, 1])
    cloud = found["points"][0][1]
    assert [one.name for one in cloud.fields] == ["x", "y", "z", "sigma", "confidence", "rgb"]
    assert (cloud.height, cloud.width, cloud.is_dense) == (2, 3, False)  # organised
    places = cloud.data.view("<f4").reshape(2, 3, 6)
    np.testing.assert_array_equal(places[..., 2], DEPTH)
    np.testing.assert_allclose(places[1, 0, :2], [-0.04, 0.02])
    disparity = found["disparity"][0][1]
    assert disparity.header == image.header
    assert (disparity.f, disparity.t) == (100, pytest.approx(0.04))
    values = disparity.image.data.view("<f4").reshape(2, 3)
    np.testing.assert_allclose(values[0, :2], [4, 2])
    assert values[0, 2] < disparity.min_disparity == 1


def test_recording_is_read_by_the_reader_of_foxglove(recording):
    """The package mcap is Foxglove's own; its application reads the same schemas."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    with recording.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        messages = [
            (channel.topic, schema.name, message)
            for schema, channel, _, message in reader.iter_decoded_messages()
        ]
        assert reader.get_header().profile == "ros2"
    assert {topic for topic, _, _ in messages} == {f"/depth/{name}" for name in TOPICS}
    sigma = next(message for topic, _, message in messages if topic == "/depth/sigma")
    np.testing.assert_array_equal(
        np.frombuffer(bytes(sigma.data), "<f4").reshape(2, 3), 0.01 * DEPTH
    )


def test_depth_map_is_saved_as_a_recording(tmp_path):
    pytest.importorskip("rosbags")
    rig = d3s.Rig.paper_prototype()
    pair = d3s.simulate(d3s.Plane(depth_m=1.0), rig, noise=0.01, shape=(60, 120))
    found = d3s.estimate(pair.left, pair.right, rig, method="bm")
    found.save(tmp_path / "a.mcap")
    write_recording(tmp_path / "b.mcap", [(0.0, as_image(found))])
    assert (tmp_path / "a.mcap").read_bytes() == (tmp_path / "b.mcap").read_bytes()
    assert (tmp_path / "a.mcap").read_bytes().startswith(formats.MCAP.magics[0])
