"""Saved depth maps, folders and recordings on the page."""

import time

import numpy as np
import pytest

import d3s
from d3s.camera.live.results import Filter
from d3s.camera.live.saved import SavedShow, open_saved
from d3s.errors import InputError
from d3s.files import write_image
from d3s.frames import Frame
from live_pages import DEPTHS_M, RIG, views


def depth_of(result) -> float:
    return float(np.nanmedian(result.depth_map.depth_m))


def wait_for(show, condition):
    deadline = time.monotonic() + 60
    while not ((found := show.results.read()) and condition(found)):
        assert time.monotonic() < deadline, show.status()
        time.sleep(0.01)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two saved depth maps, a folder of pairs, and a recording, of the same two frames."""
    folder = tmp_path_factory.mktemp("saved")
    for name in ("maps", "pairs"):
        (folder / name).mkdir()
    for index in (0, 1):
        left, right = views(index)
        d3s.estimate(left, right, RIG).save(folder / "maps" / f"{index}_depth.npz")
        write_image(folder / "pairs" / f"{index}_left.png", np.clip(left, 0, 1))
        write_image(folder / "pairs" / f"{index}_right.png", np.clip(right, 0, 1))
    recording = pytest.importorskip("d3s.camera.recording")
    with recording.Recorder(folder / "two.mcap", rig=RIG) as recorder:
        for number in (0, 1):
            recorder.put(Frame(number=number, views=views(number), time_s=number / 10))
    return folder


@pytest.mark.parametrize(
    ("name", "is_estimated", "rig"),
    [("maps", False, None), ("pairs", True, RIG), ("two.mcap", True, None)],
)
def test_time_line_of_maps_pairs_and_recordings(folder, name, is_estimated, rig):
    saved = open_saved(folder / name, rig)
    assert saved.is_estimated is is_estimated
    with SavedShow(saved) as show:
        assert show.abilities()["positions"] == 2
        first = wait_for(show, lambda one: one.position == 0)
        assert depth_of(first) == pytest.approx(DEPTHS_M[0], abs=0.02)
        show.act("seek", {"position": 1})
        second = wait_for(show, lambda one: one.position == 1)
        assert depth_of(second) == pytest.approx(DEPTHS_M[1], abs=0.02)
        assert second.serial > first.serial
        show.act("seek", {"position": 0})
        assert wait_for(show, lambda one: one.position == 0).serial > second.serial
        assert show.status()["state"] == "saved"


def test_settings_of_saved_frames(folder):
    with SavedShow(open_saved(folder / "pairs", RIG)) as show:
        first = wait_for(show, lambda _: True)
        show.change({"min_confidence": 0.9})
        assert show.results.peek() is first  # the filter needs no estimate
        assert show.settings.shown == Filter(min_confidence=0.9)
        show.change({"options": {"depth_range_m": [2.0, 3.0]}})
        again = wait_for(show, lambda one: one.serial > first.serial)
        assert again.depth_map.options.depth_range_m == (2.0, 3.0)


@pytest.mark.parametrize(
    ("action", "values", "words"),
    [
        ("seek", {"position": 2}, "0 to 1"),
        ("seek", {"position": "1"}, "0 to 1"),
        ("seek", {}, "0 to 1"),
        ("record", {"on": True}, "live cameras"),
    ],
)
def test_wrong_actions_are_refused(folder, action, values, words):
    show = SavedShow(open_saved(folder / "maps"))
    with pytest.raises(InputError, match=words):
        show.act(action, values)


def test_damaged_file_is_told_and_the_next_one_shown(folder, tmp_path):
    (tmp_path / "a.npz").write_bytes(b"no depth map")
    (tmp_path / "b.npz").write_bytes((folder / "maps" / "1_depth.npz").read_bytes())
    with SavedShow(open_saved(tmp_path)) as show:
        deadline = time.monotonic() + 30
        while "a.npz" not in show.status()["state"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        show.act("seek", {"position": 1})
        wait_for(show, lambda one: one.position == 1)


def test_wrong_places_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        open_saved(tmp_path / "nothing")
    with pytest.raises(InputError, match="--rig"):
        open_saved(folder / "pairs")
    (tmp_path / "text.txt").write_text("words")
    with pytest.raises(InputError, match="must be a depth map"):
        open_saved(tmp_path / "text.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no depth maps"):
        open_saved(tmp_path / "empty", RIG)
