"""The claims of the project (tests/claims), measured and printed beside what is claimed.

    .venv/bin/python tools/claims.py [--fast] [--record FILE] [--page FILE] [NAME ...]

All of them take half an hour on two idle cores. A NAME is a claim, or the first letters of several.
--record keeps the figures as JSON and adds to those of earlier runs; --page writes the table as
Markdown, with the figures that FILE of --record holds for claims that were not measured now. The
exit code is 1 if a claim does not hold. D3S_MIDDLEBURY and D3S_ROOMS name folders of data.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("claims", "helpers")]

from claims import CLAIMS, TOPICS, Claim  # noqa: E402

CONSOLE = Console()
HEAD = """# Results

What the project claims, and what it measured: `make claims` runs every call of the table in
`tests/claims` and writes this page. `make test` holds the fast claims, `make test-all` all but the
ratios of times. All views are simulated, by fixed seeds, unless a data set is named; sizes are
small, so that anybody can measure them again. "About" is within a few percent.

Claims about Middlebury need the folder of its scenes in `D3S_MIDDLEBURY`, those about rooms a
folder of rendered rooms in `D3S_ROOMS` (`d3s evaluate rooms --keep FOLDER` renders them, with
Mitsuba). A dash is what was not measured.
"""


def main() -> int:
    """Measure the wanted claims; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="claims, or their first letters")
    parser.add_argument("--fast", action="store_true", help="leave out the slow ones")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the figures as JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table as Markdown")
    given = parser.parse_args()
    wanted = [
        one
        for one in CLAIMS
        if one.name.startswith(tuple(given.names) or "") and not (given.fast and one.slow)
    ]
    if not wanted:
        parser.error(f"no claim begins with {', '.join(given.names)}. {CLAIMS[0].name} is one.")
    kept = json.loads(given.record.read_text()) if given.record and given.record.exists() else {}
    measured = measure(wanted)
    CONSOLE.print(table(wanted, measured))
    kept |= measured
    if given.record:
        given.record.write_text(json.dumps(kept, indent=2) + "\n")
    if given.page:
        given.page.write_text(page(kept))
    lost = [
        one.name for one in wanted if one.name in measured and not one.holds(measured[one.name])
    ]
    CONSOLE.print(
        f"{len(measured) - len(lost)} hold, {len(lost)} do not: {', '.join(lost) or 'none'}."
    )
    return int(bool(lost))


def measure(wanted: Iterable[Claim]) -> dict[str, float]:
    """Figures of claims by name, without those that cannot be measured here; NaN for an error."""
    measured = {}
    for claim in track(list(wanted), "measuring", console=CONSOLE, disable=not CONSOLE.is_terminal):
        if claim.missing:
            continue
        begun = time.perf_counter()
        try:
            measured[claim.name] = float(claim.measure())
        except Exception as error:  # noqa: BLE001 - the other claims are measured all the same
            CONSOLE.print(
                f"{claim.name}: {type(error).__name__}: {error}", style="red", markup=False
            )
            measured[claim.name] = float("nan")
        took_s = time.perf_counter() - begun
        if took_s > 5 or not claim.holds(measured[claim.name]):
            CONSOLE.print(f"{claim.name}: {measured[claim.name]:.7g}, in {took_s:.0f} s")
    return measured


def rows(claims: Iterable[Claim], measured: Mapping[str, float]) -> list[tuple[str, str, str, str]]:
    """What is claimed, what was measured and whether it holds."""
    found = []
    for one in claims:
        figure = measured.get(one.name)
        verdict = "-" if figure is None else "yes" if one.holds(figure) else "**no**"
        shown = "-" if figure is None else one.shown(figure)
        found.append((one.says, one.bound, shown, verdict))
    return found


def table(claims: Iterable[Claim], measured: Mapping[str, float]) -> Table:
    """Table for the terminal."""
    shown = Table("claim", "claimed", "measured", "holds")
    for one, (says, *rest) in zip(claims, rows(claims, measured), strict=True):
        shown.add_row(f"{one.name}: {says}", *rest)
    return shown


def page(measured: Mapping[str, float]) -> str:
    """Page of all claims."""
    parts = [HEAD]
    for topic, claims in TOPICS.items():
        lines = [f"\n## {topic}\n", "| claim | claimed | measured | holds |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in rows(claims, measured)]
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
