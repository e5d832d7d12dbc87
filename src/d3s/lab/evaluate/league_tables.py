"""The league as CSV and JSON, and its columns for tables."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from d3s.lab.evaluate.cameras import Lens
from d3s.lab.evaluate.evaluation import common_parameters, write_texts
from d3s.lab.evaluate.league import OF_TRUST, SHARES, League, Section, Standing
from d3s.lab.evaluate.table import Row, csv_text, for_json

MORE_TITLE = "Working range on planes (MAE below 1 cm on every texture), and time of one core"
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
    ends = {"standings": ".csv", "pairs": "_pairs.csv", "all of it": ".json", "chart": ".png"}
    return {what: Path(folder, name + end) for what, end in ends.items()}


def write_league(
    league: League, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> dict[str, Path]:
    """Write the standings and all pairs as CSV, and the parameters and the standings as JSON."""
    texts = {
        "standings": csv_text(_standing_rows(league.sections())),
        "pairs": csv_text([{name: row[name] for name in _PAIR_COLUMNS} for row in league.rows]),
        "all of it": json.dumps(league_document(league), indent=1) + "\n",
    }
    return write_texts(league_files(folder, league.program.lens), texts, overwrite=overwrite)


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
        return lambda one: float((part(one) or {field: "nan"})[field])

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


def title_of(section: Section) -> str:
    """Title of a section: its name and the number of its pairs."""
    return f"{section.name[0].upper()}{section.name[1:]}, {section.pairs} pairs"


def _cm(metres: float) -> str:
    return f"{100 * metres:.3f}" if np.isfinite(metres) else "-"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if np.isfinite(share) else "-"


def _range(figures: Row | None) -> str:
    if figures is None:
        return "-"
    range_m = figures["range_m"]
    return f"{range_m[0]:.2f} to {range_m[1]:.2f}" if range_m else "none"
