"""Time of the estimators against peers, oracles and the machine, measured in one run.

    .venv/bin/python benchmarks/speed.py [--quick] [--full-oracles]

Prints the machine, the targets beside the measured figures, the time of each stage, and its growth.
Contenders take turns and each keeps its best time. All pictures are simulated.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import d3s
import figures
import measures
from figures import TARGETS, Row
from sheets import Sheet, show
from timing import machine_sheet
from workloads import DEFAULT, QUICK, SCENE, Effort, simulated


def measured(effort: Effort) -> tuple[list[Row], list[Sheet]]:
    """Figures of all targets in their order, and the other tables."""
    pair = simulated(SCENE, effort.frame)
    rows, opponents = measures.against_opencv(pair, effort)
    sheets = [figures.stages_sheet(measures.stages(pair, effort))]
    rows += measures.with_threads(pair, effort)
    for some, sheet in (
        measures.growth_in_pixels(effort, opponents),
        measures.growth_in_candidates(pair, effort, opponents),
    ):
        rows += some
        sheets.append(sheet)
    rows += measures.in_new_processes(pair, effort)
    rows += measures.against_oracles(pair, effort)
    return sorted(rows, key=lambda row: list(TARGETS).index(row.key)), sheets


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time of the estimators.")
    parser.add_argument("--quick", action="store_true", help="small frames, about a minute")
    parser.add_argument(
        "--full-oracles", action="store_true", help="the oracles at full size too, ten minutes"
    )
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    args = arguments(words)
    effort = QUICK if args.quick else DEFAULT
    if args.full_oracles:
        effort = replace(effort, joint_oracle=effort.frame, consensus_oracle=effort.frame)
    show([machine_sheet()])
    begun = time.perf_counter()
    rows, sheets = measured(effort)
    show([figures.sheet(rows), *sheets])
    print(f"d3s {d3s.__version__}: measured in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
