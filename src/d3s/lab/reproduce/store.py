"""Results of items on disk: written, and read again.

Each item has a folder with its figures, its tables, and `result.json`, which is written last and
lists the other files and everything that they were made from.
"""

import json
from pathlib import Path
from typing import Any

from d3s.atomic import write_text
from d3s.estimate.plot.save import save_figure
from d3s.lab.evaluate.table import csv_text, for_json
from d3s.lab.reproduce.item import Result

RESULT = "result.json"
ERROR = "error.txt"
_PARTS = {"made_from", "files", "remarks", "pictures", "tables", "comparisons"}
_DPI = 150


def write_result(result: Result, root: Path, name: str, made_from: dict[str, Any]) -> None:
    """Write the figures and tables of an item, and then `result.json`.

    Parameters
    ----------
    result
        Result of the item.
    root, name
        Folder of the reproduction, and name of the item, whose folder exists.
    made_from
        Everything that decides the result, as JSON can hold it.
    """
    folder = root / name
    earlier = stored_result(root, name)
    (folder / RESULT).unlink(missing_ok=True)
    files: list[str] = []
    for picture in result.pictures:
        for suffix in (".png", ".pdf"):
            files.append(picture.name + suffix)
            save_figure(picture.figure, folder / files[-1], overwrite=True, dpi=_DPI)
    for table in result.tables:
        files.append(f"{table.name}.csv")
        write_text(folder / files[-1], csv_text(table.rows), overwrite=True)
    document = {
        "made_from": made_from,
        "sweeps": list(map(dict, result.sweeps)),
        "files": files,
        "remarks": list(result.remarks),
        "pictures": [{"name": one.name, "caption": one.caption} for one in result.pictures],
        "tables": [for_json(one) for one in result.tables],
        "comparisons": [for_json(one) for one in result.comparisons],
    }
    for old in set(earlier["files"] if earlier else ()) - set(files):
        (folder / Path(old).name).unlink(missing_ok=True)
    (folder / ERROR).unlink(missing_ok=True)
    write_text(folder / RESULT, json.dumps(document, indent=1) + "\n", overwrite=True)


def stored_result(root: Path, name: str) -> dict[str, Any] | None:
    """Read the result of an item; None if it did not finish, or the file is damaged."""
    try:
        result = json.loads((root / name / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and _PARTS.issubset(result) else None
