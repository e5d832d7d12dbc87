"""Twenty wishes: answers of the search, verified on the twin and held against a random search."""

from typing import Any

import numpy as np

from d3s.design.candidates import Judge, Merits
from d3s.design.catalogue import load_catalogue
from d3s.design.light import Light
from d3s.design.predict import predict
from d3s.design.search import Search, draw, judge_of, search, violations
from d3s.design.verify import verify
from d3s.design.wall import Wall
from d3s.design.wish import Given, Wish

WISHES, RANDOM = 20, 10_000
_DEPTHS = 3  # at which an answer is verified
_SEED = 4025


def random_wish(number: int) -> tuple[Wish, Given, Light]:
    """Wish, what is given, and the light."""
    rng = np.random.default_rng([_SEED, number])
    catalogue = load_catalogue()
    near = float(rng.uniform(0.15, 0.6))
    far = near * float(rng.uniform(2.5, 8))
    share = float(np.exp(rng.uniform(np.log(0.003), np.log(0.03))))
    wish = Wish(
        reach_m=(near, far),
        **({"error_share": share} if rng.random() < 0.5 else {"error_m": share * far}),
        max_size_m=float(rng.uniform(0.012, 0.06)) if rng.random() < 0.6 else None,
        min_field_rad=float(np.radians(rng.uniform(12, 35))),
    )
    sensors = (catalogue.sensors[rng.integers(len(catalogue.sensors))],)
    given = Given(
        sensors=sensors if rng.random() < 0.5 else (),
        lenses=catalogue.lenses if rng.random() < 0.35 else (),
    )
    light = Light(noise=float(np.exp(rng.uniform(np.log(0.004), np.log(0.03)))))
    if rng.random() < 0.3:
        light = Light(illuminance_lx=float(rng.uniform(300, 2000)), exposure_s=0.02)
    return wish, given, light


def run_wishes() -> dict[str, Any]:
    """Figures of the first twenty wishes that can be met."""
    answers = met = dominated = depths_met = depths = 0
    infeasible = relaxed = 0
    worst = []
    number = done = 0
    while done < WISHES:
        wish, given, light = random_wish(number)
        number += 1
        found = search(wish, given, light=light)
        if not found.answers:
            infeasible += 1
            relaxed += bool(found.relaxed)
            print(number, "cannot be met:", [one.words for one in found.relaxed], flush=True)
            continue
        done += 1
        dominated += dominated_answers(found, judge_of(wish, given, light, Wall()), given)
        for one in found.answers:
            at = [float(z) for z in 1 / np.linspace(*(1 / z for z in wish.reach_m), _DEPTHS)]
            prediction = predict(one.camera, depths_m=at, light=light)
            measured = verify(prediction, at, seed=number)
            good = [plane.meets(wish.limit) for plane in measured]
            over = max(p.mae_m / float(wish.limit.limit_m(p.depth_m)) for p in measured)
            worst.append(over)
            answers += 1
            met += all(good)
            depths += len(good)
            depths_met += sum(good)
            print(number, one.goal, f"{over:.2f} of the wish", all(good), flush=True)
    return {
        "wishes": WISHES,
        "answers": answers,
        "answers_met": met,
        "planes": depths,
        "planes_met": depths_met,
        "largest_error_over_wish": max(worst),
        "dominated": dominated,
        "random": RANDOM,
        "infeasible": infeasible,
        "infeasible_told": relaxed,
    }


def dominated_answers(found: Search, judge: Judge, given: Given) -> int:
    """Number of answers that a camera of a random search beats in size, light and error."""
    drawn = draw(judge, given, RANDOM, np.random.default_rng(_SEED))
    merits: Merits = judge.merits(drawn)
    scores = violations(found.wish).values()
    good = merits.is_possible & np.all([score(merits) <= 0 for score in scores], axis=0)
    count = 0
    for one in found.answers:
        own = np.log([one.size_m, 1 / one.light_um2, one.worst])
        rivals = np.log([merits.size_m, 1 / merits.light_um2, merits.worst])[:, good]
        better = np.all(rivals <= own[:, np.newaxis] + 1e-9, axis=0)
        better &= np.any(rivals < own[:, np.newaxis] - 1e-3, axis=0)
        count += bool(better.any())
    return count
