"""distances.csv: the distance of the board in each file.

A line has a file name and a distance in metres; further columns are ignored. A header line, empty
lines and lines that begin with # are skipped. The delimiter may be a comma, a semicolon or a tab;
with the latter two, a decimal comma is accepted. Lines go from near to far or from far to near.
"""

import csv
import math
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath, PureWindowsPath
from statistics import median
from typing import NamedTuple

from d3s.errors import CapturesError
from d3s.files import IMAGE_SUFFIXES

TABLE_NAME = "distances.csv"
FEWEST_FRAMES = 5
MOST_FRAMES = 400  # a rig file holds at most 500 inputs

_MOST_BYTES = 1_000_000
# Beyond the farthest board that a 12 mm lens can be calibrated with: a larger number is not metres.
_FARTHEST_M = 20.0
_MOST_LISTED = 5  # mistakes of one kind in an error


class Row(NamedTuple):
    """One line of the table: a frame and its distance."""

    line: int  # line number in the file, from 1
    name: str
    distance_m: float


def read_table(folder: Path) -> list[Row]:
    """Read distances.csv of a folder: its rows, in their order, enough for a calibration.

    An error names all lines that are wrong and files that are missing.
    """
    rows, problems, count = _read(folder)
    if count < FEWEST_FRAMES:
        problems.append(
            f"names {count} frames: a calibration needs at least {FEWEST_FRAMES}, and 25 for a "
            "good one."
        )
    if count > MOST_FRAMES:
        problems.append(f"names {count} frames: a calibration takes at most {MOST_FRAMES}.")
    if problems:
        raise CapturesError(*problems, path=folder / TABLE_NAME)
    return rows


def read_rows(folder: Path) -> list[Row]:
    """Read distances.csv of a folder as `read_table` does, however few frames it has."""
    rows, problems, _ = _read(folder)
    if problems:
        raise CapturesError(*problems, path=folder / TABLE_NAME)
    return rows


def _read(folder: Path) -> tuple[list[Row], list[str], int]:
    """Rows, problems as sentences, and the number of lines."""
    lines = [
        (line, cells)
        for line, cells in _cells(folder / TABLE_NAME)
        if any(cells) and not cells[0].startswith("#")
    ]
    if lines and _is_header(lines[0][1]):
        del lines[0]
    problems: list[str] = []
    rows = [row for line, cells in lines if (row := _row(line, cells, problems)) is not None]
    problems += _shortened(_duplicates(rows))
    problems += _shortened(_missing_files(rows, folder))
    problems += check_distances(
        [row.distance_m for row in rows], [f"{row.name} (line {row.line})" for row in rows]
    )
    return rows, problems, len(lines)


def check_distances(distances_m: list[float], names: list[str]) -> list[str]:
    """Problems of distances in metres, as sentences: range, unit, order, doubles."""
    wrong = [
        f"{name}: the distance {distance_m:g} must be a finite number above 0."
        for name, distance_m in zip(names, distances_m, strict=True)
        if not (math.isfinite(distance_m) and distance_m > 0)
    ]
    if wrong:
        return _shortened(wrong)
    far = [distance_m for distance_m in distances_m if distance_m > _FARTHEST_M]
    if far:
        return [_unit_problem(far, len(distances_m))]
    return _shortened(_disorder(distances_m, names)) or _shortened(_ties(distances_m, names))


def _unit_problem(far: list[float], count: int) -> str:
    words = (
        f"{len(far)} of {count} distances are above {_FARTHEST_M:g}, up to {max(far):g}: they are "
        "in metres."
    )
    for unit, factor in (("millimetres", 1e-3), ("centimetres", 1e-2)):
        if len(far) > count / 2 and 0.1 <= median(far) * factor <= _FARTHEST_M / 4:
            return f"{words} Did you write {unit}?"
    return words


def is_farthest_first(distances_m: Sequence[float]) -> bool:
    """Whether most of the steps from one distance to the next decrease."""
    steps = [after - before for before, after in pairwise(distances_m)]
    return sum(step < 0 for step in steps) > len(steps) / 2


def _disorder(distances_m: list[float], names: list[str]) -> list[str]:
    """Rows that are out of order, as sentences; the order may also be from far to near.

    A second take over the same distances begins nearer than the first one ended. This is no
    mistake: the rows around its first one do not fit into the take before.
    """
    count = len(distances_m)
    is_reversed = is_farthest_first(distances_m)
    if is_reversed:
        distances_m, names = distances_m[::-1], names[::-1]
    found = []
    for j, (before, after) in enumerate(pairwise(distances_m)):
        one_too_far = j == 0 or after > distances_m[j - 1]
        one_too_near = j + 2 >= count or distances_m[j + 2] > before
        if after < before and (one_too_far or one_too_near):
            pair = [f"{names[j]} with {before:g} m", f"{names[j + 1]} with {after:g} m"]
            first, second = reversed(pair) if is_reversed else pair
            found.append(
                f"distances {'decrease' if is_reversed else 'increase'}, and {second} comes after "
                f"{first}. Is one of them wrong, or are the rows in disorder?"
            )
    return found


def _ties(distances_m: list[float], names: list[str]) -> list[str]:
    order = sorted(range(len(names)), key=distances_m.__getitem__)
    return [
        f"{names[i]} and {names[j]} have the same distance, {distances_m[i]:g} m. Keep one of them."
        for i, j in pairwise(order)
        if distances_m[i] == distances_m[j]
    ]


def _duplicates(rows: list[Row]) -> list[str]:
    first: dict[str, int] = {}
    for row in rows:
        first.setdefault(row.name, row.line)
    return [
        f"line {row.line} names {row.name}, and so does line {first[row.name]}."
        for row in rows
        if first[row.name] != row.line
    ]


def _missing_files(rows: list[Row], folder: Path) -> list[str]:
    return [
        f"line {row.line} names {row.name}, and there is no such file."
        for row in rows
        if not os.path.lexists(folder / row.name)
    ]


def _shortened(problems: list[str]) -> list[str]:
    if len(problems) <= _MOST_LISTED + 1:
        return problems
    return [*problems[:_MOST_LISTED], f"... and {len(problems) - _MOST_LISTED} more like these."]


def _cells(path: Path) -> list[tuple[int, list[str]]]:
    """Line number and stripped cells of each line of the file."""
    text = _text(path)
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    first = next(lines, "")
    delimiter = max(";\t,", key=first.count)  # of equally many, the comma is a decimal comma
    reader = csv.reader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
    try:
        return [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise CapturesError(f"line {reader.line_num}: {error}.", path=path) from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CapturesError(_missing(path.parent), path=path.parent) from error
    except OSError as error:
        raise CapturesError(f"cannot be read: {error.strerror or error}.", path=path) from error
    except ValueError as error:  # a zero byte in the path
        raise CapturesError(f"cannot be read: {error}. Check the name.", path=path) from error
    if len(raw) > _MOST_BYTES:
        raise CapturesError(f"is larger than {_MOST_BYTES} bytes: it is no table.", path=path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CapturesError(
            "is not UTF-8 text. Save it as CSV, with UTF-8 for its encoding.", path=path
        ) from error


def _missing(folder: Path) -> str:
    if folder.is_file():
        return "is a file. Name the folder that it is in."
    if not folder.is_dir():
        return "there is no such folder. Check the name."
    return (
        f"there is no {TABLE_NAME} in it. Write one, with a file name and its distance in metres "
        "a line."
    )


def _is_header(cells: list[str]) -> bool:
    is_image = cells[0].lower().endswith(IMAGE_SUFFIXES)
    return not is_image and (len(cells) < 2 or _number(cells[1]) is None)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _row(line: int, cells: list[str], problems: list[str]) -> Row | None:
    name = cells[0]
    problem = _name_problem(name)
    if problem:
        problems.append(f"line {line}: {name!r} {problem}")
        return None
    if len(cells) < 2 or not cells[1]:
        problems.append(f"line {line}: the distance of {name} is missing.")
        return None
    distance_m = _number(cells[1])
    if distance_m is None:
        problems.append(
            f"line {line}: the distance of {name} is {cells[1]!r}, which is no number. Write "
            "metres, as 0.25."
        )
        return None
    return Row(line, name, distance_m)


def _name_problem(name: str) -> str:
    if not name or not name.isprintable() or len(name) > 255:
        return "is no file name."
    paths = PurePosixPath(name), PureWindowsPath(name)
    if any(path.is_absolute() or path.drive or path.root or ".." in path.parts for path in paths):
        return f"leads out of the folder: files lie beside {TABLE_NAME}."
    return ""
