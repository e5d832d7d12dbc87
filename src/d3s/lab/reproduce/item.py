"""Items of the reproduction: their description, their input, and their result, also on disk.

An item has a function from `Context` to `Result`; `d3s.lab.reproduce.run` lists all items. The
function writes no files: `run` writes the result and puts it on the page. Each item has a folder
with its figures, its tables, and `result.json`, which is written last and lists the other files and
everything that they were made from.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from d3s.atomic import write_text
from d3s.batch.running import Workers
from d3s.estimate.plot.save import save_figure
from d3s.lab.evaluate.cameras import Lens
from d3s.lab.evaluate.evaluation import Run
from d3s.lab.evaluate.table import csv_text, for_json
from d3s.types import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | float | int | bool | None
"""Cell of a table; a number that is not finite is written as an empty cell."""

Rows = Sequence[Mapping[str, Cell]]
"""Rows of a table: all with the same columns, in the same order."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """Input of an item.

    `tables_of` returns the tables, by name, of another item, or None if that has not finished. The
    item must be named in `Item.uses`. Cells are as JSON gives them back.
    """

    folder: Path  # for finished parts of long work, so that it resumes; made when needed
    quick: bool = False  # a reduced size: seconds for most items, three minutes for all
    seed: int = 0  # of everything random
    photos: str | None = None  # folder of photos that are the textures, for items with textures
    workers: Workers = None
    progress: Progress | None = None  # called by items that take long
    tables_of: Callable[[str], Mapping[str, Rows] | None] = lambda name: None

    def run(self, progress: Progress | None = None) -> Run:
        """How an evaluation of the item runs."""
        return Run(workers=self.workers, folder=self.folder, progress=progress)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure, written as `name`.png and `name`.pdf, and its caption."""

    name: str
    figure: "Figure"
    caption: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, written as `name`.csv; also on the page if `shown`."""

    name: str
    caption: str = ""
    shown: bool = False
    rows: Rows


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A value of the paper beside ours, both as text."""

    what: str  # quantity, with its unit if the values have none
    paper: str
    ours: str
    same_conditions: bool = False  # a prototype and its simulation are not the same
    why: str  # which conditions are the same or differ, and what follows for the two values
    agrees: bool | None = None  # None where the conditions do not allow to say


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of an item.

    `remarks` are paragraphs for the page, about the result; `sweeps` are the parameters of each
    sweep that was run, as `d3s.lab.evaluate.evaluation.sweep_parameters` returns them.
    """

    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    comparisons: Sequence[Comparison] = ()
    remarks: Sequence[str] = ()
    sweeps: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, kw_only=True)
class Item:
    """A figure or a table of the paper, made again.

    An item is made again when one of those has been made whose tables it `uses`. One with typical
    lenses is made only when these are asked for, and has the same places in the paper as its
    counterpart with perfect lenses.
    """

    name: str  # on the command line and of the folder: lower case, digits and underscores
    title: str
    reference: str  # place in the paper as the page shows it: "Fig. 3b", "Fig. 6, Table S2"
    what: str  # for a reader of the paper: what is shown, and what to look for
    needs: Literal["seconds", "minutes"]  # how long it takes in full
    run: Callable[[Context], Result]
    places: tuple[str, ...] = ()  # further names, as `plain` writes them: "fig3b", "tables2"
    uses: tuple[str, ...] = ()  # names of items that it reads through `Context.tables_of`
    has_quick: bool = True  # whether a quick run makes it at a reduced size
    lens: Lens = "perfect"


def plain(name: str) -> str:
    """Letters and digits of a name as it was typed, in lower case: "Fig. 5a" is fig5a."""
    return "".join(c for c in name.lower() if c.isalnum())


RESULT = "result.json"
ERROR = "error.txt"
_PARTS = {"made_from", "files", "remarks", "pictures", "tables", "comparisons"}
_DPI = 150


def write_result(result: Result, root: Path, name: str, made_from: dict[str, Any]) -> None:
    """Write the figures and tables of an item into its folder, and then `result.json`.

    `made_from` is everything that decides the result, as JSON can hold it.
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
