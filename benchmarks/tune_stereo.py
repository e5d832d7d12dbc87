"""Tune the options of a method on a stereo data set: one field after the other.

    .venv/bin/python benchmarks/tune_stereo.py FOLDER METHOD FIELD=VALUE,VALUE,... ... [--rounds=1]

FOLDER is as for `d3s evaluate stereo`, and METHOD too: `sgbm:p2=400` starts from this value, and
from `STEREO_OPTIONS` of `d3s.lab.evaluate.stereo.evaluation` in other fields. Values are JSON, or
words. Each field keeps its best value. The objective is the mean of the logs of the share of errors
above 1 px at densities of 50, 70 and 80 %, the mean over the scenes. Prints every setting
with these shares.
"""

import argparse
import json
import math
from typing import Any

from d3s.errors import OptionsError
from d3s.estimate.methods import parse_method
from d3s.lab.evaluate import Contender, evaluate_stereo

AT = ("at_50", "at_70", "at_80")


def judge(folder: str, method: str, options: dict[str, Any]) -> tuple[float, str]:
    """Objective of a setting, the lower the better, and its figures in words."""
    contender = Contender(method=method, options=options)
    try:
        (line,) = evaluate_stereo(folder, contender).summary()
    except OptionsError as error:  # such as p2 below p1
        return math.inf, str(error)
    shares = [line[name] for name in AT]
    words = " ".join(f"{100 * share:.2f}" for share in shares)
    words = f"{words} %, own {100 * line['density']:.1f} % with {100 * line['bad_1']:.2f} %"
    if not all(share > 0 for share in shares):  # NaN too: the method does not reach the density
        return math.inf, words
    return sum(map(math.log, shares)) / len(shares), words


def value_of(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("method")
    parser.add_argument("fields", nargs="*", metavar="FIELD=VALUE,VALUE")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    method, best = parse_method(given.method)
    lowest, words = judge(given.folder, method, best)
    print(f"{lowest:7.3f}  {words}  {best}", flush=True)
    for _ in range(given.rounds):
        for text in given.fields:
            field, _, values = text.partition("=")
            for value in map(value_of, values.split(",")):
                trial = {**best, field: value}
                objective, words = judge(given.folder, method, trial)
                print(f"{objective:7.3f}  {words}  {trial}", flush=True)
                if objective < lowest:
                    best, lowest = trial, objective
    print(f"best {lowest:.3f}: {best}")


if __name__ == "__main__":
    main()
