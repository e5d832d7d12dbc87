"""Summary of a stereo data set as tables in Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from d3s.lab.evaluate.league_tables import Marks, markdown_table
from d3s.lab.evaluate.stereo.evaluation import StereoResults, lines_of

MARKS: Marks = ("<!-- evaluate: stereo -->", "<!-- end of stereo -->")
"""Lines of a page between which the tables go."""

Line = Mapping[str, Any]
Cell = Callable[[Line], str]


def stereo_markdown(results: StereoResults, command: str) -> str:
    """Format the summary: errors and sigma of each light, and regions of the unchanged views."""
    summary, lights = results.summary(), [one.name for one in results.lights]
    names = ", ".join(one.name for one in results.found.scenes[:_NAMED])
    others = len(results.found.scenes) - _NAMED
    names += f" and {others} more" if others > 0 else ""
    parts = [
        f"Made by `{command}`.\nScenes: {names}.\n"
        "Densities, shares and gains in percent, medians in px, times in seconds of one core."
    ]
    for light in lights:
        lines = lines_of(summary, light)
        parts.append(f"**Errors, {light}**\n\n{_table(lines, _ERRORS)}")
        parts.append(f"**Sigma and ranking, {light}**\n\n{_table(lines, _TRUST)}")
    parts.append(f"**Regions, {lights[0]}**\n\n{_regions(lines_of(summary, lights[0]))}")
    return "\n\n".join(parts)


def _percent(column: str, digits: int = 1) -> Cell:
    def cell(line: Line) -> str:
        share = line[column]
        return f"{100 * share:.{digits}f}" if np.isfinite(share) else "-"

    return cell


def _number(column: str, digits: int) -> Cell:
    return lambda line: f"{line[column]:.{digits}f}" if np.isfinite(line[column]) else "-"


_NAMED = 8  # scenes that are named

_ERRORS: Mapping[str, Cell] = {
    "own filter: density": _percent("density"),
    "median": _number("median_px", 3),
    "bad-0.5": _percent("bad_05"),
    "bad-1": _percent("bad_1", 2),
    "bad-2": _percent("bad_2", 2),
    "bad-1 at 50 %": _percent("at_50", 2),
    "at 70 %": _percent("at_70", 2),
    "at 80 %": _percent("at_80", 2),
    "time": _number("time_s", 2),
}
_TRUST: Mapping[str, Cell] = {
    "within 1 sigma": _percent("coverage_1"),
    "2 sigma": _percent("coverage_2"),
    "3 sigma": _percent("coverage_3"),
    "gain by sigma": _percent("sigma_gain", 0),
    "by confidence": _percent("confidence_gain", 0),
    "filters off: density": _percent("found"),
    "bad-1": _percent("found_bad_1", 2),
    "gain by sigma, off": _percent("found_sigma_gain", 0),
    "by confidence, off": _percent("found_confidence_gain", 0),
}


def _table(lines: Sequence[Line], cells: Mapping[str, Cell]) -> str:
    rows = [[one["method"], *(cell(one) for cell in cells.values())] for one in lines]
    return markdown_table(["method", *cells], rows)


def _regions(lines: Sequence[Line]) -> str:
    shown = {
        "density": _percent("density"),
        "bad-1": _percent("bad_1", 2),
        "within 1 sigma": _percent("coverage_1"),
    }
    headings = [f"{one['method']}: {name}" for one in lines for name in shown]
    rows = [
        [
            regions[0]["region"],
            _percent("share", 0)(regions[0]),
            *(cell(one) for one in regions for cell in shown.values()),
        ]
        for regions in zip(*(one["regions"] for one in lines), strict=True)
    ]
    return markdown_table(["region", "of judged", *headings], rows)
