"""`make bench`: time of the estimators, the twin and files against peers, measured in one run.

    .venv/bin/python benchmarks/run.py [--quick] [--only PART ...]

Contenders take turns and each keeps its best time; OpenCV's matchers have their fastest number of
threads. All pictures are simulated. --quick takes small frames and few rounds.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import cv2
import numpy as np
import PIL.Image
import scipy.fft
from scipy.ndimage import gaussian_filter, uniform_filter

import d3s
from d3s.files import read_image, write_image
from d3s.lab.peers.opencv import BmOptions, SgbmOptions
from d3s.lab.twin.random_scene import draw_mask
from d3s.optics.roots import real_cubic_roots
from d3s.optics.windows import window_sum
from d3s.runtime.parallel import thread_count
from d3s.runtime.scratch import release_scratch
from sheets import Sheet, show
from timing import machine_sheet, race

RIG = d3s.Rig.paper_prototype()
SCENE = d3s.RandomScene(seed=7, nearest_m=0.3, farthest_m=1.9, things=5)
NOISE = 0.01
FRAME, TILE = (902, 1802), (451, 901)
RAW = (2160, 3840)
TILES = ((1, 1), (1, 2), (2, 2), (2, 4), (4, 4))  # frames of 0.4 to 6.5 Mpx
DISPARITIES = 96


class Effort(NamedTuple):
    """How far frames shrink, and the number and time of rounds."""

    shrink: int = 1
    rounds: int = 9
    budget_s: float = 8.0

    def frame(self, shape: tuple[int, int] = FRAME) -> tuple[int, int]:
        """Return the shape of a frame."""
        return shape[0] // self.shrink, shape[1] // self.shrink

    def race(self, works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
        """Return the best time of each contender."""
        return race(works, rounds=self.rounds, budget_s=self.budget_s)


class Line(NamedTuple):
    """A figure, and what it should be."""

    what: str
    asked: str
    measured: str
    how: str = ""


def ratio_line(what: str, peer: str, asked: str, its_s: float, ours_s: float) -> Line:
    """Line of a peer's time over ours."""
    how = f"{peer} {1e3 * its_s:.4g} ms, ours {1e3 * ours_s:.4g} ms"
    return Line(what, asked, f"{its_s / ours_s:.2f} x", how)


def simulated(shape: tuple[int, int]) -> d3s.Pair:
    """Pair of the prototype with noise."""
    return d3s.simulate(SCENE, RIG, noise=NOISE, shape=shape)


def joint(pair: d3s.Pair) -> d3s.DepthMap:
    """Depth map by the defaults."""
    return d3s.estimate(pair.left, pair.right, RIG)


# The estimators -----------------------------------------------------------------------------------


def against_opencv(effort: Effort) -> Iterator[Line]:
    """Time of OpenCV's matchers over that of `joint`, each with its fastest settings."""
    pair = simulated(effort.frame())
    works = {"joint": lambda: joint(pair)} | matchers(pair)
    threads = cv2.getNumThreads()
    try:
        best = effort.race(works)
    finally:
        cv2.setNumThreads(threads)
    for kind, asked in (("SGBM", ">= 7"), ("SGBM, 3-way", ">= 2"), ("BM", ">= 1.5")):
        name = min((one for one in best if one.startswith(f"{kind}:")), key=best.__getitem__)
        what = f"joint, times faster than {kind}, {DISPARITIES} disparities"
        yield ratio_line(what, name, f"{asked} x", best[name], best["joint"])


def matchers(pair: d3s.Pair) -> dict[str, Callable[[], object]]:
    """OpenCV's matchers on 8-bit views, without the conversion to 8 bits and to depth."""
    low, high = np.percentile(pair.left, (0.1, 99.9))
    left, right = (
        np.clip(np.rint(255 * (view - low) / (high - low)), 0, 255).astype(np.uint8)
        for view in (pair.left, pair.right)
    )
    tuned = SgbmOptions()
    penalties = {(tuned.block_size_px, tuned.p1, tuned.p2), (5, 8 * 5**2, 32 * 5**2)}
    made = {
        f"{kind}: block {block}": cv2.StereoSGBM.create(0, DISPARITIES, block, p1, p2, mode=mode)
        for kind, mode in (
            ("SGBM", cv2.STEREO_SGBM_MODE_SGBM),
            ("SGBM, 3-way", cv2.STEREO_SGBM_MODE_SGBM_3WAY),
        )
        for block, p1, p2 in sorted(penalties)
    }
    block = BmOptions().block_size_px
    made[f"BM: block {block}"] = cv2.StereoBM.create(DISPARITIES, block)

    def work(matcher: cv2.StereoMatcher, count: int) -> Callable[[], object]:
        def run() -> None:
            cv2.setNumThreads(count)
            matcher.compute(left, right)

        return run

    counts = sorted({1, min(2, thread_count()), thread_count()})
    return {
        f"{name}, {count} thread{'s' * (count > 1)}": work(matcher, count)
        for name, matcher in made.items()
        for count in counts
    }


def with_threads(effort: Effort) -> Iterator[Line]:
    """Speed of two threads against one, and of two callers against one."""
    pair = simulated(effort.frame())

    def limited(count: str) -> Callable[[], object]:
        def run() -> None:
            with patch.dict(os.environ, {"D3S_THREADS": count}):
                joint(pair)

        return run

    def two_callers() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(joint, (pair, pair)))

    best = effort.race(
        {
            "1": limited("1"),
            "2": limited("2"),
            "a caller": lambda: joint(pair),
            "two": two_callers,
        }
    )
    yield ratio_line("joint, 2 threads", "1 thread", ">= 1.8 x", best["1"], best["2"])
    what = "joint, pairs of two callers at once"
    yield ratio_line(what, "a caller", "", best["a caller"], best["two"] / 2)


def growth(effort: Effort) -> Iterator[Line]:
    """Time per pixel over sizes of frames that are tiled from one picture."""
    tile = simulated(effort.frame(TILE))
    views = [[np.tile(view, times) for view in (tile.left, tile.right)] for times in TILES]
    works = {str(i): lambda pair=pair: d3s.estimate(*pair, RIG) for i, pair in enumerate(views)}
    best = effort.race(works)
    each = [best[str(i)] / pair[0].size for i, pair in enumerate(views)]
    sizes = ", ".join(f"{1e9 * one:.0f}" for one in each)
    grown = f"{100 * (max(each) / min(each) - 1):.0f} %"
    ends = [views[end][0].size / 1e6 for end in (0, -1)]
    how = f"ns a pixel, {ends[0]:.2g} to {ends[1]:.2g} Mpx: {sizes}"
    yield Line("joint, growth of the time of a pixel", "<= 15 %", grown, how)


def consensus(effort: Effort) -> Iterator[Line]:
    """Time of `consensus` over that of `joint`."""
    pair = simulated(effort.frame(TILE))
    best = effort.race(
        {
            "joint": lambda: joint(pair),
            "consensus": lambda: d3s.estimate(pair.left, pair.right, RIG, method="consensus"),
        }
    )
    what = "joint, times faster than `consensus`"
    yield ratio_line(what, "consensus", "", best["consensus"], best["joint"])


CALL = """
import sys, time, numpy as np, d3s
left, right = np.load(sys.argv[1])
d3s.estimate(left, right, d3s.Rig.paper_prototype())
print(time.time())
"""
IMPORT = "import time; t = time.time(); import d3s; print(time.time() - t)"


def new_processes(effort: Effort) -> Iterator[Line]:
    """First calls with nothing compiled and with everything, the import, and the memory."""
    pair = simulated(effort.frame())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pair.npy")
        np.save(path, np.stack([pair.left, pair.right]))
        given = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/compiled"}

        def told(*words: str) -> float:
            command = [sys.executable, *words]
            done = subprocess.run(command, env=given, stdout=subprocess.PIPE, text=True, check=True)
            return float(done.stdout.splitlines()[-1])

        def call() -> float:
            begun = time.time()
            return told("-c", CALL, str(path)) - begun

        yield Line("first call ever, with compilation", "<= 12 s", f"{call():.1f} s")
        warm_s = min(call() for _ in range(3))
        yield Line("first call of a process", "<= 0.7 s", f"{warm_s:.2f} s", "imports included")
        import_s = min(told("-c", IMPORT) for _ in range(3))
        yield Line("import d3s", "< 0.3 s", f"{import_s:.3f} s")
        taken = told(__file__, "--memory", str(path)) / 1e6
        yield Line("joint, peak memory above the two images", "<= 100 MB", f"{taken:.0f} MB")


def peak_memory(path: str) -> int:
    """Peak memory in bytes of a call in this process, above its images; Linux only."""
    left, right = np.load(path)
    d3s.estimate(left[:64, :200], right[:64, :200], RIG)  # loads all code
    release_scratch()
    Path("/proc/self/clear_refs").write_text("5")  # resets the largest size
    before = _status_bytes("VmRSS")
    d3s.estimate(left, right, RIG)
    return _status_bytes("VmHWM") - before


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def stages(effort: Effort) -> Sheet:
    """Table of the time of each stage, of the fastest of several calls."""
    pair = simulated(effort.frame())
    best = min(
        (joint(pair).timings_s for _ in range(effort.rounds)), key=lambda one: sum(one.values())
    )
    whole = sum(best.values())
    lines = [(name, f"{1e3 * s:.1f}", f"{100 * s / whole:.0f}") for name, s in best.items()]
    title = f"where the time of joint goes, {effort.frame()[0]} x {effort.frame()[1]} px"
    return Sheet(title, ("stage", "ms", "%"), [*lines, ("all", f"{1e3 * whole:.1f}", "100")])


# The twin, files, equations -----------------------------------------------------------------------


def twin(effort: Effort) -> Iterator[Line]:
    """Time of the twin against an FFT of the frame, of layers against a plane, and its memory."""
    shape = effort.frame()
    image = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def transform() -> object:
        spectrum = scipy.fft.rfft2(image, workers=2)
        return scipy.fft.irfft2(spectrum, s=shape, workers=2)

    def plane() -> object:
        return d3s.simulate(d3s.Plane(depth_m=1.0), RIG, noise=NOISE, shape=shape)

    layers = ten_layers(shape)
    best = effort.race(
        {
            "fft": transform,
            "plane": plane,
            "layers": lambda: d3s.simulate(layers, RIG, noise=NOISE, shape=shape),
        }
    )
    what, peer = "twin, a plane", "FFT of the frame and back"
    yield ratio_line(what, peer, ">= 0.1 x", best["fft"], best["plane"])
    what = "twin, ten layers"
    yield ratio_line(what, "a plane", ">= 0.08 x", best["plane"], best["layers"])
    code = (
        "import d3s; d3s.simulate_raw(d3s.Plane(depth_m=0.5, texture='calibration'), "
        "d3s.Rig.paper_prototype(), noise=0.01)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Line("twin, a raw frame: memory", "< 1000 MB", f"{taken:.0f} MB")


def ten_layers(shape: tuple[int, int]) -> d3s.Layered:
    """Nine objects at different depths in front of a wall."""
    rng = np.random.default_rng(0)
    things = [
        d3s.Layer(
            depth_m=depth_m,
            texture=d3s.Texture(seed=number),
            mask=draw_mask(
                "blob", shape, (rng.uniform(0, shape[1]), rng.uniform(0, shape[0])), 250, rng
            ),
        )
        for number, depth_m in enumerate(1 / np.linspace(1 / 0.35, 1 / 1.4, 9))
    ]
    return d3s.Layered(layers=(*things, d3s.Layer(depth_m=1.7)))


def files(effort: Effort) -> Iterator[Line]:
    """Reading of a raw frame of 16-bit PNG against Pillow alone."""
    rng, shape = np.random.default_rng(0), effort.frame(RAW)
    light = 0.4 + 0.3 * gaussian_filter(rng.random(shape), 5) + rng.normal(0, NOISE, shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "raw.png")
        write_image(path, np.clip(light, 0, 1).astype(np.float32))

        def by_pillow() -> object:
            with PIL.Image.open(path) as picture:
                return np.asarray(picture) / np.float32(65535)

        best = effort.race({"d3s": lambda: read_image(path), "Pillow": by_pillow})
    what = f"read {shape[1]} x {shape[0]} px of PNG"
    yield ratio_line(what, "Pillow", ">= 0.9 x", best["Pillow"], best["d3s"])


def equations(effort: Effort) -> Iterator[Line]:
    """Roots of cubics against NumPy, and window sums against SciPy."""
    rng = np.random.default_rng(0)
    cubics, image = rng.normal(size=(4, 2000)), rng.normal(size=effort.frame())
    best = effort.race(
        {
            "roots": lambda: real_cubic_roots(*cubics),
            "numpy": lambda: [np.roots(one[::-1]) for one in cubics.T],
            "sum": lambda: window_sum(image, 31),
            "scipy": lambda: uniform_filter(image, 31, mode="constant"),
        }
    )
    what = "real roots of 2000 cubics"
    yield ratio_line(what, "numpy.roots", "", best["numpy"], best["roots"])
    what = "sums of windows of 31 px"
    yield ratio_line(what, "uniform_filter", "", best["scipy"], best["sum"])


PARTS = {
    one.__name__: one
    for one in (
        *(against_opencv, with_threads, growth, consensus, new_processes),
        *(twin, files, equations),
    )
}


def main(words: Sequence[str]) -> None:
    """Measure the wanted parts, and show them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small frames, about a minute")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--memory", metavar="FILE", help=argparse.SUPPRESS)  # a process of its own
    given = parser.parse_args(words)
    if given.memory:
        print(json.dumps(peak_memory(given.memory)))
        return
    effort = Effort(shrink=4, rounds=2, budget_s=1.0) if given.quick else Effort()
    show([machine_sheet()])
    lines = [line for name in given.only for line in PARTS[name](effort)]
    headings = ("what", "asked", "measured", "how")
    show([Sheet(f"d3s {d3s.__version__}", headings, lines, words=(0, 3)), stages(effort)])


if __name__ == "__main__":
    main(sys.argv[1:])
