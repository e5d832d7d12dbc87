"""Measurements of the speed of the estimators: each function returns rows, most also a table.

The pairs are simulated. Times depend on the machine and its load, so nothing here is a test.
"""

import math
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import cv2
import numpy as np
from numpy.typing import NDArray

import d3s
import fresh
from d3s.estimate import ConsensusOptions, JointOptions
from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.checked_pair import checked_pair
from d3s.estimate.consensus.consensus_plan import settings_of
from d3s.estimate.consensus.reference import reference_consensus
from d3s.runtime.parallel import thread_count
from figures import Row, candidates_sheet, pixels_sheet
from sheets import Sheet
from timing import Work, race
from workloads import (
    DISPARITIES,
    RIG,
    SCENE,
    Effort,
    Pair,
    Setting,
    bm_settings,
    joint,
    sgbm_settings,
    simulated,
)

# Against OpenCV -----------------------------------------------------------------------------------


class Opponents(NamedTuple):
    """Names of the fastest settings of OpenCV's matchers."""

    sgbm: str
    bm: str


def _oracle() -> Any:
    """The oracle of the tests."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    return import_module("oracle")


def against_opencv(pair: Pair, effort: Effort) -> tuple[list[Row], Opponents]:
    """Time of `joint` against OpenCV's matchers, each with its fastest settings and threads."""
    groups = {
        "sgbm": sgbm_settings(cv2.STEREO_SGBM_MODE_SGBM),
        "sgbm_3way": sgbm_settings(cv2.STEREO_SGBM_MODE_SGBM_3WAY),
        "bm": bm_settings(),
    }
    works = {"joint": joint(pair)}
    for key, settings in groups.items():
        works |= {f"{key}: {one.name}": one.work(pair) for one in settings}
    # The most important figure: more rounds, and a final race between the fastest of each kind.
    with opencv_threads_kept():
        best = race(works, rounds=effort.rounds, budget_s=4 * effort.budget_s)
        winners = {
            key: min((one.name for one in settings), key=lambda name: best[f"{key}: {name}"])
            for key, settings in groups.items()
        }
        finalists = ("joint", *(f"{key}: {name}" for key, name in winners.items()))
        final = race(
            {name: works[name] for name in finalists},
            rounds=3 * effort.rounds,
            budget_s=4 * effort.budget_s,
        )
    best |= {name: min(best[name], seconds) for name, seconds in final.items()}
    ours, rows = best["joint"], []
    for key in groups:
        its = best[f"{key}: {winners[key]}"]
        note = f"{_size(pair)}; its fastest: {winners[key]}"
        rows.append(Row(key=key, measured=its / ours, peer_s=its, ours_s=ours, note=note))
    return rows, Opponents(winners["sgbm"], winners["bm"])


@contextmanager
def opencv_threads_kept() -> Iterator[None]:
    before = cv2.getNumThreads()
    try:
        yield
    finally:
        cv2.setNumThreads(before)


# Against the oracles ------------------------------------------------------------------------------


def against_oracles(pair: Pair, effort: Effort) -> list[Row]:
    """Time against NumPy in double precision, and agreement of the results."""
    rows: list[Row] = []
    agreement: dict[str, dict[str, float]] = {}
    part = pair.middle(effort.joint_oracle)
    views = checked_pair(part.left, part.right)
    best, ours, its = _both(
        lambda: d3s.estimate(part.left, part.right, RIG),
        lambda: _oracle().joint_reference(*views, RIG, JointOptions()),
        effort,
    )
    rows.append(_times("joint_oracle", part, best))
    step_px = JointOptions().search_scale or 2
    disparities = (_joint_disparity(one) for one in (ours, its))
    agreement["joint"] = _agreement(*(one / step_px for one in disparities))

    part = pair.middle(effort.consensus_oracle)
    views = checked_pair(part.left, part.right)
    best, ours, its = _both(
        lambda: d3s.estimate(part.left, part.right, RIG, method="consensus"),
        lambda: reference_consensus(*views, RIG, ConsensusOptions()),
        effort,
    )
    rows.append(_times("consensus_oracle", part, best))
    # Candidates are evenly spaced in inverse depth, so inverse depth counts steps.
    near, far = (1 / depth for depth in default_depth_range_m(RIG.optics))
    per_step = (near - far) / (settings_of(ConsensusOptions(), None).candidates - 1)
    agreement["consensus"] = _agreement(*(1 / one.depth_m / per_step for one in (ours, its)))
    for key, one in agreement.items():
        in_one = f"{100 * one['in_one_only']:.2f} % of all have a depth in one only"
        rows.append(Row(key=f"{key}_same", measured=100 * one["same"], note=in_one))
        rows.append(Row(key=f"{key}_rest", measured=one["farthest_steps"]))
    return rows


def _both(fast: Any, slow: Any, effort: Effort) -> tuple[dict[str, float], Any, Any]:
    """Best times of both, and their results; the slow one runs once or twice."""
    given = {}

    def keep(name: str, work: Any) -> Work:
        return Work(lambda: given.update({name: work()}))

    fast()  # compiles
    works = {"fast": keep("fast", fast), "slow": keep("slow", slow)}
    best = race(works, rounds=2, least=1, budget_s=effort.budget_s, warm=False)
    # The fast one gets more rounds.
    again = race({"fast": keep("fast", fast)}, rounds=effort.rounds, budget_s=effort.budget_s)
    best["fast"] = min(best["fast"], again["fast"])
    return best, given["fast"], given["slow"]


def _times(key: str, pair: Pair, best: dict[str, float]) -> Row:
    its, ours = best["slow"], best["fast"]
    return Row(key=key, measured=its / ours, peer_s=its, ours_s=ours, note=f"both at {_size(pair)}")


def _joint_disparity(result: Any) -> NDArray[np.float64]:
    """Disparity of a depth map or of the oracle's result, in pixels."""
    depth_m = getattr(result, "depth_m", None)
    if depth_m is None:
        depth_m = result.map.depth_m
    return np.asarray(RIG.optics.disparity_px(np.asarray(depth_m, dtype=np.float64)))


def _agreement(ours: NDArray[Any], its: NDArray[Any]) -> dict[str, float]:
    """Agreement of two maps in steps of the search: same means less than half a step apart."""
    both = np.isfinite(ours) & np.isfinite(its)
    apart = np.abs(ours - its)[both]
    one = np.isfinite(ours) != np.isfinite(its)
    if not apart.size:
        return {"same": math.nan, "farthest_steps": math.nan, "in_one_only": float(one.mean())}
    return {
        "same": float(np.mean(apart < 0.5)),
        "farthest_steps": float(np.rint(apart).max()),
        "in_one_only": float(one.mean()),
    }


# Memory, processes, threads -----------------------------------------------------------------------


def in_new_processes(pair: Pair, effort: Effort) -> list[Row]:
    """Times of first calls, and peak memory of one call."""
    with fresh.saved(pair.left, pair.right) as path:
        calls = fresh.first_calls(path, effort.children)
        memory = fresh.memory(path)
    size = _size(pair)
    largest = memory.peak_by_rusage if memory.peak is None else memory.peak
    kept = "" if memory.kept is None else f", {memory.kept / 1e6:.0f} MB with the result after it"
    by_rusage = f"{memory.peak_by_rusage / 1e6:.0f} MB by ru_maxrss"
    return [
        Row(key="memory", measured=largest / 1e6, note=f"{size}; {by_rusage}{kept}"),
        Row(key="warm_call", measured=calls.warm_s, note=f"{size}, from the start of Python"),
        Row(key="import", measured=calls.import_s),
        Row(key="first_ever", measured=calls.ever_s, note=f"{size}, no compiled code on disk"),
        Row(key="first_ever_line", measured=len(calls.said), note=" ".join(calls.said)[:80]),
    ]


def with_threads(pair: Pair, effort: Effort) -> list[Row]:
    """Speed of two threads against one, and of two callers against one."""
    one, two = (_with_environment("D3S_THREADS", count, joint(pair)) for count in ("1", "2"))

    def both() -> None:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(joint(pair).run) for _ in range(2)]:
                done.result()

    best = effort.race({"1": one, "2": two, "one": joint(pair), "two": Work(both)})
    size, cores = _size(pair), thread_count()
    speedup = best["1"] / best["2"] if cores > 1 else None
    return [
        Row(key="threads", measured=speedup, peer_s=best["1"], ours_s=best["2"], note=size),
        Row(
            key="callers",
            measured=2 * best["one"] / best["two"],
            peer_s=best["one"],
            ours_s=best["two"] / 2,
            note=f"{size}, {cores} cores; ours: a pair",
        ),
    ]


def _with_environment(name: str, value: str, work: Work) -> Work:
    def run() -> None:
        with patch.dict(os.environ, {name: value}):
            work.run()

    return Work(run)


# Growth -------------------------------------------------------------------------------------------


def growth_in_pixels(effort: Effort, opponents: Opponents) -> tuple[list[Row], Sheet]:
    """Time over the size of the frame; the frames are tiled from one picture."""
    tile = simulated(SCENE, effort.tile)
    pairs = [tile.tiled(times) for times in effort.tiles]
    # All sizes take turns, since a shared machine changes its speed from minute to minute. Scratch
    # memory is that of the frame before, so each run follows an untimed one of its own size.
    works = {_size(pair): joint(pair) for pair in pairs}
    ours = race(
        {name: Work(work.run, work.run) for name, work in works.items()},
        rounds=effort.rounds,
        budget_s=6 * effort.budget_s,
    )
    table = []
    for pair in pairs:
        with opencv_threads_kept():
            best = effort.race(
                {
                    "sgbm_s": _chosen(_default_sgbm(DISPARITIES), opponents.sgbm).work(pair),
                    "bm_s": _chosen(bm_settings(), opponents.bm).work(pair),
                }
            )
        rows, cols = pair.shape
        table.append(
            {
                "rows": rows,
                "cols": cols,
                "megapixels": pair.megapixels,
                "joint_s": ours[_size(pair)],
                **best,
            }
        )
    per_pixel = [line["joint_s"] / line["megapixels"] for line in table]
    smallest, largest = (table[end]["megapixels"] for end in (0, -1))
    beyond = 100 * (max(per_pixel) / min(per_pixel) - 1)
    note = f"{len(table)} sizes from {smallest:.2g} to {largest:.2g} Mpx"
    return [Row(key="pixels", measured=beyond, note=note)], pixels_sheet(table)


def growth_in_candidates(
    pair: Pair, effort: Effort, opponents: Opponents
) -> tuple[list[Row], Sheet]:
    """Time over the width of the range, and over the number of candidates."""
    optics = RIG.optics
    _, far_m = default_depth_range_m(optics)
    far_px = float(optics.disparity_px(far_m))
    works: dict[str, Work] = {}
    tile = pair.middle(effort.tile)
    for width in effort.widths_px:
        near_m = float(optics.depth_m(far_px + width))
        works[f"joint {width}"] = joint(pair, depth_range_m=(near_m, far_m))
    for number in effort.numbers:
        matcher = _chosen(_default_sgbm(number), opponents.sgbm)
        works[f"sgbm {number}"] = matcher.work(pair)
    for count in effort.counts:
        options = ConsensusOptions(candidates=count)
        works[f"consensus {count}"] = Work(
            lambda options=options: d3s.estimate(  # type: ignore[misc]
                tile.left, tile.right, RIG, method="consensus", options=options
            )
        )
    with opencv_threads_kept():
        best = race(works, rounds=effort.rounds, budget_s=4 * effort.budget_s)
    table: dict[str, list[dict[str, float]]] = {"joint": [], "sgbm": [], "consensus": []}
    for name, seconds in best.items():
        method, count_word = name.split()
        size = (tile if method == "consensus" else pair).megapixels
        line = {"candidates": int(count_word), "megapixels": size, "seconds": seconds}
        table[method].append(line)
    note = (
        f"{_size(pair)}; steepest part, ranges of {effort.widths_px[0]} to "
        f"{effort.widths_px[-1]} px; `consensus`: {steepest(table['consensus']):.2f}"
    )
    row = Row(key="candidates", measured=steepest(table["joint"]), note=note)
    return [row], candidates_sheet(table)


def steepest(line: list[dict[str, float]]) -> float:
    """Largest exponent of growth between neighbours; 1 is linear."""
    return max(
        math.log(after["seconds"] / before["seconds"])
        / math.log(after["candidates"] / before["candidates"])
        for before, after in pairwise(line)
    )


def _default_sgbm(number: int) -> list[Setting]:
    return sgbm_settings(cv2.STEREO_SGBM_MODE_SGBM, number)


def _chosen(settings: list[Setting], name: str) -> Setting:
    (found,) = (one for one in settings if one.name == name)
    return found


# Stages -------------------------------------------------------------------------------------------


def stages(pair: Pair, effort: Effort) -> dict[str, Any]:
    """`timings_s` of the fastest of several calls, and the time of the whole call."""
    best_s, timings = math.inf, {}
    for _ in range(effort.rounds):
        given: dict[str, Any] = {}

        def run(given: dict[str, Any] = given) -> None:
            given["est"] = d3s.estimate(pair.left, pair.right, RIG)

        seconds = race({"one": Work(run)}, rounds=1, warm=False)["one"]
        if seconds < best_s:
            best_s, timings = seconds, dict(given["est"].timings_s)
    rest = max(best_s - sum(timings.values()), 0.0)
    rows, cols = pair.shape
    return {"rows": rows, "cols": cols, "stages_s": {**timings, "rest": rest}, "whole_s": best_s}


def _size(pair: Pair) -> str:
    return f"{pair.shape[0]} x {pair.shape[1]} px"
