"""Cameras of Basler, on the emulator of their library."""

import importlib.util
import sys
import time

import numpy as np
import pytest

from d3s.camera.capture import FaultKind, LiveCamera
from d3s.camera.capture.basler import BaslerDevice
from d3s.errors import CameraError, InputError
from d3s.frames import open_source


def test_without_the_package_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypylon", None)
    with pytest.raises(InputError, match=r"pip install .*\[basler\]'"):
        BaslerDevice()


@pytest.fixture
def emulator(monkeypatch):
    if importlib.util.find_spec("pypylon") is None:
        pytest.skip("pypylon is not installed")
    monkeypatch.setenv("PYLON_CAMEMU", "2")


def take(camera, count):
    frames = []
    for frame in camera:
        frames.append(frame)
        if len(frames) == count:
            return frames
    return frames


@pytest.mark.usefixtures("emulator")
def test_frames_have_the_full_scale_of_the_format():
    with open_source("basler:0815-0001") as camera:
        frames = take(camera, 5)
        assert camera.name == "Emulation 0815-0001"
        assert camera.state == "grabbing"
    assert frames[0].counts.dtype == np.uint16
    assert frames[0].full_scale == 4095
    assert 0 < frames[0].counts.max() <= 4095
    assert frames[0].camera_time_s is None
    assert [one.number for one in frames] == sorted({one.number for one in frames})
    assert np.any(frames[0].counts != frames[1].counts)
    assert frames[0].counts.flags.owndata


@pytest.mark.usefixtures("emulator")
def test_settings_are_read_and_changed():
    with LiveCamera(BaslerDevice("0815-0000")) as camera:
        assert camera.settings.exposure_s.value == pytest.approx(0.01)
        camera.configure(exposure_s=0.004, gain=6.0)
        assert camera.settings.exposure_s.value == pytest.approx(0.004)
        assert camera.settings.gain.value == pytest.approx(6.0, abs=0.1)
        with pytest.raises(InputError, match="exposure_s=1000 must be"):
            camera.configure(exposure_s=1000)


@pytest.mark.usefixtures("emulator")
def test_a_failed_buffer_is_marked_and_counted():
    device = BaslerDevice("0815-0000", rate_hz=50.0)
    camera = LiveCamera(device)
    device._camera.ForceFailedBufferCount.Value = 2
    device._camera.ForceFailedBuffer.Execute()
    frames = take(camera, 12)
    camera.close()
    assert [one.whole for one in frames].count(False) == 2
    assert camera.fault_counts[FaultKind.INCOMPLETE] == 2


@pytest.mark.usefixtures("emulator")
def test_a_camera_that_stops_is_opened_again():
    """Unplugging is not emulated; a camera whose grabbing was stopped stands for it."""
    device = BaslerDevice("0815-0000", rate_hz=50.0)
    camera = LiveCamera(device, retry_s=0.1)
    frames = []
    started_s = time.monotonic()
    for frame in camera:
        frames.append(frame)
        if len(frames) == 5:
            device._camera.StopGrabbing()
        if len(frames) == 10:
            break
    camera.close()
    assert time.monotonic() - started_s < 10
    assert camera.fault_counts[FaultKind.UNPLUGGED] == 1
    numbers = [one.number for one in frames]
    assert numbers == sorted(set(numbers))


@pytest.mark.usefixtures("emulator")
def test_an_unknown_camera_is_an_error_that_names_the_others():
    with pytest.raises(CameraError, match="there are: 0815-0000, 0815-0001"):
        LiveCamera(BaslerDevice("4711"))
