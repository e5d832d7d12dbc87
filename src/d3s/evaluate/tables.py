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
from d3s.evaluate.jobs import versions
from d3s.evaluate.planes import PlaneResults
from d3s.evaluate.scenes import SceneResults
from d3s.evaluate.thresholds import ThresholdResults
from d3s.evaluate.truth import EDGE_REACH_PX, TEXTURED_BELOW_M, WINDOW_PX
from d3s.rig import Rig

Results = PlaneResults | SceneResults | ThresholdResults
_NAMES = {PlaneResults: "planes", SceneResults: "scenes", ThresholdResults: "thresholds"}


def result_files(name: str, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Where results of "planes", "scenes" or "thresholds" go, by what they are.

    There are rows and a summary, and duels as well, but for thresholds.
    """
    endings = {"rows": ".csv", "duels": "_duels.csv", "summary": ".json"}
    if name == _NAMES[ThresholdResults]:
        del endings["duels"]
    return {what: Path(folder, name + ending) for what, ending in endings.items()}


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
    results: Results, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> dict[str, Path]:
    """Write all rows as CSV, and the parameters and the summary as JSON.

    Returns
    -------
    The files, by what they are, as `result_files` has them.

    Raises
    ------
    OutputError
        When a file cannot be written, or is there and `overwrite` is not set.
    """
    texts = {"rows": as_csv(results.rows), "summary": _document(results)}
    if not isinstance(results, ThresholdResults):
        texts["duels"] = as_csv(results.duels)
    files = result_files(_NAMES[type(results)], folder)
    write_texts({path: texts[what] for what, path in files.items()}, overwrite=overwrite)
    return files


def write_texts(texts: Mapping[Path, str], *, overwrite: bool) -> None:
    """Write several files, or none of them if one is there and `overwrite` is not set.

    Raises
    ------
    OutputError
        Naming the file that is there, or that cannot be written.
    """
    if not overwrite:
        check_absent(*texts)
    for path, text in texts.items():
        make_folder(path.parent)
        write_text(path, text, overwrite=overwrite)


def _document(results: Results) -> str:
    document = {"parameters": _parameters(results), "summary": for_json(results.summary())}
    return json.dumps(document, indent=1) + "\n"


def _parameters(results: Results) -> dict[str, Any]:
    """All that decides the figures, to make them again."""
    return {
        **setting(results.rig),
        "sweep": results.sweep.model_dump(mode="json"),
        "methods": [one.as_table() for one in results.contenders],
        **({"thresholds": results.thresholds} if isinstance(results, ThresholdResults) else {}),
    }


def as_csv(rows: Sequence[Any]) -> str:
    """Rows of one dataclass, with the fields of what is inside of it in columns of their own."""
    return csv_text([_flat(row) for row in rows])


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same columns; nothing, and what is not a finite number, is an empty cell."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: for_json(cell) for name, cell in row.items()} for row in rows)
    return text.getvalue()


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
        else:
            cells[field.name] = value
    return cells


def for_json(value: Any) -> Any:
    """What JSON can hold of dataclasses, tuples of them, and numbers."""
    if dataclasses.is_dataclass(value):
        return {f.name: for_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [for_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
