"""What must not matter to the joint method: threads, gain, offset, flips, shifts, sides."""

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
# Whole blocks of 4 x 4 pixels, of which each is a pixel of the smallest views, from either end.
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
    for threads in ("1", "2", "2", "3", "7", "500"):
        monkeypatch.setenv("D3S_THREADS", threads)
        assert_same_bytes(d3s.estimate(pair.left, pair.right, RIG), expected)


@pytest.mark.slow
def test_twenty_runs_are_one(monkeypatch, assert_same_bytes):
    pair = _mixed((300, 500))
    monkeypatch.setenv("D3S_THREADS", "1")
    expected = d3s.estimate(pair.left, pair.right, RIG)
    monkeypatch.setenv("D3S_THREADS", "2")
    for _ in range(20):
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


def _assert_within_rounding(
    found, expected, same_flags: float = 0.999, same_depth: float = 0.999
) -> None:
    """The same pixels have a depth, 999 of 1000, and it differs by less than sigma / 100."""
    assert (found.flags == expected.flags).mean() >= same_flags
    assert (found.valid == expected.valid).mean() >= 0.999
    both = found.valid & expected.valid
    assert both.mean() > 0.3
    sigma = expected.sigma_m[both]
    gap = np.abs(found.depth_m - expected.depth_m)[both] / sigma
    assert (gap < 0.01).mean() >= same_depth
    # Where two windows agree just so, rounding chooses between them.
    assert (gap < 1).mean() >= 0.9998
    assert (np.abs(found.sigma_m[both] / sigma - 1) < 1e-3).mean() >= 0.99


@pytest.mark.parametrize("gain", [2.0**-30, 0.25, 4.0, 2.0**20])
def test_gain_by_a_power_of_two_changes_no_byte(assert_same_bytes, gain):
    pair = _mixed()
    expected = d3s.estimate(pair.left, pair.right, RIG)
    found = d3s.estimate(np.float32(gain) * pair.left, np.float32(gain) * pair.right, RIG)
    assert_same_bytes(found, expected)


@pytest.mark.parametrize(
    ("gain", "offset"), [(0.3, 0.0), (1.7, 0.0), (3.9, 0.0), (1, 0.5), (1, -7)]
)
def test_gain_and_offset_do_not_matter(gain, offset):
    pair = _mixed()
    expected = d3s.estimate(pair.left, pair.right, RIG)
    # In double precision, so that the change itself does not round the views more than once.
    left, right = (gain * view.astype(np.float64) + offset for view in (pair.left, pair.right))
    _assert_within_rounding(d3s.estimate(left, right, RIG), expected)


def _flipped(found: d3s.DepthMap) -> d3s.DepthMap:
    names = ("depth_m", "sigma_m", "confidence", "flags")
    parts = {name: getattr(found, name)[::-1] for name in names}
    return d3s.DepthMap(rig=RIG, method="joint", options=found.options, **parts)


def test_upside_down_is_the_same_upside_down():
    pair = _mixed()
    expected = d3s.estimate(pair.left, pair.right, RIG)
    found = d3s.estimate(pair.left[::-1], pair.right[::-1], RIG)
    _assert_within_rounding(_flipped(found), expected)


@pytest.mark.parametrize("rows", [117, 118, 119])
def test_upside_down_with_other_pixels_in_the_small_views(rows):
    # Blocks from above are not those from below: the noise is another one there.
    pair = _mixed((rows, 260))
    expected = d3s.estimate(pair.left, pair.right, RIG)
    found = _flipped(d3s.estimate(pair.left[::-1], pair.right[::-1], RIG))
    both = found.valid & expected.valid
    assert both.sum() > 0.97 * expected.valid.sum()
    gap = (found.depth_m - expected.depth_m)[both] / expected.sigma_m[both]
    assert np.median(np.abs(gap)) < 0.3
    assert abs(gap.mean()) < 0.05


@pytest.mark.parametrize(("down", "right_px"), [(4, 0), (0, 8), (12, 20)])
def test_shift_of_both_views_moves_the_depth_along(plane, down, right_px):
    found, expected = _shifted(plane(0.9, "bark", shape=(201, 401)), down, right_px)
    # Another cut has another mean noise, and a window that agreed just so may not any more: of
    # 6500 pixels four cells.
    _assert_within_rounding(found, expected, same_depth=0.995)


@pytest.mark.parametrize(
    ("down", "right_px", "median", "most"),
    [
        (4, 0, 0.01, 0.99),
        (12, 20, 0.01, 0.96),
        (2, 2, 0.02, 0.96),
        (1, 0, 0.1, 0.95),
        (3, 5, 0.1, 0.95),
    ],
)
def test_shift_of_a_scene(down, right_px, median, most):
    # Paths come from the whole frame, steps in depth too. If the shift is no multiple of four, the
    # smallest views have other pixels; if it is odd, so have the cells that depth is found for.
    found, expected = _shifted(_mixed((201, 401)), down, right_px)
    assert (found.valid == expected.valid).mean() > 0.98
    both = found.valid & expected.valid
    gap = np.abs(found.depth_m - expected.depth_m)[both] / expected.sigma_m[both]
    assert np.median(gap) < median
    assert (gap < 1).mean() > most


def _shifted(pair: d3s.Pair, down: int, right_px: int) -> tuple[d3s.DepthMap, d3s.DepthMap]:
    """Depth of the same points in two cuts, away from the borders and what they hide."""
    rows, cols = 181, 361
    whole = d3s.estimate(pair.left[:rows, :cols], pair.right[:rows, :cols], RIG)
    cut = slice(down, rows + down), slice(right_px, cols + right_px)
    moved = d3s.estimate(pair.left[cut], pair.right[cut], RIG)
    there = slice(60 + down, 110 + down), slice(150 + right_px, 280 + right_px)
    return _cut(moved, slice(60, 110), slice(150, 280)), _cut(whole, *there)


def _cut(found: d3s.DepthMap, rows: slice, cols: slice) -> d3s.DepthMap:
    names = ("depth_m", "sigma_m", "confidence", "flags")
    parts = {name: getattr(found, name)[rows, cols] for name in names}
    return d3s.DepthMap(rig=RIG, method="joint", options=found.options, **parts)


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
