"""Sessions: threads, captures, and the way to a calibration."""

import threading

import numpy as np
import pytest

import d3s
from align_frames import RIG, Camera, plain, wall
from d3s.camera.align.filing import CaptureFolder
from d3s.camera.align.session import Session, Watch, calibration_of, open_raw
from d3s.errors import CapturesError, InputError
from d3s.files import write_image
from d3s.frames import Frame, Refused
from small_camera import SMALL_DISTANCES_M, SMALL_LAYOUT, SMALL_MOUNTS, small_rig


def first_frame(session, timeout_s=60.0):
    """Newest measured frame, once there is one."""
    arrived = threading.Event()
    session.newest.listeners.append(arrived.set)
    while session.newest.peek() is None and not session.is_done:
        assert arrived.wait(timeout_s), session.problem
        arrived.clear()
    return session.newest.read()


def test_refused_and_broken_frames_are_passed_over():
    class Source(Camera):
        def __iter__(self):
            yield Refused("a.png", "cut off")
            yield Frame(number=1, raw=np.zeros((8, 8), np.float32))
            yield Frame(number=2, raw=wall(), whole=False)
            yield Frame(number=3, raw=wall())

    with Session(Source(), Watch(RIG)) as session:
        shown = first_frame(session)
        assert shown.number == 3 or shown is None


def test_pairs_are_refused():
    class Source(Camera):
        def __iter__(self):
            yield Frame(number=0, views=(wall(), wall()))

    with Session(Source(), Watch(RIG)) as session:
        assert first_frame(session) is None
        assert "needs raw frames" in session.problem


def test_capture_files_still_frames_and_refuses_others(tmp_path):
    camera = Camera(wall(seed=1), wall(seed=2))
    folder = CaptureFolder(tmp_path)
    with Session(camera, Watch(RIG), captures=folder) as session:
        good = session.capture(0.4)
        assert good.filed.name == "0.4000m.png"
        with pytest.raises(InputError, match="is filed"):
            session.capture(0.4)
        # Frames may be dropped on the way: a long cycle, so that three in a row always differ.
        camera.frames = tuple(np.roll(wall(), 4 * step, axis=0) for step in range(11))
        moved = session.capture(0.5)
        assert moved.filed is None
        assert "Wait until nothing moves" in moved.problems[0]
        camera.frames = (plain(),)
        assert "no texture" in session.capture(0.6).problems[0]
        with pytest.raises(CapturesError, match="4 more are needed"):
            Session(
                camera, Watch(RIG), captures=folder, calibrate=lambda *_: None
            ).run_calibration()
    assert [one.distance_m for one in folder.filed] == [0.4]


def test_capture_needs_a_folder_and_a_camera(tmp_path):
    with Session(Camera(wall()), Watch(RIG)) as session:
        with pytest.raises(InputError, match="--captures"):
            session.capture(0.4)
        with pytest.raises(InputError, match="--captures"):
            session.run_calibration()
    path = tmp_path / "one.png"
    write_image(path, wall())
    folder = CaptureFolder(tmp_path / "captures")
    with Session(open_raw(str(path), RIG), Watch(RIG), captures=folder) as session:
        first_frame(session)
        with pytest.raises(InputError, match="camera that runs"):
            session.capture(0.4)


def test_words_open_sources_of_raw_frames(tmp_path):
    write_image(tmp_path / "b.png", wall(seed=1))
    write_image(tmp_path / "a.png", wall(seed=2))
    names = [one.name for one in open_raw(str(tmp_path), RIG)]
    assert names == ["a.png", "b.png"]
    (tmp_path / "c.png").write_bytes(b"no image")
    outcomes = list(open_raw(str(tmp_path), RIG))
    assert isinstance(outcomes[2], Refused)
    with pytest.raises(InputError, match="no such file"):
        open_raw("nowhere.png", RIG)


@pytest.mark.slow
def test_captures_become_a_rig(tmp_path):
    """Boards at typed distances before the small camera, filed and calibrated."""
    rig = small_rig()
    camera = Camera(wall())
    folder = CaptureFolder(tmp_path)
    calibrate = calibration_of(rig)
    with Session(camera, Watch(rig), captures=folder, calibrate=calibrate) as session:
        for number, distance_m in enumerate(SMALL_DISTANCES_M):
            board = d3s.Plane(depth_m=distance_m, texture="calibration")
            camera.frames = (
                d3s.simulate_raw(
                    board, rig, layout=SMALL_LAYOUT, mounts=SMALL_MOUNTS, noise=0.005, seed=number
                ).image.clip(0, 1),
            )
            captured = session.capture(distance_m)
            if captured.filed is None:  # the first frames may be of the board before
                captured = session.capture(distance_m)
            assert captured.filed is not None, captured
        found = session.run_calibration()
        again = session.run_calibration()
    assert found.rig_path == tmp_path / "rig.toml"
    assert found.page_path.exists()
    assert again.rig_path == tmp_path / "rig_2.toml"
    assert "Calibration of" in found.page
    assert d3s.Rig.load(found.rig_path).calibration is not None
