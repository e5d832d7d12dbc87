"""Cameras with GenICam, on the simulated producer of the package genicam."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from d3s.camera.capture.genicam import PRODUCERS, GenicamDevice
from d3s.errors import CameraError, InputError
from d3s.frames import open_source


def test_without_the_package_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "harvesters.core", None)
    with pytest.raises(InputError, match=r"pip install .*\[genicam\]'"):
        GenicamDevice()


@pytest.fixture
def producer(monkeypatch):
    if importlib.util.find_spec("harvesters") is None:
        pytest.skip("harvesters is not installed")
    folder = Path(importlib.util.find_spec("genicam").origin).parent
    if not list(folder.glob("*.cti")):
        pytest.skip("this genicam has no simulated producer")
    monkeypatch.setenv(PRODUCERS, str(folder))


@pytest.mark.usefixtures("producer")
def test_frames_come_numbered_and_copied():
    with open_source("genicam:1") as camera:
        frames = [frame for frame, _ in zip(camera, range(5), strict=False)]
        assert camera.name == "Viky 1"
        assert camera.state == "grabbing"
        assert camera.settings == (None, None)
        with pytest.raises(InputError, match="no such setting"):
            camera.configure(exposure_s=0.01)
    assert frames[0].counts.dtype == np.uint8
    assert frames[0].counts.shape == (400, 400)
    assert frames[0].full_scale == 255
    assert all(one.whole for one in frames)
    assert [one.number for one in frames] == sorted({one.number for one in frames})
    assert np.any(frames[0].counts != frames[4].counts)


@pytest.mark.usefixtures("producer")
def test_a_camera_can_be_opened_again():
    device = GenicamDevice("2", rate_hz=2.0)
    for _ in range(2):
        device.open()
        assert device.grab(2.0).counts.any()
        assert device.grab(1e-4) is None
        device.close()
        device.close()
    with pytest.raises(CameraError, match="not open"):
        device.grab(0.1)


@pytest.mark.usefixtures("producer")
def test_missing_cameras_formats_and_producers_are_told(monkeypatch, tmp_path):
    with pytest.raises(CameraError, match=r"no camera genicam:99; there are: 0, 1, 2\."):
        GenicamDevice("99").open()
    with pytest.raises(CameraError, match="Viky 0: "):
        GenicamDevice(rate_hz=1e6).open()
    monkeypatch.setenv(PRODUCERS, str(tmp_path))
    with pytest.raises(CameraError, match=PRODUCERS):
        GenicamDevice().open()
