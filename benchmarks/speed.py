"""Time of the estimators against peers, oracles and the machine, measured in one run.

    .venv/bin/python benchmarks/speed.py [--quick] [--full-oracles] [--json FILE] [--read]
                                         [--chart FILE] [--page FILE ...]

Prints the machine, the targets beside the measured figures, the time of each stage, its growth, and
the cost of each way to do less work; writes everything as JSON. --page rewrites the tables of
docs/speed.md and docs/speed_results.md, --chart the chart; with --read both are made from the JSON
of an earlier run. Contenders take turns and each keeps its best time. All pictures are simulated.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

import d3s
import least
import machine
import measures
from d3s.atomic import make_folder, write_text
from d3s.estimate.plot.save import save_figure
from figures import TARGETS, Row
from sheets import write_parts
from speed_page import chart, parts, sheets
from workloads import DEFAULT, QUICK, SCENE, Effort, simulated

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "speed.json"


def measured(effort: Effort, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Run all measurements.

    Parameters
    ----------
    effort
        Sizes of the frames and number of repetitions.
    say
        Called with the name of each part as it begins.

    Returns
    -------
    Results as they are written to JSON.
    """
    begun = time.perf_counter()
    rows: list[Row] = []

    def kept(given: tuple[list[Row], Any]) -> Any:
        rows.extend(given[0])
        return given[1]

    say("the machine")
    about = machine.description()
    small = {"size": 2**24, "matrix": 512} if effort.name == "quick" else {}
    about["limits"] = machine.limits(**small)
    say("the scene")
    pair = simulated(SCENE, effort.frame)
    say("against OpenCV")
    opponents = kept(measures.against_opencv(pair, effort))
    say("where the time goes")
    stages = measures.stages(pair, effort)
    say("threads")
    rows.extend(measures.with_threads(pair, effort))
    say("growth in pixels")
    pixels = kept(measures.growth_in_pixels(effort, opponents))
    say("growth in candidates")
    candidates = kept(measures.growth_in_candidates(pair, effort, opponents))
    say("content of the picture")
    content = kept(measures.over_content(pair, effort))
    say("less work")
    budget = kept(measures.budgets(pair, effort))
    say("new processes")
    processes = kept(measures.in_new_processes(pair, effort))
    say("against the oracles")
    agreement = kept(measures.against_oracles(pair, effort))
    ordered = sorted(rows, key=lambda row: list(TARGETS).index(row.key))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "d3s": d3s.__version__,
        "effort": effort.name,
        "seconds": time.perf_counter() - begun,
        "machine": about,
        "rows": [row.as_json() for row in ordered],
        "stages": stages,
        "growth": {"pixels": pixels, "candidates": candidates, "content": content},
        "budget": budget,
        "processes": processes,
        "agreement": agreement,
        "least": least.against(stages, about["limits"]),
    }


def commit() -> str:
    """Short hash of the commit, with a plus if the source has uncommitted changes."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks/*.py")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def rounded(value: Any) -> Any:
    """Results with all floats rounded to five digits; more would be noise."""
    if isinstance(value, float):
        return float(f"{value:.5g}") if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    return value


def show(results: dict[str, Any], console: Console) -> None:
    """Print all tables."""
    for sheet in sheets(results).values():
        console.print(sheet.as_rich())
    console.print(
        f"d3s {results['d3s']} at {results['commit']}, {results['date']}, effort "
        f"{results['effort']}: measured in {results['seconds']:.0f} s"
    )


def wide_console() -> Console:
    """Console of the terminal's width, or of 150 columns without a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=150)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time of the estimators.")
    parser.add_argument("--quick", action="store_true", help="small frames, about a minute")
    parser.add_argument(
        "--full-oracles", action="store_true", help="the oracles at full size too, ten minutes"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", default=RESULTS, help="results file")
    parser.add_argument("--read", action="store_true", help="read results, measure nothing")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write the chart")
    parser.add_argument(
        "--page", type=Path, nargs="+", metavar="FILE", help="rewrite the tables of these pages"
    )
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    args = arguments(words)
    if args.read:
        results = json.loads(args.json.read_text())
    else:
        effort = QUICK if args.quick else DEFAULT
        if args.full_oracles:
            effort = replace(
                effort,
                name="full oracles",
                joint_oracle=effort.frame,
                consensus_oracle=effort.frame,
            )
        results = rounded(measured(effort, say=lambda what: print(what, file=sys.stderr)))
        make_folder(args.json.parent)
        write_text(args.json, json.dumps(results, indent=1) + "\n", overwrite=True)
    show(results, wide_console())
    if args.chart:
        save_figure(chart(results), args.chart, overwrite=True)
    if args.page:
        write_parts(args.page, parts(results))


if __name__ == "__main__":
    main(sys.argv[1:])
