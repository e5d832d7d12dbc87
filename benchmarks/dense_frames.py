"""Frames to tune and to judge densifying with: path-traced rooms, and plain scenes of the twin."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import d3s
from d3s.estimate.methods import estimate_quietly
from d3s.lab.dense.candidates import CELL_PX
from d3s.lab.dense.evidence import Cells, cells_of
from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.lab.evaluate.rooms import RoomSweep, render_rooms
from d3s.types import Image, Mask
from drift_frames import ROOM_SAMPLES, ROOM_SHAPE

RIG = d3s.Rig.paper_prototype()
THRESHOLD = 0.5  # confidence of measured depths: the default of the estimator
TUNING_SEEDS = range(1000, 1012)
TUNING_ROOMS = (*range(0, 50, 2), *range(1, 18, 2))  # even numbers have plain walls
WITHOUT_WEAK = 4  # two of so many rooms in a row are used without weak depths too
# Few light paths are quick and noisy: with this sensor noise, there is 1 % of noise in all.
TUNING_SAMPLES, TUNING_NOISE = 64, 0.0075
SHAPE, NOISE = (400, 700), 0.01


@dataclass(frozen=True, kw_only=True)
class DenseFrame:
    """Depth map with weak depths, or without, and the truth."""

    name: str
    is_room: bool
    depth_map: d3s.DepthMap
    true_m: Image
    has_weak: bool

    @cached_property
    def is_measured(self) -> Mask:
        """Pixels that the estimator measured by default."""
        return self.depth_map.valid & (self.depth_map.confidence >= THRESHOLD)

    @cached_property
    def cells(self) -> Cells:
        """Depth map of cells, which are filled."""
        return cells_of(self.depth_map, self.is_measured)

    @property
    def room(self) -> str:
        """Name of the room or scene, with weak depths and without."""
        return self.name.split(",")[0]

    @property
    def true_cells_px(self) -> Image:
        """True disparity of cells, zero at infinity."""
        return (self.per_dpt_px / self.true_m[::CELL_PX, ::CELL_PX]).astype(np.float32)

    @property
    def per_dpt_px(self) -> float:
        """Disparity of one dioptre."""
        optics = self.depth_map.rig.optics
        return optics.focal_length_px * optics.baseline_m


def tuning_frames(rooms: str, *, scenes: bool = True) -> Iterator[DenseFrame]:
    """Rooms and scenes with tuning textures; scenes and some rooms also without weak depths."""
    for seed in TUNING_ROOMS:
        found = _rooms(tuning_room(seed), rooms)
        yield from _both(found) if seed % WITHOUT_WEAK < 2 else found
    if scenes:
        yield from _both(_scenes())


def tuning_room(seed: int) -> RoomSweep:
    """One room with tuning textures."""
    return RoomSweep(
        patterns=TUNING_PATTERNS, count=1, seed=seed, samples=TUNING_SAMPLES, noise=TUNING_NOISE
    )


def report_frames(rooms: str, *, quick: bool = False) -> Iterator[DenseFrame]:
    """Rooms with report textures; if they are to be quick, those that `drift.py` renders."""
    sweep = RoomSweep(patterns=REPORT_PATTERNS)
    if quick:
        sweep = sweep.replace(shape=ROOM_SHAPE, samples=ROOM_SAMPLES)
    yield from _rooms(sweep, rooms)


def _rooms(sweep: RoomSweep, folder: str) -> Iterator[DenseFrame]:
    for (number,), clean in zip(sweep.places, render_rooms(sweep, RIG, folder), strict=True):
        trial = sweep.trial_of(clean, (number,))
        room = sweep.room(number)
        yield _frame(f"room {room.seed} {room.walls}", (trial.left, trial.right), clean.depth_m)


def _scenes() -> Iterator[DenseFrame]:
    for seed in TUNING_SEEDS:
        scene = d3s.RandomScene(seed=seed, nearest_m=0.4, patterns=TUNING_PATTERNS, surfaces="weak")
        pair = d3s.simulate(scene, RIG, shape=SHAPE, noise=NOISE, seed=seed)
        yield _frame(f"scene {seed}", (pair.left, pair.right), pair.depth_m)


def _frame(name: str, views: tuple[Image, Image], true_m: Image) -> DenseFrame:
    found = estimate_quietly(*views, RIG, options={"min_confidence": 0.0})
    return DenseFrame(
        name=name,
        is_room=name.startswith("room"),
        depth_map=found,
        true_m=true_m,
        has_weak=True,
    )


def _both(frames: Iterator[DenseFrame]) -> Iterator[DenseFrame]:
    for frame in frames:
        yield frame
        without = frame.depth_map.filter(min_confidence=THRESHOLD)
        yield replace(frame, name=f"{frame.name}, no weak", depth_map=without, has_weak=False)
