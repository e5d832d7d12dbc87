"""Results as tables for people and programs: CSV of all rows, JSON of what made them and the sum.

Every length is in metres and every share is from 0 to 1. What is not a finite number is an empty
cell in CSV and null in JSON.
"""

import csv
import dataclasses
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder, write_text
from d3s.errors import OutputError
from d3s.evaluate.contender import Contender
from d3s.evaluate.jobs import versions
from d3s.evaluate.planes import PlaneResults, PlaneSweep
from d3s.evaluate.scenes import SceneResults, SceneSweep
from d3s.evaluate.thresholds import ThresholdRow, threshold_summary
from d3s.evaluate.truth import EDGE_REACH_PX, TEXTURED_BELOW_M, WINDOW_PX
from d3s.rig import Rig


def threshold_files(folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Where the results of `evaluate_thresholds` go: the rows, and the summary."""
    return Path(folder, "thresholds.csv"), Path(folder, "thresholds.json")


def result_files(name: str, folder: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Where the results of "planes" or "scenes" go: the rows, the duels, and the summary."""
    return (
        Path(folder, f"{name}.csv"),
        Path(folder, f"{name}_duels.csv"),
        Path(folder, f"{name}.json"),
    )


def check_free(name: str, folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that has such results already: better now than after the sweep.

    Raises
    ------
    OutputError
        Naming the file that is there.
    """
    check_absent(*result_files(name, folder))


def check_absent(*paths: Path) -> None:
    """Refuse to go on if one of these files is there.

    Raises
    ------
    OutputError
        Naming the file that is there.
    """
    for path in paths:
        if os.path.lexists(path):
            raise OutputError(
                f"{path} exists. Choose another folder, or allow it to be replaced: --force on the "
                "command line, overwrite=True in Python."
            )


def write_results(
    results: PlaneResults | SceneResults,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> tuple[Path, Path, Path]:
    """Write all rows as CSV, and the parameters and the summary as JSON; return the paths.

    Raises
    ------
    OutputError
        When a file cannot be written, or is there and `overwrite` is not set.
    """
    name = "planes" if isinstance(results, PlaneResults) else "scenes"
    if not overwrite:
        check_free(name, folder)
    make_folder(folder)
    rows, duels, summary = paths = result_files(name, folder)
    write_text(rows, as_csv(results.rows), overwrite=overwrite)
    write_text(duels, as_csv(results.duels), overwrite=overwrite)
    told = parameters(results.sweep, results.rig, results.contenders)
    write_text(summary, _document(told, results.summary()), overwrite=overwrite)
    return paths


def write_thresholds(
    rows: Sequence[ThresholdRow],
    parameters: Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> tuple[Path, Path]:
    """Write rows of `evaluate_thresholds` as CSV, what made them and the summary as JSON.

    Raises
    ------
    OutputError
        When a file cannot be written, or is there and `overwrite` is not set.
    """
    table, summary = paths = threshold_files(folder)
    if not overwrite:
        check_absent(*paths)
    make_folder(folder)
    write_text(table, as_csv(rows), overwrite=overwrite)
    write_text(summary, _document(parameters, threshold_summary(rows)), overwrite=overwrite)
    return paths


def _document(parameters: Mapping[str, Any], summary: Any) -> str:
    return json.dumps({"parameters": parameters, "summary": plain(summary)}, indent=1) + "\n"


def as_csv(rows: Sequence[Any]) -> str:
    """Rows of one dataclass, with the fields of what is inside of it in columns of their own."""
    text = io.StringIO()
    flat = [_flat(row) for row in rows]
    if flat:
        writer = csv.DictWriter(text, list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
    return text.getvalue()


def parameters(
    sweep: PlaneSweep | SceneSweep, rig: Rig, contenders: Sequence[Contender]
) -> dict[str, Any]:
    """All that decides the figures, to make them again."""
    return {
        **setting(rig),
        "sweep": sweep.model_dump(mode="json"),
        "methods": [one.as_table() for one in contenders],
    }


def setting(rig: Rig) -> dict[str, Any]:
    """What decides the figures of every sweep: versions, the camera, and which pixels count."""
    return {
        "versions": versions(),
        "window_px": WINDOW_PX,
        "textured_below_m": TEXTURED_BELOW_M,
        "edge_reach_px": EDGE_REACH_PX,
        "rig": rig.model_dump(mode="json", exclude_none=True),
    }


def _flat(row: Any) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if dataclasses.is_dataclass(value):
            cells |= _flat(value)
        elif isinstance(value, float):
            cells[field.name] = repr(value) if math.isfinite(value) else ""
        else:
            cells[field.name] = value
    return cells


def plain(value: Any) -> Any:
    """What JSON can hold of dataclasses and tuples of them."""
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
