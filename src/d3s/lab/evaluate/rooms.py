"""Path-traced rooms: which are rendered, what is measured, and its summary."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from pydantic import Field

from d3s.errors import OptionsError
from d3s.lab.evaluate.contender import as_contenders
from d3s.lab.evaluate.evaluation import (
    Evaluation,
    Job,
    Methods,
    Rows,
    Run,
    SweepResults,
    consecutive,
    contenders_of,
    run_evaluation,
)
from d3s.lab.evaluate.scenes import measure_scene, summarise_regions, summarise_scenes
from d3s.lab.evaluate.sweep import REPORT_PATTERNS, Shape, Sweep, Trial
from d3s.lab.evaluate.truth import truth_of
from d3s.lab.rooms.mitsuba import STEPS, render_room
from d3s.lab.rooms.room import Room, Walls
from d3s.lab.rooms.store import load_or_render
from d3s.lab.twin.pair import Pair
from d3s.lab.twin.sensor import expose_pair
from d3s.rig import Rig
from d3s.types import Progress

EDGE_REACH_PX = 12
"""Pixels within this distance of a jump of depth are near an edge."""
REPORT_SEED = 1000
"""First seed of the rooms with report textures. Those with other textures begin with 0."""
# Leaves a twelfth of the gradients of white noise.
_SMOOTHING_PX = 1.0
_WALLS: tuple[Walls, Walls] = ("plain", "textured")


class RoomSweep(Sweep):
    """Random rooms, half of them with plain walls.

    Rooms with tuning textures and rooms with report textures have no seed in common.
    """

    count: int = Field(default=8, ge=1, le=REPORT_SEED, description="how many rooms")
    # A sixth of the prototype's frame, since a pair takes minutes.
    shape: Shape = Field(default=(400, 700), description="rows and columns of a view")
    samples: int = Field(default=512, ge=16, le=65536, description="the light paths per pixel")

    @classmethod
    def quick(cls) -> Self:
        """Return a small sweep that takes a minute or two."""
        return cls(count=2, shape=(200, 350), samples=64)

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Number of each room."""
        return [(number,) for number in range(self.count)]

    def check(self) -> None:
        """Refuse a seed with which tuning and report rooms would be the same."""
        if self.seed + self.count > REPORT_SEED and not self._is_report:
            raise OptionsError(
                f"seed={self.seed} with {self.count} rooms must stay below {REPORT_SEED}: later "
                "seeds are those of the report textures."
            )

    def room(self, number: int) -> Room:
        """Return one of the rooms; even seeds have plain walls, odd ones textured walls."""
        seed = self.seed + number
        if self._is_report:
            seed += REPORT_SEED
        return Room(
            seed=seed,
            walls=_WALLS[seed % 2],
            patterns=self.patterns,
            shape=self.shape,
            samples=self.samples,
        )

    @property
    def _is_report(self) -> bool:
        return set(self.patterns) <= set(REPORT_PATTERNS)

    def trial(self, place: Sequence[int], rig: Rig) -> Trial:
        """Return the noisy pair of one room; it is rendered, which takes minutes."""
        return self.trial_of(render_room(self.room(place[0]), rig), place)

    def trial_of(self, clean: Pair, place: Sequence[int]) -> Trial:
        """Return the noisy pair of one room from its rendered pair.

        Its key is `scene`, the seed of the room, and `walls`.
        """
        (number,) = place
        room = self.room(number)
        left, right = expose_pair(clean.left, clean.right, self.noise, (self.seed, number))
        return Trial(
            left=left,
            right=right,
            truth=truth_of(_smoothed(clean), self.noise, edge_reach_px=EDGE_REACH_PX),
            rig=clean.rig,
            key={"scene": room.seed, "walls": room.walls},
        )


def evaluate_rooms(
    methods: Methods,
    *,
    keep: str | os.PathLike[str],
    sweep: RoomSweep | None = None,
    rig: Rig | None = None,
    **run: Unpack[Run],
) -> SweepResults:
    """Evaluate every method on every room of a sweep, all on the same images.

    Rooms that `render_rooms` has not rendered into `keep` yet are rendered first, by Mitsuba.

    Parameters
    ----------
    methods, rig, run
        As for `evaluate_planes`.
    keep
        Folder of rendered pairs.
    sweep
        Which rooms; 8 of 400 x 700 pixels with report textures and 1 % noise if left out.

    Returns
    -------
    Results whose rows are named by `scene` (a seed), `walls`, `region` and `method`. A line of the
    summary is that of `evaluate_scenes`, with the regions of each kind of walls in `walls`.
    """
    contenders = as_contenders(methods)
    sweep, rig = sweep or RoomSweep(), rig or Rig.paper_prototype()
    sweep.check()
    render_rooms(sweep, rig, keep)
    place = os.path.abspath(keep)  # noqa: PTH100 - workers may have another working folder
    return run_evaluation(
        ROOMS,
        contenders,
        sweep=sweep,
        rig=rig,
        work=partial(_measure_room, place),
        written=[place],
        **run,
    )


def render_rooms(
    sweep: RoomSweep, rig: Rig, keep: str | os.PathLike[str], *, progress: Progress | None = None
) -> list[Pair]:
    """Render all rooms of a sweep into a folder, or load those that are there.

    `progress` counts 100 steps for each room. Mitsuba is needed only where a room is missing.
    """
    sweep.check()
    steps = consecutive(progress, [STEPS] * sweep.count)
    return [load_or_render(sweep.room(number), rig, keep, say) for number, say in enumerate(steps)]


def _smoothed(clean: Pair) -> Pair:
    """Pair for the bound: noise of the path tracer would count as texture of plain walls."""
    import cv2

    left, right = (
        cv2.GaussianBlur(view, (0, 0), _SMOOTHING_PX) for view in (clean.left, clean.right)
    )
    return replace(clean, left=left.astype(np.float32), right=right.astype(np.float32))


def _measure_room(keep: str, job: Job) -> Rows:
    """Load the pair of a job, and measure all contenders on it."""
    sweep, rig = RoomSweep(**job["sweep"]), Rig(**job["rig"])
    (number,) = job["place"]
    clean = load_or_render(sweep.room(number), rig, Path(keep))
    return measure_scene(sweep.trial_of(clean, (number,)), contenders_of(job))


def summarise_rooms(results: SweepResults) -> list[dict[str, Any]]:
    """Summarise all rooms: one line for each method, with its regions by kind of walls."""
    lines = summarise_scenes(results)
    for line in lines:
        rows = results.rows.where(method=line["method"])
        line["walls"] = {some[0]["walls"]: summarise_regions(some) for some in rows.groups("walls")}
    return lines


ROOMS = Evaluation(name="rooms", sweep=RoomSweep, measure=measure_scene, summarise=summarise_rooms)
