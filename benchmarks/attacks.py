"""Pairs on which a depth could be confidently wrong, and how wrong it is.

    .venv/bin/python benchmarks/attacks.py [--tuning] [--list] [KIND or NAME ...]

Kinds: gaps between fine texture, grids locked to the frame, repetition, turned views. A pixel is
wrong if it is off by more than 5 cm and more than 5 sigma. Constants of the method were chosen on
the cases of --tuning and on none of the others, which have other seeds, textures and sizes.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import d3s
from d3s.types import FloatArray, Image

KINDS = ("gaps", "grids", "repetition", "turned")
WRONG_M, WRONG_SIGMAS, SURE = 0.05, 5.0, 0.8


@dataclass(frozen=True)
class Attack:
    """Pair of views with its truth (NaN where there is none), and how it is estimated."""

    left: Image
    right: Image
    depth_m: FloatArray
    rig: d3s.Rig
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Attack by name; `make` renders it."""

    name: str
    make: Callable[[], Attack] = field(repr=False)
    is_tuning: bool = False


@dataclass(frozen=True)
class Verdict:
    """Shares in percent: of the frame, of the pixels with a depth (kept), of the sure ones."""

    kept: float
    wrong: float  # of the frame
    wrong_kept: float
    wrong_sure: float
    within_1: float
    within_3: float
    warnings: tuple[str, ...]


def judge(attack: Attack) -> Verdict:
    """Estimate a pair by the defaults and compare it with the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = d3s.estimate(attack.left, attack.right, attack.rig, options=attack.options or None)
    is_kept = found.valid & np.isfinite(attack.depth_m)
    error = np.abs(found.depth_m - attack.depth_m)[is_kept]
    sigma, sure = found.sigma_m[is_kept], found.confidence[is_kept] > SURE
    is_wrong = (error > WRONG_M) & (error > WRONG_SIGMAS * sigma)
    return Verdict(
        kept=100 * float(is_kept.mean()),
        wrong=100 * float(is_wrong.sum() / is_kept.size),
        wrong_kept=_share(is_wrong),
        wrong_sure=_share(is_wrong[sure]),
        within_1=_share(error <= sigma),
        within_3=_share(error <= 3 * sigma),
        warnings=tuple(found.warnings),
    )


def _share(mask: np.ndarray) -> float:
    return 100 * float(mask.mean()) if mask.size else float("nan")


def main() -> int:
    """Judge the wanted cases; exit with 1 if one is wrong on more than 1 % of its frame."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="KIND or NAME", help="first letters of a name")
    parser.add_argument("--tuning", action="store_true", help="the cases of the constants")
    parser.add_argument("--list", action="store_true", help="print the names only")
    given = parser.parse_args()
    wanted = [
        (kind, case)
        for kind in KINDS
        for case in import_module(f"attack_{kind}").CASES
        if case.is_tuning == given.tuning
        and (not given.names or kind in given.names or case.name.startswith(tuple(given.names)))
    ]
    if given.list:
        print("\n".join(f"{kind:12} {case.name}" for kind, case in wanted))
        return 0
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    table = Table("kind", "case", *("kept", "wrong", "of kept", "of sure", "1 σ", "3 σ"), "warning")
    worst = 0.0
    for kind, case in track(wanted, "judging", console=console, disable=not console.is_terminal):
        verdict = judge(case.make())
        worst = max(worst, verdict.wrong)
        numbers = [
            verdict.kept,
            verdict.wrong,
            verdict.wrong_kept,
            verdict.wrong_sure,
            verdict.within_1,
            verdict.within_3,
        ]
        said = "; ".join(words.split(":")[0] for words in verdict.warnings)
        table.add_row(kind, case.name, *(f"{number:.1f}" for number in numbers), said)
    console.print(table)
    return int(worst > 1)


if __name__ == "__main__":
    sys.exit(main())
