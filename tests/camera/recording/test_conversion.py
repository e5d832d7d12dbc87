"""Recordings to folders and ROS 2 bags, and back: no bit of a frame is lost."""

import cv2
import numpy as np
import pytest

import d3s
from d3s.camera.recording import Recording, RecordingWriter
from d3s.camera.recording.conversion import from_bag, from_folder, is_bag, to_bag, to_folder
from d3s.errors import InputError, OutputError
from d3s.files import DepthImage
from d3s.frames import Frame

RNG = np.random.default_rng(8)
RIG = d3s.Rig.paper_prototype()


def raw(number, full_scale=4095, dtype=np.uint16):
    counts = RNG.integers(0, full_scale + 1, (12, 20)).astype(dtype)
    counts[0, :2] = 0, full_scale
    return Frame(
        number=number,
        counts=counts,
        full_scale=full_scale,
        time_s=50 + number / 3,
        camera_time_s=number / 7,
        lost_before=number % 2,
    )


def pair(number):
    views = RNG.normal(size=(2, 12, 20)).astype(np.float32)
    return Frame(number=number, views=(views[0], views[1]), time_s=50.0 + number)


def write(path, frames):
    with RecordingWriter(path, rig=RIG) as writer:
        for frame in frames:
            writer.write(frame)
    return path


def check(path, frames):
    with Recording(path) as recording:
        found = list(recording)
        assert recording.rig() == RIG
    for one, other in zip(found, frames, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts, strict=True)
        for view, expected in zip(one.views or (), other.views or (), strict=True):
            np.testing.assert_array_equal(view, expected, strict=True)
        assert (one.number, one.full_scale) == (other.number, other.full_scale)
        assert (one.time_s, one.camera_time_s) == (other.time_s, other.camera_time_s)
        assert one.lost_before == other.lost_before


@pytest.mark.parametrize(
    "frames",
    [
        [raw(0), raw(1), raw(4)],
        [raw(0, 65535)],
        [raw(0, 255, np.uint8)],
        [pair(0), pair(1)],
    ],
)
def test_a_folder_and_back(tmp_path, frames):
    path = write(tmp_path / "a.mcap", frames)
    assert to_folder(path, tmp_path / "folder") == (len(frames), ())
    assert (tmp_path / "folder" / "rig.toml").exists()
    assert from_folder(tmp_path / "folder", tmp_path / "b.mcap") == (len(frames), ())
    check(tmp_path / "b.mcap", frames)
    with pytest.raises(OutputError, match="exists"):
        to_folder(path, tmp_path / "folder")


def test_a_folder_of_photographs_becomes_a_recording(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for side in ("left", "right"):
        cv2.imwrite(str(folder / f"a_{side}.png"), RNG.integers(0, 65536, (6, 8), dtype=np.uint16))
    (folder / "b_left.png").write_text("no image")
    (folder / "b_right.png").write_text("no image")
    count, refused = from_folder(folder, tmp_path / "a.mcap", rig=RIG)
    assert count == 1
    assert "b_left.png" in refused[0].name
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no images"):
        from_folder(tmp_path / "empty", tmp_path / "b.mcap")


def test_a_bag_and_back(tmp_path):
    frames = [raw(0), raw(1), raw(2)]
    path = tmp_path / "a.mcap"
    depth = RNG.random((5, 6), dtype=np.float32)
    with RecordingWriter(path, rig=RIG) as writer:
        for frame in frames:
            writer.write(frame)
            writer.write_depth(DepthImage(depth_m=depth, focal_length_px=100.0), frame.number)
    assert to_bag(path, tmp_path / "bag") == 15
    assert is_bag(tmp_path / "bag")
    assert from_bag(tmp_path / "bag", tmp_path / "b.mcap") == 3
    check(tmp_path / "b.mcap", frames)
    with Recording(tmp_path / "b.mcap") as recording:
        np.testing.assert_array_equal(recording.depth(1).depth_m, depth)
    with pytest.raises(OutputError, match="bag"):
        to_bag(path, tmp_path / "bag")


def foreign_bag(path, *names, encoding="mono16", dtype="<u2", channels=1):
    """Bag as other programs write it, by the classes of rosbags; with its pixels."""
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    types = store.types
    shape = (5, 8) if channels == 1 else (5, 8, channels)
    pixels = {}
    with Writer(path, version=9) as bag:
        for name in names:
            connection = bag.add_connection(name, "sensor_msgs/msg/Image", typestore=store)
            for number in range(3):
                values = RNG.integers(0, 200, shape).astype(dtype)
                pixels[name, number] = values
                stamp = types["builtin_interfaces/msg/Time"](sec=7, nanosec=number)
                header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="cam")
                message = types["sensor_msgs/msg/Image"](
                    header=header,
                    height=5,
                    width=8,
                    encoding=encoding,
                    is_bigendian=0,
                    step=8 * channels * values.itemsize,
                    data=np.frombuffer(values.tobytes(), np.uint8),
                )
                data = store.serialize_cdr(message, "sensor_msgs/msg/Image")
                bag.write(connection, 10**9 + number, data)
    return pixels


def test_the_bag_of_another_program_becomes_a_recording(tmp_path):
    pixels = foreign_bag(tmp_path / "bag", "/camera/image")
    assert from_bag(tmp_path / "bag", tmp_path / "a.mcap", rig=RIG, full_scale=4095) == 3
    with Recording(tmp_path / "a.mcap") as recording:
        for number, frame in enumerate(recording):
            np.testing.assert_array_equal(frame.counts, pixels["/camera/image", number])
            assert frame.full_scale == 4095
            assert frame.camera_time_s == pytest.approx(7 + 1e-9 * number)


def test_colour_of_a_bag_becomes_linear_grey(tmp_path):
    from d3s.files.images import light_of, samples_of

    pixels = foreign_bag(tmp_path / "bag", "/camera", encoding="bgr8", dtype="u1", channels=3)
    from_bag(tmp_path / "bag", tmp_path / "a.mcap")
    with Recording(tmp_path / "a.mcap") as recording:
        grey = recording.frame(0).raw
    expected = light_of(samples_of(pixels["/camera", 0][..., ::-1])).grey
    np.testing.assert_array_equal(grey, expected)


def test_a_bag_that_does_not_say_which_topics_is_refused(tmp_path):
    foreign_bag(tmp_path / "bag", "/a", "/b")
    with pytest.raises(InputError, match=r"which topics have frames.*: /a, /b"):
        from_bag(tmp_path / "bag", tmp_path / "a.mcap")
    with pytest.raises(InputError, match="/none"):
        from_bag(tmp_path / "bag", tmp_path / "a.mcap", images=("/none",))
    assert not (tmp_path / "a.mcap").exists()
    assert from_bag(tmp_path / "bag", tmp_path / "a.mcap", images=("/a", "/b")) == 3
    with pytest.raises(InputError, match="is no ROS 2 bag"):
        from_bag(tmp_path / "nothing", tmp_path / "c.mcap")
