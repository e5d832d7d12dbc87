"""The league as CSV, JSON and Markdown."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from d3s.errors import InputError
from d3s.lab.evaluate.cameras import Lens
from d3s.lab.evaluate.evaluation import common_parameters, write_texts
from d3s.lab.evaluate.league import OF_TRUST, SHARES, League, Section, Standing
from d3s.lab.evaluate.table import Row, csv_text, for_json

MORE_TITLE = "Working range on planes (MAE below 1 cm on every texture), and time of one core"
Marks = tuple[str, str]
MARKS: Marks = ("<!-- compare: league -->", "<!-- end of league -->")
"""Marks in a page around all tables of the league."""
BRIEF_MARKS: Marks = ("<!-- compare: standings -->", "<!-- end of standings -->")
"""Marks in a page around one table with the most important columns."""
FURTHER_MARKS: Marks = ("<!-- compare: further sections -->", "<!-- end of further sections -->")
"""Marks in a page around the tables of further sections, such as weak scenes."""
TYPICAL_MARKS: Marks = ("<!-- compare: typical lenses -->", "<!-- end of typical lenses -->")
"""Marks in a page around all tables of the league with typical lenses."""

# Columns of league_pairs.csv.
_PAIR_COLUMNS = (
    *("group", "pair", "depth_m", "method", "time_s", "pixels"),
    *("full_retained", "full_mae_m", "full_median_m"),
    *("own_retained", "own_mae_m", "own_median_m", "bad_2cm", "coverage", "coverage_3"),
    *("beside", "beside_retained", "beside_carried", "fattened", "fattened_unflagged"),
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """Column of a table: its heading, its cells, and the numbers that decide the best method."""

    group: str  # heading above neighbouring columns of the same group
    heading: str
    shown: Callable[[Standing], str]
    value: Callable[[Standing], float] | None = None  # the lowest is the best; None if not ranked


def league_files(folder: str | os.PathLike[str], lens: Lens = "perfect") -> dict[str, Path]:
    """Paths of the files of a league: standings, pairs, everything as JSON, and the chart."""
    name = "league" if lens == "perfect" else f"league_{lens}"
    names = {
        "standings": f"{name}.csv",
        "pairs": f"{name}_pairs.csv",
        "all of it": f"{name}.json",
        "chart": f"{name}.png",
    }
    return {what: Path(folder, name) for what, name in names.items()}


def write_league(
    league: League, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> dict[str, Path]:
    """Write the standings and all pairs as CSV, and the parameters and the standings as JSON."""
    texts = {
        "standings": csv_text(_standing_rows(league.sections())),
        "pairs": csv_text([{name: row[name] for name in _PAIR_COLUMNS} for row in league.rows]),
        "all of it": json.dumps(league_document(league), indent=1) + "\n",
    }
    paths = league_files(folder, league.program.lens)
    files = {what: path for what, path in paths.items() if what in texts}
    write_texts({path: texts[what] for what, path in files.items()}, overwrite=overwrite)
    return files


def league_document(league: League) -> dict[str, Any]:
    """Return all parameters and all sections of a league, as JSON can hold them."""
    program = {name: sweep.model_dump(mode="json") for name, sweep in league.program.sweeps.items()}
    methods = [
        {
            **one.as_table(),
            "unfiltered": one.unfiltered().as_table()["options"],
            "ranked_by": one.ranked_by,
        }
        for one in league.contenders
    ]
    return {
        "parameters": {
            **common_parameters(league.rig),
            "program": program,
            "methods": methods,
            "shares": SHARES,
            "time": "processor seconds of all threads together, the median over the pairs",
        },
        "sections": for_json(league.sections()),
    }


def _standing_rows(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Rows of league.csv; the figures of trust are those with the own filter."""
    nowhere = (float("nan"), float("nan"))
    no_trust = dict.fromkeys(OF_TRUST, float("nan"))
    return [
        {
            "section": section.name,
            "method": one.method,
            "at": at,
            "density": figures["density"],
            "mae_m": figures["mae_m"],
            "median_m": figures["median_m"],
            "pairs": section.pairs,
            "pairs_with_depth": figures["pairs_with_depth"],
            "range_from_m": (figures["range_m"] or nowhere)[0],
            "range_to_m": (figures["range_m"] or nowhere)[1],
            "time_s_per_mpx": one.time_s_per_mpx,
            **(one.trust if at == "own" else no_trust),
        }
        for section in sections
        for one in section.standings
        for at, figures in (("full", one.full), ("own", one.own), ("common", one.common))
        if figures is not None
    ]


def columns(section: Section) -> tuple[Column, ...]:
    """Columns of errors and densities of a section; of a further section also those of trust."""
    common = f"at {100 * section.common_density:.0f} %"
    method = Column(group="", heading="method", shown=lambda one: one.method)
    if section.is_further:
        mae, _, density = _figure_columns("own filter", lambda one: one.own)
        return (
            method,
            replace(density, value=None),
            replace(mae, value=None),
            *_trust_columns(),
            _figure_columns(common, lambda one: one.common)[0],
        )
    return (
        method,
        # No method is marked as best where densities differ.
        *(replace(one, value=None) for one in _figure_columns("full", lambda one: one.full)),
        *(replace(one, value=None) for one in _figure_columns("own filter", lambda one: one.own)),
        *_figure_columns(common, lambda one: one.common)[:2],
    )


def _trust_columns() -> tuple[Column, ...]:
    """Columns of large errors, sigma and fattening without the flag, with the own filter."""

    def column(heading: str, field: str) -> Column:
        return Column(
            group="own filter", heading=heading, shown=lambda one: _percent(one.trust[field])
        )

    return (
        column("> 2 cm", "bad_2cm"),
        column("1 sigma", "coverage"),
        column("3 sigma", "coverage_3"),
        column("fattened", "fattened_unflagged"),
    )


def more_columns() -> tuple[Column, ...]:
    """Columns of working ranges and times, for the section of all planes."""
    return (
        Column(group="", heading="method", shown=lambda one: one.method),
        Column(group="range (m)", heading="full", shown=lambda one: _range(one.full)),
        Column(group="range (m)", heading="own filter", shown=lambda one: _range(one.own)),
        Column(group="range (m)", heading="common", shown=lambda one: _range(one.common)),
        Column(
            group="time",
            heading="s / Mpx",
            shown=lambda one: f"{one.time_s_per_mpx:.2f}",
            value=lambda one: one.time_s_per_mpx,
        ),
    )


def _figure_columns(
    group: str, part: Callable[[Standing], Row | None]
) -> tuple[Column, Column, Column]:
    def of(field: str) -> Callable[[Standing], float]:
        def value(one: Standing) -> float:
            figures = part(one)
            return float("nan") if figures is None else float(figures[field])

        return value

    mae, median, density = of("mae_m"), of("median_m"), of("density")
    return (
        Column(group=group, heading="MAE", shown=lambda one: _cm(mae(one)), value=mae),
        Column(group=group, heading="median", shown=lambda one: _cm(median(one)), value=median),
        Column(group=group, heading="density", shown=lambda one: _percent(density(one))),
    )


def best_of(column: Column, section: Section) -> str | None:
    """Name of the best method in a column, of those that reach the common density; or None."""
    if column.value is None:
        return None
    values = {one.method: column.value(one) for one in section.standings if one.common is not None}
    known = {method: value for method, value in values.items() if np.isfinite(value)}
    return min(known, key=lambda method: known[method]) if known else None


def league_markdown(league: League, command: str) -> str:
    """Format a table for each section, with the best method of a column in bold."""
    sections = league.sections()
    parts = [f"Simulated; made by `{command}`. Errors in cm, densities in percent."]
    parts += [f"**{title_of(one)}**\n\n{_standings(one, columns(one))}" for one in sections]
    if sections[0].name == "planes":
        parts.append(f"**{MORE_TITLE}**\n\n{_standings(sections[0], more_columns())}")
    return "\n\n".join(parts)


def title_of(section: Section) -> str:
    """Title of a section: its name and the number of its pairs."""
    return f"{section.name[0].upper()}{section.name[1:]}, {section.pairs} pairs"


def _standings(section: Section, shown: Sequence[Column]) -> str:
    best = [best_of(column, section) for column in shown]
    lines = [
        [
            f"**{column.shown(one)}**" if winner == one.method else column.shown(one)
            for column, winner in zip(shown, best, strict=True)
        ]
        for one in section.standings
    ]
    headings = [f"{one.group}: {one.heading}".removeprefix(": ") for one in shown]
    return markdown_table(headings, lines)


def markdown_table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Format a table; the first column is aligned to the left, the others to the right."""
    cells = [list(headings), *map(list, lines)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        first, *others = zip(row, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(padded)} |"

    rules = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
    return "\n".join([line(cells[0]), f"|{'|'.join(rules)}|", *map(line, cells[1:])])


def standings_markdown(league: League, command: str) -> str:
    """Format one table: errors of all sections at their common densities, ranges and times.

    Below it are the tables of further sections.
    """
    sections = league.sections()
    first = sections[0]
    shown = [
        Column(group="", heading="method", shown=lambda one: one.method),
        *(_common_column(section) for section in sections),
    ]
    if first.name == "planes":
        _, _, own, common, time = more_columns()
        density = f"at {100 * first.common_density:.0f} %"
        shown += [own, replace(common, heading=density), replace(time, group="")]
    words = f"Simulated; made by `{command}`. Mean absolute errors in cm."
    return "\n\n".join([words, _standings(first, shown), *_further(sections)])


def further_markdown(league: League, command: str) -> str:
    """Format a table for each further section: densities, errors and trust with the own filter."""
    words = f"Simulated; made by `{command}`. Errors in cm, shares in percent."
    return "\n\n".join([words, *_further(league.sections())])


def _further(sections: Sequence[Section]) -> list[str]:
    return [
        f"**{title_of(one)}, in percent and cm**\n\n{_standings(one, columns(one))}"
        for one in sections
        if one.is_further
    ]


def _common_column(section: Section) -> Column:
    """Column of errors at the common density of a section."""
    errors_m = {
        one.method: one.common["mae_m"] if one.common else float("nan") for one in section.standings
    }
    return Column(
        group="",
        heading=f"{section.name}, at {100 * section.common_density:.0f} %",
        shown=lambda one: _cm(errors_m[one.method]),
        value=lambda one: errors_m[one.method],
    )


def with_league(page: str, texts: Mapping[Marks, str], name: str | os.PathLike[str]) -> str:
    """Return a page with the league between its marks, in place of an earlier league."""
    made, places = page, 0
    for (begin, end), text in texts.items():
        before, found, rest = made.partition(begin)
        _, closed, after = rest.partition(end)
        if found and closed:
            made = f"{before}{begin}\n\n{text}\n\n{end}{after}"
            places += 1
    if not places:
        lines = " or ".join(f"{begin} and {end}" for begin, end in texts)
        raise InputError(f"{name} must have the lines {lines}: the tables go between.")
    return made


def marks_of(lens: Lens) -> tuple[Marks, ...]:
    """Return the marks in a page that a league with these lenses fills."""
    return (TYPICAL_MARKS,) if lens == "typical" else (MARKS, BRIEF_MARKS, FURTHER_MARKS)


def league_texts(league: League, command: str) -> dict[Marks, str]:
    """Texts of a league for each pair of marks in a page: those of `marks_of`."""
    if league.program.lens == "typical":
        return {TYPICAL_MARKS: league_markdown(league, command)}
    return {
        MARKS: league_markdown(league, command),
        BRIEF_MARKS: standings_markdown(league, command),
        FURTHER_MARKS: further_markdown(league, command),
    }


def _cm(metres: float) -> str:
    return f"{100 * metres:.3f}" if np.isfinite(metres) else "-"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if np.isfinite(share) else "-"


def _range(figures: Row | None) -> str:
    if figures is None:
        return "-"
    range_m = figures["range_m"]
    return f"{range_m[0]:.2f} to {range_m[1]:.2f}" if range_m else "none"
