"""Files of rendered rooms, with a renderer that is not there."""

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.lab.rooms import mitsuba, store
from d3s.lab.rooms.room import Room, layout_of
from d3s.lab.twin.geometry import Window
from d3s.lab.twin.pair import Pair
from d3s.lab.twin.patterns import PATTERNS
from d3s.lab.twin.textures import Texture
from d3s.rig import Rig

RIG = Rig.paper_prototype()
ROOM = Room(seed=3, shape=(16, 24), samples=16)


@pytest.fixture
def rendered(monkeypatch):
    """List of the rooms that were rendered; each view is its seed."""
    done = []

    def render(room, rig, progress=None):
        done.append(room.seed)
        image = np.full(room.shape, room.seed, dtype=np.float32)
        return Pair(
            left=image,
            right=image + 1,
            depth_m=image + 2,
            all_in_focus=image + 3,
            occluded=image > 0,
            rig=rig,
        )

    monkeypatch.setattr(store, "render_room", render)
    monkeypatch.setattr(store, "mitsuba_version", lambda: "3.0")
    return done


def test_a_room_is_rendered_once(rendered, tmp_path):
    seen = []
    folder = tmp_path / "some" / "rooms"
    pairs = [
        store.load_or_render(ROOM, RIG, folder, lambda done, total: seen.append((done, total)))
        for _ in range(2)
    ]
    assert rendered == [3]
    assert seen == [(100, 100), (100, 100)]
    for name in ("left", "right", "depth_m", "all_in_focus", "occluded"):
        first, again = (getattr(pair, name) for pair in pairs)
        np.testing.assert_array_equal(first, again)
        assert first.dtype == again.dtype
    assert [path.name for path in folder.iterdir()] == [store.stored_path(ROOM, RIG, folder).name]


def test_a_damaged_file_is_rendered_again(rendered, tmp_path):
    path = store.stored_path(ROOM, RIG, tmp_path)
    path.write_bytes(b"PK\3\4 no archive")
    pair = store.load_or_render(ROOM, RIG, tmp_path)
    assert (pair.left == 3).all()
    assert rendered == [3]


def test_whatever_decides_the_picture_decides_the_name(rendered, tmp_path, monkeypatch):
    optics = RIG.optics.replace(baseline_m=0.004)
    paths = {
        store.stored_path(ROOM, RIG, tmp_path),
        store.stored_path(ROOM.replace(seed=4), RIG, tmp_path),
        store.stored_path(ROOM.replace(samples=64), RIG, tmp_path),
        store.stored_path(ROOM.replace(walls="plain"), RIG, tmp_path),
        store.stored_path(ROOM.replace(patterns=("bark",)), RIG, tmp_path),
        store.stored_path(ROOM, RIG.replace(optics=optics), tmp_path),
    }
    monkeypatch.setattr(store, "mitsuba_version", lambda: "3.1")
    paths.add(store.stored_path(ROOM, RIG, tmp_path))
    monkeypatch.setattr(store, "_PICTURES", "another")
    paths.add(store.stored_path(ROOM, RIG, tmp_path))
    assert len(paths) == 8
    # The name of a camera does not change its pictures.
    assert store.stored_path(ROOM, RIG.replace(name="mine"), tmp_path) in paths


def test_rooms_and_textures_are_those_of_the_version_of_the_pictures():
    """Where this fails, pictures change: `store._PICTURES` and the numbers here must too."""
    layout = layout_of(Room(seed=3), RIG.optics)
    texels = [Texture(pattern=name).raster(5, Window(0, 0, 64, 64)).values for name in PATTERNS]
    found = [*(solid.paint.albedo for solid in layout.solids), *(one.mean() for one in texels)]
    assert store._PICTURES[:8] == "36f0fb56"
    assert np.sum(found) == pytest.approx(21.9097, abs=1e-3)


def test_without_mitsuba_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(mitsuba.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"not installed: pip install .*\[render\]'"):
        store.load_or_render(ROOM, RIG, tmp_path)
