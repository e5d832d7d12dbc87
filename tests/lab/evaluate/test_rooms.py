"""Sweeps over rooms, with pairs of the twin in place of rendered ones."""

import numpy as np
import pytest

from d3s.errors import OptionsError
from d3s.lab.evaluate import TUNING_PATTERNS, RoomSweep, evaluate_rooms, rooms
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Layer, Layered
from d3s.rig import Rig

SHAPE = (110, 220)
RIG = Rig.paper_prototype()
SWEEP = RoomSweep(count=2, shape=SHAPE, samples=16)


def twin_pair(room, rig, folder, progress=None):
    """Square before a wall, in place of a room."""
    mask = np.zeros(room.shape)
    mask[30:80, 100:150] = 1
    layers = (Layer(depth_m=0.8, texture="bark", mask=mask), Layer(depth_m=1.2, texture="gravel"))
    if progress is not None:
        progress(100, 100)
    return simulate(Layered(layers=layers), rig, shape=room.shape)


@pytest.fixture
def results(monkeypatch, tmp_path):
    monkeypatch.setattr(rooms, "load_or_render", twin_pair)
    return evaluate_rooms(("bm", "sgbm"), keep=tmp_path, sweep=SWEEP, workers=1)


def test_tuning_and_report_rooms_have_no_seed_in_common():
    report, tuning = RoomSweep(), RoomSweep(patterns=TUNING_PATTERNS)
    assert [report.room(n).seed for n in range(3)] == [1000, 1001, 1002]
    assert [tuning.room(n).seed for n in range(3)] == [0, 1, 2]
    assert RoomSweep(patterns=("brick",)).room(0).seed == 1000
    assert RoomSweep(patterns=("brick", "leaves")).room(0).seed == 0
    with pytest.raises(OptionsError, match="seed=995 with 8 rooms must stay below 1000"):
        RoomSweep(patterns=TUNING_PATTERNS, seed=995).check()
    RoomSweep(seed=995).check()


def test_rooms_have_a_row_for_each_region_and_method(results):
    regions = ["all", "textured", "flat", "occluded", "near edges", "interior"]
    rows = results.rows.where(method="bm", scene=1001)
    assert rows.column("region") == regions
    assert set(rows.column("walls")) == {"textured"}
    assert len(results.rows) == 2 * 2 * len(regions)
    (near,) = rows.where(region="near edges")
    # A square of 50 px, with 12 px beyond the pixels on either side of its outline, less corners.
    assert 0.95 < near["pixels"] / (76 * 76 - 24 * 24) < 1


def test_noise_differs_between_rooms():
    clean = twin_pair(SWEEP.room(0), RIG, None)
    first, second, again = (SWEEP.trial_of(clean, (number,)) for number in (0, 1, 0))
    assert not np.array_equal(first.left, second.left)
    np.testing.assert_array_equal(first.left, again.left)
    assert np.std(first.left - clean.left) == pytest.approx(0.01, rel=0.03)
    assert first.key == {"scene": 1000, "walls": "plain"}


def test_noise_of_the_path_tracer_is_no_texture():
    grain = np.random.default_rng(0).normal(0.5, 0.005, (2, *SHAPE)).astype(np.float32)
    pair = twin_pair(SWEEP.room(0), RIG, None)
    plain = pair.__class__(
        left=grain[0],
        right=grain[1],
        depth_m=np.full_like(pair.depth_m, 0.8),
        all_in_focus=grain[0],
        occluded=np.zeros_like(pair.occluded),
        rig=RIG,
    )
    assert not SWEEP.trial_of(plain, (0,)).truth.textured.any()
    assert rooms.truth_of(plain, 0.01).textured.any()
