"""What must not matter to the joint method, beside what `tests/claims` holds: threads, sides."""

import multiprocessing
import threading

import numpy as np
import pytest

import d3s

RIG = d3s.Rig.paper_prototype()
CHILD = """
import numpy as np, d3s
views = (np.load(f"{folder}/{side}.npy") for side in ("left", "right"))
np.save(f"{folder}/depth.npy", d3s.estimate(*views, d3s.Rig.paper_prototype()).depth_m)
"""
SHAPE = (120, 260)


def _mixed(shape: tuple[int, int] = SHAPE, seed: int = 3) -> d3s.Pair:
    scene = d3s.RandomScene(seed=seed, patterns=("gravel", "bark", "grass"))
    return d3s.simulate(scene, RIG, noise=0.01, shape=shape)


# Threads ------------------------------------------------------------------------------------------


def test_number_of_threads_does_not_matter(monkeypatch, assert_same_bytes):
    pair = _mixed()
    monkeypatch.setenv("D3S_THREADS", "1")
    expected = d3s.estimate(pair.left, pair.right, RIG)
    assert expected.density > 0.3
    for threads in 4 * ("1", "2", "3", "7", "500"):
        monkeypatch.setenv("D3S_THREADS", threads)
        assert_same_bytes(d3s.estimate(pair.left, pair.right, RIG), expected)


def test_four_callers_at_once(assert_same_bytes):
    pairs = [_mixed(seed=seed) for seed in range(2)]
    expected = [d3s.estimate(pair.left, pair.right, RIG) for pair in pairs]
    found = {}

    def caller(name: int) -> None:
        pair = pairs[name % 2]
        found[name] = [d3s.estimate(pair.left, pair.right, RIG) for _ in range(3)]

    callers = [threading.Thread(target=caller, args=(name,), daemon=True) for name in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(timeout=120)
    assert sorted(found) == [0, 1, 2, 3]
    for name, results in found.items():
        for result in results:
            assert_same_bytes(result, expected[name % 2])


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_child_finds_the_same(how, tmp_path):
    # The parent has threads and memory that a forked child must not use.
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {how} here")
    pair = _mixed()
    expected = d3s.estimate(pair.left, pair.right, RIG)
    np.save(tmp_path / "left.npy", pair.left)
    np.save(tmp_path / "right.npy", pair.right)
    context = multiprocessing.get_context(how)
    child = context.Process(target=exec, args=(CHILD, {"folder": str(tmp_path)}))
    child.start()
    child.join(timeout=120)
    assert child.exitcode == 0
    assert np.load(tmp_path / "depth.npy").tobytes() == expected.depth_m.tobytes()


# Pictures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [2.0**-30, 2.0**20])
def test_gain_by_a_power_of_two_changes_no_byte(assert_same_bytes, gain):
    pair = _mixed()
    expected = d3s.estimate(pair.left, pair.right, RIG)
    found = d3s.estimate(np.float32(gain) * pair.left, np.float32(gain) * pair.right, RIG)
    assert_same_bytes(found, expected)


# Sides --------------------------------------------------------------------------------------------


def _mirrored_rig() -> d3s.Rig:
    optics = RIG.optics
    return RIG.replace(
        optics=optics.replace(
            optical_power_left_dpt=optics.optical_power_right_dpt,
            optical_power_right_dpt=optics.optical_power_left_dpt,
        )
    )


@pytest.mark.parametrize(("depth_m", "texture"), [(0.5, "bark"), (0.9, "gravel"), (1.6, "grass")])
def test_seen_in_a_mirror(plane, depth_m, texture):
    pair = plane(depth_m, texture, shape=(161, 341))
    found = d3s.estimate(pair.left, pair.right, RIG)
    mirrored = d3s.estimate(pair.right[:, ::-1], pair.left[:, ::-1], _mirrored_rig())
    assert mirrored.density == pytest.approx(found.density, abs=0.03)
    error, other = (one.depth_m[one.valid] - depth_m for one in (found, mirrored))
    assert np.abs(other).mean() == pytest.approx(np.abs(error).mean(), rel=0.15)
    sigma = np.nanmean(found.sigma_m)
    assert abs(other.mean() - error.mean()) < 0.3 * sigma
    # The same point in both: by the true disparity, which is a whole pixel within a half.
    disparity = round(float(RIG.optics.disparity_px(depth_m)))
    back = mirrored.depth_m[:, ::-1][:, :-disparity]
    here = found.depth_m[:, disparity:]
    both = np.isfinite(back) & np.isfinite(here)
    assert both.mean() > 0.4
    gap = (back - here)[both] / found.sigma_m[:, disparity:][both]
    assert np.sqrt((gap**2).mean()) < 0.7
