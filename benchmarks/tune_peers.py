"""Tune the options of a method on the tuning textures: one field after the other.

    .venv/bin/python benchmarks/tune_peers.py METHOD FIELD=VALUE,VALUE,... ... [--rounds=1]

Values are JSON, as in `d3s evaluate`; each field starts from its default, or from --start, and
keeps its best value. The objective is the mean over planes of the log of the mean absolute error,
plus half of the same mean over scenes, with a penalty where fewer than 95 % (planes) or 90 %
(scenes) of the textured pixels are retained; for a sparse method, --sparse asks for one in a
thousand instead. Prints every setting with its objective, its errors over depth, its density, and
the share of errors within sigma.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import d3s
from d3s.lab.evaluate import TUNING_PATTERNS, Contender, PlaneSweep, SceneSweep, Score, score
from d3s.lab.evaluate.sweep import Trial, make_trial
from d3s.lab.twin.textures import Texture

DEPTHS_M = (0.25, 0.33, 0.5, 0.9, 1.4, 2.0)
PLANE_SHAPE = (160, 360)
SCENE_SHAPE = (240, 400)
SCENES = 2
SCENE_WEIGHT = 0.5
DENSE = (0.95, 0.90)  # least density of planes, and of scenes
SPARSE = (1e-3, 1e-3)
# 10 % of the pixels missing counts as much as an error larger by half.
PENALTY = 4.0
# Error of an empty map: larger than any error of this camera.
NOTHING_M = 1.0


@dataclass(frozen=True)
class Judgement:
    """Objective of a setting, the lower the better, with its scores."""

    objective: float
    planes: tuple[Score, ...]
    scenes: tuple[Score, ...]
    time_s: float

    def line(self) -> str:
        by_depth = [self.planes[i :: len(DEPTHS_M)] for i in range(len(DEPTHS_M))]
        errors = " ".join(f"{100 * _mean([s.mae_m for s in ss]):.2f}" for ss in by_depth)
        covered = _mean([s.coverage for s in self.planes])
        density = [_mean([s.density for s in ss]) for ss in (self.planes, self.scenes)]
        scenes_cm = 100 * _mean([s.mae_m for s in self.scenes])
        return (
            f"{self.objective:7.3f}  planes {errors} cm, density {density[0]:.3f}  scenes "
            f"{scenes_cm:.2f} cm, density {density[1]:.3f}  within sigma {covered:.2f}  "
            f"{self.time_s:.0f} s"
        )


def trials(patterns: Sequence[str]) -> tuple[list[Trial], list[Trial]]:
    """Simulate the planes and scenes that every method is tuned on."""
    rig = d3s.Rig.paper_prototype()
    sweep = PlaneSweep(patterns=tuple(patterns), shape=PLANE_SHAPE, depths_m=DEPTHS_M)
    planes = [
        make_trial(
            d3s.Plane(depth_m=depth_m, texture=Texture(pattern=pattern, seed=1)),
            rig,
            sweep,
            PLANE_SHAPE,
            (1, i, j),
        )
        for i, pattern in enumerate(patterns)
        for j, depth_m in enumerate(DEPTHS_M)
    ]
    random = SceneSweep(patterns=TUNING_PATTERNS, count=SCENES, shape=SCENE_SHAPE, seed=1000)
    scenes = [
        make_trial(random.scene(number), rig, random, SCENE_SHAPE, (2, number))
        for number in range(SCENES)
    ]
    return planes, scenes


def judge(
    contender: Contender, planes: Sequence[Trial], scenes: Sequence[Trial], sparse: bool
) -> Judgement:
    """Run a setting on all trials and compute its objective."""
    started = time.perf_counter()
    least = SPARSE if sparse else DENSE
    scores = []
    for group in (planes, scenes):
        maps = [contender.estimate(one.left, one.right, one.rig) for one in group]
        scores.append(tuple(score(m, one.truth) for m, one in zip(maps, group, strict=True)))
    terms = [_term(group, asked) for group, asked in zip(scores, least, strict=True)]
    objective = terms[0] + SCENE_WEIGHT * terms[1]
    return Judgement(objective, *scores, time.perf_counter() - started)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _term(scores: Sequence[Score], least_density: float) -> float:
    errors = [s.mae_m if s.retained else NOTHING_M for s in scores]
    # A pair without textured pixels has no density.
    missing = [max(least_density - s.density, 0.0) for s in scores if s.textured]
    return float(np.mean(np.log(errors)) + PENALTY * np.mean(missing or [0.0]))


def parsed(texts: Sequence[str]) -> dict[str, list[Any]]:
    fields = {}
    for text in texts:
        field, _, values = text.partition("=")
        fields[field] = [_value(one) for one in values.split(",")]
    return fields


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", help="a name of methods()")
    parser.add_argument("fields", nargs="*", help="FIELD=VALUE,VALUE,...")
    parser.add_argument("--start", default="{}", help="a JSON table of fields to start from")
    parser.add_argument("--rounds", type=int, default=1, help="how often all fields are gone over")
    parser.add_argument("--textures", type=int, default=3, help="how many of the tuning textures")
    parser.add_argument("--sparse", action="store_true", help="do not ask for density")
    told = parser.parse_intermixed_args()
    planes, scenes = trials(TUNING_PATTERNS[: told.textures])
    best = json.loads(told.start)
    seen: dict[str, Judgement] = {}

    def value_of(options: dict[str, Any]) -> Judgement:
        contender = Contender(method=told.method, options=options)
        key = contender.checked_options().model_dump_json()
        if key not in seen:
            seen[key] = judge(contender, planes, scenes, told.sparse)
            print(f"{seen[key].line()}  {json.dumps(options)}", flush=True)
        return seen[key]

    value_of(best)
    fields = parsed(told.fields)
    places = [(field, value) for field, values in fields.items() for value in values]
    for field, value in told.rounds * places:
        tried = best | {field: value}
        if value_of(tried).objective < value_of(best).objective:
            best = tried
    print(f"best: {value_of(best).line()}  {json.dumps(best)}")


if __name__ == "__main__":
    main()
