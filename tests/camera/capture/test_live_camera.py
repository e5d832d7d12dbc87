"""Cameras that lose frames, freeze, are unplugged, and send frames twice or in part."""

import threading
import time
from itertools import pairwise

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.camera.capture import FaultKind, LiveCamera
from d3s.errors import InputError
from d3s.frames import Frame, Refused, Source
from fake_camera import FakeDevice, FakeFault, FakeScript, script_number

RATE_HZ = 200.0


def fake(*faults, rate_hz=RATE_HZ, **changes):
    script = FakeScript(rate_hz=rate_hz, faults=[FakeFault(**one) for one in faults], **changes)
    return FakeDevice(script)


def watched(*faults, rig=None, freeze_s=0.3, **changes):
    return LiveCamera(fake(*faults, **changes), rig=rig, freeze_s=freeze_s, retry_s=0.02)


def take(camera, count):
    outcomes = []
    for outcome in camera:
        outcomes.append(outcome)
        if len(outcomes) == count:
            break
    camera.close()
    return outcomes


def check_order(frames):
    """No frame of the scene is shown twice or after a later one, and numbers have its gaps."""
    scene = [script_number(one) for one in frames]
    assert scene == sorted(set(scene))
    numbers = [one.number for one in frames]
    assert numbers == sorted(set(numbers))
    for before, one in pairwise(frames):
        assert one.number - before.number == one.lost_before + 1
        assert one.time_s > before.time_s
    return scene


def test_a_good_camera_gives_every_frame():
    camera: Source = watched()
    frames = take(camera, 20)
    assert check_order(frames)[0] == 0
    assert camera.state == "grabbing"
    assert camera.frame_count is None
    assert frames[3].counts.dtype == np.uint16
    assert frames[3].full_scale == 4095


def test_dropped_frames_are_counted():
    camera = watched({"kind": "drop", "at": 5, "count": 3}, rate_hz=50.0)
    frames = take(camera, 8)
    scene = check_order(frames)
    assert sum(one.lost_before for one in frames) == scene[-1] - 7 >= 3
    assert frames[5].lost_before >= 3
    assert camera.lost == scene[-1] - 7
    assert camera.faults[0].kind == FaultKind.DROPPED


def test_a_frozen_camera_is_seen_and_comes_back():
    camera = watched({"kind": "freeze", "at": 10, "seconds": 0.8})
    states = []
    thread = threading.Thread(target=lambda: states.extend(_states(camera, 1.2)))
    thread.start()
    frames = take(camera, 60)
    thread.join()
    scene = check_order(frames)
    (fault,) = [one for one in camera.faults if one.kind == FaultKind.FROZEN]
    assert "no new frame for 0." in fault.words
    assert any(one.startswith("lost: no new frame") for one in states)
    # Frames that an outage cost are counted by the frame rate.
    missed = max(after - before for before, after in pairwise(scene))
    assert missed >= 0.8 * RATE_HZ
    assert 0.3 * missed < fault.frames < 3 * missed
    assert fault.back_s > fault.time_s


def _states(camera, seconds):
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        yield camera.state
        time.sleep(0.01)


def test_an_unplugged_camera_is_opened_again():
    camera = watched({"kind": "unplug", "at": 10, "seconds": 0.5})
    frames = take(camera, 30)
    check_order(frames)
    (fault,) = [one for one in camera.faults if one.kind == FaultKind.UNPLUGGED]
    assert "was unplugged" in fault.words
    assert 0.4 < fault.back_s - fault.time_s < 10
    assert camera.lost >= fault.frames > 0
    assert camera.state == "grabbing"


def test_old_frames_are_never_shown_as_new():
    camera = watched(
        {"kind": "repeat", "at": 5, "count": 2},
        {"kind": "number", "at": 10},
        {"kind": "time", "at": 15},
    )
    frames = take(camera, 20)
    scene = check_order(frames)
    assert not {5, 6, 10, 15} & set(scene)
    assert camera.fault_counts[FaultKind.OUT_OF_ORDER] == 4
    assert "came after its frame" in camera.faults[0].words


def test_a_camera_that_repeats_one_frame_for_ever_is_frozen():
    camera = watched({"kind": "repeat", "at": 5, "count": 10**5})
    threading.Timer(0.8, camera.close).start()
    frames = [script_number(one) for one in camera]
    assert frames[:5] == [0, 1, 2, 3, 4]
    assert FaultKind.FROZEN in camera.fault_counts


def test_a_counter_that_begins_anew_costs_two_frames():
    camera = watched({"kind": "number", "at": 10, "count": 1000})
    frames = take(camera, 14)
    scene = check_order(frames)
    assert scene[9] == 9
    assert scene[10] >= 12
    assert frames[10].lost_before >= 2


def test_a_frame_that_is_not_whole_is_marked():
    frames = take(watched({"kind": "incomplete", "at": 3}), 6)
    assert [one.whole for one in frames] == [True, True, True, False, True, True]
    with pytest.raises(InputError, match="frame 3 is not whole"):
        frames[3].pair(d3s.Rig.paper_prototype())


def test_a_change_of_size_or_full_scale_is_refused_in_a_sentence():
    camera = watched(
        {"kind": "size", "at": 3, "count": 2}, {"kind": "full_scale", "at": 6}, rows_px=60
    )
    outcomes = take(camera, 9)
    kinds = [isinstance(one, Refused) for one in outcomes]
    assert kinds == [False, False, False, True, True, False, True, False, False]
    assert (
        "has 30 x 100 px (rows x columns), and the first one has 60 x 100 px" in outcomes[3].reason
    )
    assert "full scale 255, and the first one has 4095" in outcomes[6].reason
    assert camera.lost >= 3


def test_frames_of_another_size_than_the_calibration_are_refused():
    rig = d3s.Rig.paper_prototype().replace(
        calibration=calibration(frame_rows_px=120, frame_cols_px=260)
    )
    (outcome,) = take(watched(rig=rig), 1)
    assert "the rig was calibrated for 120 x 260 px" in outcome.reason
    (frame,) = take(watched(rig=rig, rows_px=120, cols_px=260), 1)
    assert isinstance(frame, Frame)
    assert frame.pair(rig)[0].shape == (61, 81)


def test_settings_change_while_it_runs():
    camera = watched()
    means = []
    for frame in camera:
        means.append(frame.counts.mean())
        if len(means) == 3:
            camera.configure(exposure_s=0.005)
        if len(means) == 6:
            break
    camera.close()
    assert means[-1] == pytest.approx(means[0] / 2, rel=0.02)
    assert camera.settings.exposure_s.value == 0.005
    with pytest.raises(InputError, match=r"exposure_s=9 must be 1e-05 to 0\.1 s"):
        camera.configure(exposure_s=9)


def test_settings_are_set_again_after_an_outage():
    class Forgetful(FakeDevice):
        def open(self):
            super().open()
            self._exposure_s = 0.01

    script = FakeScript(rate_hz=RATE_HZ, faults=[FakeFault(kind="unplug", at=10, seconds=0.1)])
    camera = LiveCamera(Forgetful(script), retry_s=0.02)
    camera.configure(exposure_s=0.002)
    take(camera, 20)
    assert camera.fault_counts[FaultKind.UNPLUGGED] == 1
    assert camera.settings.exposure_s.value == 0.002


def test_closing_in_another_thread_ends_a_camera_that_waits():
    camera = watched({"kind": "freeze", "at": 1, "seconds": 60.0})
    threading.Timer(0.2, camera.close).start()
    started_s = time.monotonic()
    assert len(list(camera)) == 1
    assert time.monotonic() - started_s < 2


def test_the_first_frame_is_given_again():
    camera = watched()
    assert camera.first().number == 0
    assert [one.number for one in take(camera, 3)] == [0, 1, 2]
    with watched({"kind": "freeze", "at": 0, "seconds": 5.0}) as camera:
        assert camera.first(0.3) is None
