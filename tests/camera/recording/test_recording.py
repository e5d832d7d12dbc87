"""Recordings: frames come back bit for bit, from whole files and from files that were cut."""

import errno
import time
from itertools import pairwise

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.camera.recording import Recorder, Recording, RecordingWriter, mcap
from d3s.camera.recording.conversion import recover
from d3s.errors import InputError, OutputError
from d3s.files import DepthImage
from d3s.frames import Frame, Refused, Source, open_source

RNG = np.random.default_rng(4)
RIG = d3s.Rig.paper_prototype().replace(
    calibration=calibration(frame_rows_px=120, frame_cols_px=260)
)


def counts_frame(number, **changes):
    counts = RNG.integers(0, 4096, (120, 260), dtype=np.uint16)
    values = {"counts": counts, "full_scale": 4095, "time_s": 100 + 0.1 * number}
    return Frame(number=number, **values | changes)


def views_frame(number):
    views = RNG.normal(size=(2, 20, 30)).astype(np.float32)
    views[0, 3, 4] = np.nan
    return Frame(number=number, views=(views[0], views[1]), time_s=100 + 0.1 * number)


def write(path, frames, rig=RIG):
    with RecordingWriter(path, rig=rig, notes={"camera": "test"}) as writer:
        for frame in frames:
            writer.write(frame)


def same(one, other):
    for name in ("counts", "raw"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)
    for view, expected in zip(one.views or (), other.views or (), strict=True):
        np.testing.assert_array_equal(view, expected, strict=True)
    names = ("full_scale", "number", "time_s", "camera_time_s", "whole", "remarks", "warnings")
    assert all(getattr(one, name) == getattr(other, name) for name in names)
    return True


def test_frames_come_back_bit_for_bit(tmp_path):
    bytes_8 = RNG.integers(0, 256, (7, 9), dtype=np.uint8)
    frames = [
        counts_frame(0, camera_time_s=12.345678901234, lost_before=2, remarks=("turned",)),
        counts_frame(3, whole=False),
        views_frame(4),
        Frame(number=5, raw=RNG.random((11, 12), dtype=np.float32), warnings=("odd",)),
        Frame(number=6, counts=bytes_8, full_scale=255, time_s=101.0),
    ]
    write(tmp_path / "a.mcap", frames)
    source: Source = open_source(str(tmp_path / "a.mcap"))
    assert source.frame_count == 5
    with source as opened:
        found = list(opened)
        assert opened.rig() == RIG
        assert opened.notes == {"camera": "test"}
        assert not opened.is_cut
        assert opened.frame(2).views[0].shape == (20, 30)
        assert opened.times_s[0] == 0
    assert all(same(one, other) for one, other in zip(found, frames, strict=True))
    assert [one.lost_before for one in found] == [2, 0, 0, 0, 0]
    assert [one.name for one in found][:2] == ["000000", "000001"]
    assert found[0].counts.flags.writeable


def test_other_readers_open_it(tmp_path):
    """The reader of `mcap`, by the definitions in the file, and the one of `rosbags`."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    frame = counts_frame(0)
    with RecordingWriter(tmp_path / "a.mcap", rig=RIG) as writer:
        writer.write(frame)
        depth = RNG.random((61, 81), dtype=np.float32)
        writer.write_depth(
            DepthImage(depth_m=depth, sigma_m=depth / 9, focal_length_px=200.0, baseline_m=0.01), 0
        )
    with (tmp_path / "a.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        found = {
            channel.topic: (schema.name, message, decoded)
            for schema, channel, message, decoded in reader.iter_decoded_messages()
        }
        assert [one.name for one in reader.iter_attachments()] == ["rig.toml"]
    name, _, raw = found["/camera/image_raw"]
    assert name == "sensor_msgs/msg/Image"
    assert (raw.encoding, raw.height, raw.width, raw.step) == ("mono16", 120, 260, 520)
    np.testing.assert_array_equal(np.frombuffer(raw.data, "<u2").reshape(120, 260), frame.counts)
    assert found["/depth/image"][2].encoding == "32FC1"
    np.testing.assert_array_equal(
        np.frombuffer(found["/depth/image"][2].data, "<f4").reshape(61, 81), depth
    )
    assert found["/camera/camera_info"][2].header.stamp.nanosec == raw.header.stamp.nanosec
    assert list(found["/camera/camera_info"][2].k[2::3]) == [*RIG.calibration.anchor_left_px, 1]
    info = found["/depth/camera_info"][2]
    assert (info.k[0], info.width, info.distortion_model) == (200.0, 81, "plumb_bob")
    assert found["/depth/disparity"][2].f == 200
    # Depth belongs to its frame by the time.
    assert found["/depth/image"][1].log_time == found["/camera/image_raw"][1].log_time


def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(tmp_path):
    frames = [counts_frame(number) for number in range(4)]
    write(tmp_path / "a.mcap", frames)
    content = (tmp_path / "a.mcap").read_bytes()
    path = tmp_path / "cut.mcap"
    read = []
    for size in np.linspace(len(content) - 1, 200, 60).astype(int):
        path.write_bytes(content[:size])
        try:
            with Recording(path) as recording:
                found = list(recording)
        except InputError:
            found = []
        assert all(same(one, other) for one, other in zip(found, frames, strict=False))
        read.append(len(found))
    assert read == sorted(read, reverse=True)
    assert set(read) == {0, 1, 2, 3, 4}


def test_recover_makes_a_file_whole(tmp_path):
    from mcap.reader import make_reader

    frames = [counts_frame(number) for number in range(4)]
    write(tmp_path / "a.mcap", frames)
    content = (tmp_path / "a.mcap").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(content[: int(0.7 * len(content))])
    found = recover(tmp_path / "cut.mcap", tmp_path / "whole.mcap")
    assert (found.was_cut, found.damaged) == (True, 0)
    with (tmp_path / "whole.mcap").open("rb") as file:
        counts = make_reader(file).get_summary().statistics.channel_message_counts
    assert set(counts.values()) == {found.frames}
    with Recording(tmp_path / "whole.mcap") as recording:
        assert not recording.is_cut
        assert recording.rig() == RIG
        assert recording.notes == {"camera": "test"}
        assert all(same(one, other) for one, other in zip(recording, frames, strict=False))
        assert recording.frame_count == found.frames in (2, 3)
    with pytest.raises(OutputError, match="exists"):
        recover(tmp_path / "cut.mcap", tmp_path / "whole.mcap")
    with pytest.raises(InputError, match="is the file that is read"):
        recover(tmp_path / "cut.mcap", tmp_path / "cut.mcap", overwrite=True)


def test_a_damaged_frame_is_refused_and_the_next_one_follows(tmp_path):
    frames = [counts_frame(number) for number in range(4)]
    write(tmp_path / "a.mcap", frames)
    content = bytearray((tmp_path / "a.mcap").read_bytes())
    with Recording(tmp_path / "a.mcap") as recording:
        (_, first), (_, second), *_ = recording._frames
    content[first + (second - first) * 5 // 4] ^= 0xFF
    (tmp_path / "bad.mcap").write_bytes(content)
    with Recording(tmp_path / "bad.mcap") as recording:
        found = list(recording)
    assert [isinstance(one, Refused) for one in found] == [False, True, False, False]
    assert "crc validation failed in Chunk" in found[1].reason
    assert recover(tmp_path / "bad.mcap", tmp_path / "mended.mcap").damaged == 1


@pytest.mark.parametrize("content", [b"", b"no recording", b"\x89MCAP0\r\n"])
def test_no_recording_is_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / "a.mcap"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.mcap: "):
        Recording(path)
    with pytest.raises(InputError, match="there is no such file"):
        Recording(tmp_path / "none.mcap")


class _SlowWriter(RecordingWriter):
    def write(self, frame, **rest):
        time.sleep(0.05)
        super().write(frame, **rest)


def test_a_slow_disk_drops_frames_and_counts_them_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("d3s.camera.recording.writer.RecordingWriter", _SlowWriter)
    size = counts_frame(0).counts.nbytes
    recorder = Recorder(tmp_path / "a.mcap", rig=RIG, queue_bytes=3 * size)
    frames = [counts_frame(number) for number in range(12)]
    kept = [recorder.put(frame) for frame in frames]
    time.sleep(0.3)
    kept += [recorder.put(counts_frame(12)), recorder.put(counts_frame(13))]
    recorder.close()
    assert not recorder.put(counts_frame(14))
    assert 0 < recorder.dropped - 1 == kept.count(False) < 11
    assert recorder.written == kept.count(True)
    with Recording(tmp_path / "a.mcap") as recording:
        found = list(recording)
        assert recording.dropped() == kept.count(False)
    content = (tmp_path / "a.mcap").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(content[: content.index(b"d3s_end") - 20])
    with Recording(tmp_path / "cut.mcap") as recording:
        assert recording.is_cut
        assert recording.dropped() == kept.count(False)
    assert [one.number for one in found] == [i for i, one in enumerate(kept) if one]
    # The gap is known where it was.
    for before, one in pairwise(found):
        assert one.number - before.number == one.lost_before + 1


def test_a_full_disk_keeps_every_frame_but_the_last(tmp_path, monkeypatch):
    frames = [counts_frame(number) for number in range(8)]
    write(tmp_path / "whole.mcap", frames)
    limit = (tmp_path / "whole.mcap").stat().st_size // 2

    class _Full(mcap._Output):
        def write(self, data):
            if self.error is None and self.tell() + len(data) > limit:
                super().write(bytes(data)[: max(limit - self.tell(), 0)])
                self.error = OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(mcap, "_Output", _Full)
    recorder = Recorder(tmp_path / "a.mcap", rig=RIG)
    for frame in frames:
        recorder.put(frame)
    with pytest.raises(OutputError, match="No space left on device"):
        recorder.close()
    assert recorder.state.startswith("failed: ")
    with Recording(tmp_path / "a.mcap") as recording:
        assert recording.is_cut
        found = list(recording)
    assert recorder.written == len(found)
    assert recorder.written + recorder.dropped == 8
    assert len(found) in (3, 4)
    assert all(same(one, other) for one, other in zip(found, frames, strict=False))
