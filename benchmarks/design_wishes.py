"""Twenty wishes: answers of the search, verified on the twin and held against a random search.

Wishes are near the end of what can be met: half of them allow 1.0 to 1.2 times the smallest size
that a search finds for the error, half 1.0 to 1.2 times the least error that it finds for a size.
The rig of the estimator is off by the disparity that a calibration leaves.
"""

from typing import Any

import numpy as np

from d3s.lab.design.candidates import FixedValues, Requirements, load_catalogue
from d3s.lab.design.predict import predict
from d3s.lab.design.search import Answer, MeritFunction, Search, missed, search
from d3s.lab.design.verify import verify
from d3s.lab.design.wall import Lighting, Wall

WISHES, RANDOM = 20, 10_000
_DEPTHS = 3  # at which an answer is verified
_SEED = 4025


def random_wish(number: int) -> tuple[Requirements, FixedValues, Lighting]:
    """Wish, what is given, and the light."""
    rng = np.random.default_rng([_SEED, number])
    catalogue = load_catalogue()
    near = float(rng.uniform(0.15, 0.6))
    far = near * float(rng.uniform(2.5, 8))
    share = float(np.exp(rng.uniform(np.log(0.003), np.log(0.03))))
    wish = Requirements(
        reach_m=(near, far),
        **({"error_share": share} if rng.random() < 0.5 else {"error_m": share * far}),
        max_size_m=float(rng.uniform(0.012, 0.06)),
        min_field_rad=float(np.radians(rng.uniform(12, 35))),
    )
    sensors = (catalogue.sensors[rng.integers(len(catalogue.sensors))],)
    given = FixedValues(
        sensors=sensors if rng.random() < 0.5 else (),
        lenses=catalogue.lenses if rng.random() < 0.35 else (),
    )
    light = Lighting(noise=float(np.exp(rng.uniform(np.log(0.004), np.log(0.03)))))
    if rng.random() < 0.3:
        light = Lighting(illuminance_lx=float(rng.uniform(300, 2000)), exposure_s=0.02)
    return wish, given, light


def hard_wish(number: int) -> tuple[Requirements, FixedValues, Lighting] | None:
    """Wish near the end of what can be met; None if the random wish it is made of cannot be."""
    wish, given, light = random_wish(number)
    factor = float(np.random.default_rng([_SEED, number, 1]).uniform(1.0, 1.2))
    is_by_size = number % 2 == 0
    start = wish.replace(max_size_m=None) if is_by_size else wish
    found = search(start, given, light=light, seed=1)
    if not found.answers:
        return None
    if is_by_size:
        return wish.replace(max_size_m=factor * found.answers[0].size_m), given, light
    factor *= found.answers[-1].worst
    hard = wish.replace(error_m=factor * wish.error_m, error_share=factor * wish.error_share)
    return hard, given, light


def run_wishes() -> dict[str, Any]:
    """Figures of the first twenty wishes that are made of one that can be met."""
    rows: list[dict[str, Any]] = []
    number = wishes = dominated = 0
    missed: list[int] = []
    while wishes < WISHES:
        made = hard_wish(number)
        number += 1
        if made is None:
            continue
        wishes += 1
        wish, given, light = made
        found = search(wish, given, light=light)
        if not found.answers:
            missed.append(number - 1)
            print(number - 1, "not found again:", found.relaxed, flush=True)
            continue
        dominated += dominated_answers(found, MeritFunction(wish, given, light, Wall()))
        for one in found.answers:
            rows.append({"wish": number - 1, **_verified(one, wish, light, number)})
            print(rows[-1], flush=True)
    return {
        "wishes": WISHES,
        "not_found_again": missed,
        "answers": len(rows),
        "answers_met": sum(row["is_met"] for row in rows),
        "planes": sum(row["planes"] for row in rows),
        "planes_met": sum(row["planes_met"] for row in rows),
        "errors_over_wish": sorted(row["over"] for row in rows),
        "predicted_over_wish": sorted(row["predicted_over"] for row in rows),
        "dominated": dominated,
        "random": RANDOM,
        "rows": rows,
    }


def _verified(one: Answer, wish: Requirements, light: Lighting, seed: int) -> dict[str, Any]:
    at = [float(z) for z in 1 / np.linspace(*(1 / z for z in wish.reach_m), _DEPTHS)]
    prediction = predict(one.camera, depths_m=at, light=light)
    # The far end suffers most if disparities seem too small.
    measured = verify(prediction, at, calibration_px=wish.calibration_px, seed=seed)
    good = [plane.meets(wish.limit) for plane in measured]
    return {
        "goal": one.goal,
        "size_over_limit": one.size_m / (wish.max_size_m or np.inf),
        "predicted_over": one.worst,
        "over": max(plane.mae_m / float(wish.limit.limit_m(plane.depth_m)) for plane in measured),
        "is_met": all(good),
        "planes": len(good),
        "planes_met": sum(good),
    }


def dominated_answers(found: Search, figures: MeritFunction) -> int:
    """Number of answers that a camera of a random search beats in size, light and error."""
    merits = figures(figures.draw(RANDOM, np.random.default_rng(_SEED)))
    good = missed(found.wish, merits) == 0
    count = 0
    for one in found.answers:
        own = np.log([one.size_m, 1 / one.light_um2, one.worst])
        rivals = np.log([merits.size_m, 1 / merits.light_um2, merits.worst])[:, good]
        better = np.all(rivals <= own[:, np.newaxis] + 1e-9, axis=0)
        better &= np.any(rivals < own[:, np.newaxis] - 1e-3, axis=0)
        count += bool(better.any())
    return count
