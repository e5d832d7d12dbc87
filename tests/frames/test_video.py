"""Frames of video files and of cameras that OpenCV reads."""

import time

import cv2
import numpy as np
import pytest

import d3s
from d3s.camera.capture import FaultKind, LiveCamera
from d3s.camera.capture.uvc import UvcDevice
from d3s.errors import CameraError, InputError
from d3s.files.images import light_of, samples_of
from d3s.frames import Source, open_source
from d3s.frames.source_names import SourceOptions

RNG = np.random.default_rng(2)


def write(path, frames, codec="FFV1"):
    rows, cols = frames[0].shape[:2]
    depth = cv2.CV_16U if frames[0].dtype == np.uint16 else cv2.CV_8U
    settings = [
        cv2.VIDEOWRITER_PROP_IS_COLOR,
        int(frames[0].ndim == 3),
        cv2.VIDEOWRITER_PROP_DEPTH,
        depth,
    ]
    code = cv2.VideoWriter_fourcc(*codec)
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, code, 25.0, (cols, rows), settings)
    assert writer.isOpened()
    for frame in frames:
        writer.write(frame)
    writer.release()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_grey_video_without_loss_gives_the_counts_of_the_camera(tmp_path, dtype):
    largest = np.iinfo(dtype).max
    images = [RNG.integers(0, largest + 1, (48, 64)).astype(dtype) for _ in range(3)]
    write(tmp_path / "a.mkv", images)
    source: Source = open_source(str(tmp_path / "a.mkv"))
    with source:
        assert source.frame_count == 3
        frames = list(source)
    source.close()
    for frame, image in zip(frames, images, strict=True):
        np.testing.assert_array_equal(frame.counts, image, strict=True)
        assert frame.full_scale == largest
        assert frame.remarks == ()
    assert [one.time_s for one in frames] == pytest.approx([0, 0.04, 0.08], abs=1e-3)
    assert [one.name for one in frames] == ["000000", "000001", "000002"]


def test_both_views_side_by_side(tmp_path):
    image = RNG.integers(0, 65536, (48, 64)).astype(np.uint16)
    write(tmp_path / "a.mkv", [image])
    options = SourceOptions(side_by_side=True)
    with open_source(str(tmp_path / "a.mkv"), d3s.Rig.paper_prototype(), options) as source:
        (frame,) = source
    np.testing.assert_allclose(frame.views[0], image[:, :32] / 65535, atol=1e-6)
    np.testing.assert_allclose(frame.views[1], image[:, 32:] / 65535, atol=1e-6)


def test_a_lossy_codec_is_told(tmp_path):
    write(tmp_path / "a.avi", [RNG.integers(0, 256, (48, 64, 3)).astype(np.uint8)], "MJPG")
    with open_source(str(tmp_path / "a.avi")) as source:
        (frame,) = source
    assert "a.avi is compressed with loss (MJPG)" in frame.remarks[0]
    assert "in colour" in frame.remarks[1]
    assert frame.raw is not None


class FakeCapture:
    """Camera as OpenCV shows it, with 20 images, then unplugged for a while."""

    gone_until_s = 0.0
    image = RNG.integers(0, 256, (10, 16, 3)).astype(np.uint8)

    def __init__(self, number):
        self.left = 20 if number == 0 and time.monotonic() > self.gone_until_s else 0

    def isOpened(self):
        return self.left > 0

    def set(self, *_):
        return True

    def read(self):
        time.sleep(0.005)
        self.left -= 1
        if self.left < 0:
            FakeCapture.gone_until_s = time.monotonic() + 0.1
            return False, None
        return True, self.image

    def release(self):
        pass


def test_a_camera_on_usb_is_opened_again(monkeypatch):
    monkeypatch.setattr(cv2, "VideoCapture", FakeCapture)
    camera = LiveCamera(UvcDevice(0, side_by_side=True, rate_hz=30.0), retry_s=0.05)
    frames = []
    for frame in camera:
        frames.append(frame)
        if len(frames) == 30:
            break
    camera.close()
    grey = light_of(samples_of(FakeCapture.image[..., ::-1])).grey
    np.testing.assert_array_equal(frames[0].views[0], grey[:, :8])
    assert camera.fault_counts[FaultKind.UNPLUGGED] == 1
    assert [one.number for one in frames] == sorted({one.number for one in frames})
    with pytest.raises(InputError, match="v4l2-ctl"):
        camera.configure(exposure_s=0.1)


def test_a_camera_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(cv2, "VideoCapture", FakeCapture)
    with pytest.raises(CameraError, match="there is no camera uvc:3"):
        open_source("uvc:3")


def test_no_video_is_refused(tmp_path):
    (tmp_path / "a.avi").write_text("no video")
    with pytest.raises(InputError, match="cannot be read as a video"):
        open_source(str(tmp_path / "a.avi"))
