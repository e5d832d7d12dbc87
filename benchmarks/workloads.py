"""Frames, efforts and contenders of the speed measurements."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

import d3s
from d3s.estimate import JointOptions
from d3s.lab.peers.opencv import BmOptions, SgbmOptions
from d3s.runtime.parallel import thread_count
from d3s.types import Image
from timing import Work, race

Shape = tuple[int, int]

RIG = d3s.Rig.paper_prototype()
SCENE = d3s.RandomScene(seed=7, nearest_m=0.3, farthest_m=1.9, things=5)
NOISE = 0.01
DISPARITIES = 96


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sizes of the frames and number of repetitions."""

    name: str
    frame: Shape = (902, 1802)
    tile: Shape = (451, 901)  # tile of which the frames of the growth in pixels consist
    tiles: tuple[Shape, ...] = ((1, 1), (1, 2), (2, 2), (2, 4), (4, 4))
    widths_px: tuple[int, ...] = (21, 42, 84, 168)  # widths of the depth range, as disparities
    counts: tuple[int, ...] = (60, 120, 240, 480)  # numbers of candidates of the consensus
    numbers: tuple[int, ...] = (32, 64, 96, 192)  # numbers of disparities of OpenCV
    joint_oracle: Shape = (451, 901)
    consensus_oracle: Shape = (150, 640)
    rounds: int = 9
    budget_s: float = 6.0  # of one race of contenders
    children: int = 4  # new processes of each kind

    def race(self, works: Mapping[str, Work]) -> dict[str, float]:
        """Best time of each contender, in seconds."""
        return race(works, rounds=self.rounds, budget_s=self.budget_s)


DEFAULT = Effort(name="default")
QUICK = Effort(
    name="quick",
    frame=(300, 600),
    tile=(150, 300),
    tiles=((1, 1), (2, 2)),
    widths_px=(42, 84),
    counts=(30, 60),
    numbers=(48, 96),
    joint_oracle=(150, 300),
    consensus_oracle=(60, 300),
    rounds=2,
    budget_s=2.0,
    children=1,
)


class Pair(NamedTuple):
    """Two views, and the true depth of the left one."""

    left: Image
    right: Image
    depth_m: Image

    @property
    def shape(self) -> Shape:
        return self.left.shape[0], self.left.shape[1]

    @property
    def megapixels(self) -> float:
        return self.left.size / 1e6

    def middle(self, shape: Shape) -> "Pair":
        """Crop of this shape from the middle."""
        parts = (
            slice((n - size) // 2, (n - size) // 2 + size)
            for n, size in zip(self.shape, shape, strict=True)
        )
        part = tuple(parts)
        return Pair(*(np.ascontiguousarray(image[part]) for image in self))

    def tiled(self, times: Shape) -> "Pair":
        """Pair repeated down and across."""
        return Pair(*(np.tile(image, times) for image in self))

    def grey(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Views as 8-bit images, for OpenCV."""
        low, high = np.percentile(self.left, (0.1, 99.9))
        scaled = [255 * (view - low) / max(high - low, 1e-6) for view in (self.left, self.right)]
        left, right = (np.clip(np.rint(view), 0, 255).astype(np.uint8) for view in scaled)
        return left, right


def simulated(scene: Any, shape: Shape) -> Pair:
    """Pair of the prototype with 1 % noise."""
    pair = d3s.simulate(scene, RIG, noise=NOISE, shape=shape)
    return Pair(pair.left, pair.right, pair.depth_m)


def joint(pair: Pair, **options: Any) -> Work:
    """Contender `joint`: from images to depth map."""
    checked = JointOptions(**options)
    return Work(lambda: d3s.estimate(pair.left, pair.right, RIG, options=checked))


# Matchers of OpenCV -------------------------------------------------------------------------------


class Setting(NamedTuple):
    """Matcher of OpenCV with its number of threads."""

    name: str
    matcher: Any
    threads: int

    def work(self, pair: Pair) -> Work:
        """Contender: the matching alone, without the conversion to 8 bits and to depth."""
        left, right = pair.grey()
        return Work(
            lambda: self.matcher.compute(left, right), lambda: cv2.setNumThreads(self.threads)
        )


def sgbm_settings(mode: int, number: int = DISPARITIES) -> list[Setting]:
    """Settings with block and penalties of our peer, and with those of OpenCV's manual."""
    tuned = SgbmOptions()
    choices = {
        "as tuned": (tuned.block_size_px, tuned.p1, tuned.p2),
        "as usual": (5, 8 * 5**2, 32 * 5**2),
    }
    return [
        Setting(f"block {block}, {_threads(threads)}", matcher, threads)
        for block, p1, p2 in choices.values()
        for matcher in [cv2.StereoSGBM.create(0, number, block, p1, p2, mode=mode)]
        for threads in _thread_counts()
    ]


def bm_settings(number: int = DISPARITIES) -> list[Setting]:
    """Settings of block matching with the block size of our peer."""
    matcher = cv2.StereoBM.create(number, BmOptions().block_size_px)
    return [Setting(_threads(threads), matcher, threads) for threads in _thread_counts()]


def _thread_counts() -> list[int]:
    """One, two and all threads: OpenCV is not always fastest with most."""
    return sorted({1, min(2, thread_count()), thread_count()})


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"
