"""Results of items on disk: written, and read again.

Each item has a folder, with its pictures, its tables, and `result.json`, which is written last and
says what the others are and what they were made from.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

from d3s.atomic import write_text
from d3s.evaluate.table import csv_text, for_json
from d3s.reproduce.item import Result
from d3s.view.save import save_figure

RESULT = "result.json"
ERROR = "error.txt"
_PARTS = {"made_from", "files", "remarks", "pictures", "tables", "comparisons"}
_DPI = 150


def write_result(result: Result, root: Path, name: str, made_from: dict[str, Any]) -> None:
    """Pictures and tables first, and then what says that they are there."""
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
        "tables": [
            {
                "name": table.name,
                "caption": table.caption,
                "shown": table.shown,
                "rows": [{key: for_json(cell) for key, cell in row.items()} for row in table.rows],
            }
            for table in result.tables
        ],
        "comparisons": [dataclasses.asdict(one) for one in result.comparisons],
    }
    for old in set(earlier["files"] if earlier else ()) - set(files):
        (folder / Path(old).name).unlink(missing_ok=True)
    (folder / ERROR).unlink(missing_ok=True)
    write_text(folder / RESULT, json.dumps(document, indent=1) + "\n", overwrite=True)


def stored_result(root: Path, name: str) -> dict[str, Any] | None:
    """What an item left on disk; None if it did not finish, or somebody changed it."""
    try:
        result = json.loads((root / name / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and _PARTS.issubset(result) else None
