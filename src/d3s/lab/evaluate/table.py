"""The table of a sweep, its one summariser, and both as CSV and JSON.

A row is a mapping from column to cell: the columns that name the pair, the method, and its figures.
Lengths are in metres and shares from 0 to 1. A summary has one line for each value of some columns
of the table, with figures computed from the rows of that value: see `summarise`.
"""

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from d3s.calibrate.validation import ACCURATE_M, working_range_m
from d3s.lab.evaluate.metrics import finite_mean, finite_median, pooled, ratio, worst

Row = Mapping[str, Any]


class SweepTable(tuple[Row, ...]):
    """Rows of one sweep, or some of them; all have the same columns."""

    __slots__ = ()

    def column(self, name: str) -> list[Any]:
        """Cells of one column."""
        return [row[name] for row in self]

    def where(self, **cells: Any) -> "SweepTable":
        """Rows that have these cells."""
        return SweepTable(row for row in self if all(row[name] == cells[name] for name in cells))

    def groups(self, *columns: str) -> Iterator["SweepTable"]:
        """Rows by their cells in some columns.

        Groups are in the order in which the cells of the first column first appear, and within
        that in the order of the next column.
        """
        if not columns:
            yield self
            return
        first, *others = columns
        for cell in dict.fromkeys(self.column(first)):
            yield from self.where(**{first: cell}).groups(*others)

    def by_depth(self) -> list["SweepTable"]:
        """Rows of each depth, the nearest depth first."""
        return sorted(self.groups("depth_m"), key=lambda rows: rows[0]["depth_m"])


Figure = Callable[[SweepTable], Any]
"""A number, or another cell, computed from rows."""


def summarise(
    table: SweepTable, by: Sequence[str], figures: Mapping[str, Figure]
) -> list[dict[str, Any]]:
    """Summarise rows: one line for each combination of cells in some columns."""
    return [
        {name: rows[0][name] for name in by}
        | {name: figure(rows) for name, figure in figures.items()}
        for rows in table.groups(*by)
    ]


def mean_of(column: str) -> Figure:
    """Mean of the finite cells of a column; NaN if none is finite."""
    return lambda rows: finite_mean(rows.column(column))


def median_of(column: str) -> Figure:
    """Median of the finite cells of a column; NaN if none is finite."""
    return lambda rows: finite_median(rows.column(column))


def pooled_mean_of(column: str) -> Figure:
    """Mean of a column over all retained pixels of all rows."""
    return lambda rows: pooled(rows.column(column), rows.column("retained"))


def pooled_density(rows: SweepTable) -> float:
    """Share of the textured pixels of all rows together that are retained."""
    return ratio(sum(rows.column("textured_retained")), sum(rows.column("textured")))


def retained_share(rows: SweepTable) -> float:
    """Share of the judged pixels of all rows together that are retained."""
    return ratio(sum(rows.column("retained")), sum(rows.column("pixels")))


def common_ratio(duels: SweepTable) -> float:
    """MAE over that of the rival on the pixels that both retained, of all duels together."""
    counts = duels.column("common")
    return ratio(pooled(duels.column("mae_m"), counts), pooled(duels.column("rival_mae_m"), counts))


DUEL: dict[str, Figure] = {
    "ratio_common": common_ratio,
    "common": lambda duels: sum(duels.column("common")),
}
"""Duels of a method and a rival on the pixels that both retained, and how many these are."""


def error_m(row: Row) -> float:
    """MAE of a row to find the worst by.

    Without retained pixels, infinity for a textured pair, and NaN for one in which there is no
    depth to find. A row of thresholds does not count its textured pixels; its density is NaN if
    there are none.
    """
    if row["retained"]:
        return float(row["mae_m"])
    is_textured = row["textured"] > 0 if "textured" in row else math.isfinite(row["density"])
    return math.inf if is_textured else math.nan


def worst_error_m(rows: SweepTable) -> float:
    """Largest MAE of all rows; infinite if a textured pair was left without any depth."""
    return worst(map(error_m, rows))


def cell_of_worst(column: str, otherwise: Any) -> Figure:
    """Cell in the row of the largest MAE; something else if no row has an error."""

    def cell(rows: SweepTable) -> Any:
        worst_m = worst_error_m(rows)
        return next((row[column] for row in rows if error_m(row) == worst_m), otherwise)

    return cell


def accurate_range_m(planes: SweepTable) -> tuple[float, float] | None:
    """Working range: the longest interval of depths with an MAE below 1 cm on every texture.

    A textured plane without any depth ends the interval.
    """
    at = planes.by_depth()
    depths_m = [rows[0]["depth_m"] for rows in at]
    return working_range_m(depths_m, [worst_error_m(rows) < ACCURATE_M for rows in at])


def _share_of_beside(column: str) -> Figure:
    return lambda rows: ratio(sum(rows.column(column)), sum(rows.column("beside")))


SHARES_BESIDE: dict[str, Figure] = {
    name: _share_of_beside(name)
    for name in ("beside_retained", "beside_carried", "fattened", "fattened_unflagged")
}
"""Shares of the background beside objects, all rows together."""


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same columns as CSV; a number that is not finite is an empty cell."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: for_json(cell) for name, cell in row.items()} for row in rows)
    return text.getvalue()


def for_json(value: Any) -> Any:
    """Dataclasses, mappings and sequences as JSON can hold them; None for NaN and infinity."""
    if dataclasses.is_dataclass(value):
        return {f.name: for_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: for_json(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [for_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
