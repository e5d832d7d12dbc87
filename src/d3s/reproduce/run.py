"""Items made, kept on disk, and made again only when something has changed.

A reproduction is a folder: one folder for each item, with its pictures, its tables and
`result.json`, which says what made them; and a page over all that is there.
"""

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from d3s.atomic import make_folder, write_text
from d3s.errors import D3SError, InputError, OutputError
from d3s.evaluate.jobs import checked_workers, code_digest
from d3s.reproduce.item import Context, Item, Result, Rows
from d3s.reproduce.page import write_page
from d3s.reproduce.registry import ITEMS, find_items
from d3s.reproduce.store import ERROR, stored_result, write_result
from d3s.types import Progress
from d3s.version import __version__

_MARK = "reproduction.json"  # a folder that has it is ours to write to


class Outcome(NamedTuple):
    """What became of an item: made now, kept from before, or failed, and then why."""

    item: Item
    state: Literal["made", "kept", "failed"]
    words: str = ""


class Watcher(Protocol):
    """Told what is being made."""

    def starts(self, item: Item, number: int, count: int) -> Progress | None:
        """An item is about to be made, the `number`th of `count`; what to tell its progress."""
        ...


def reproduce(
    names: Sequence[str] = (),
    folder: str | os.PathLike[str] = "reproduction",
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    overwrite: bool = False,
    watcher: Watcher | None = None,
    items: Sequence[Item] = ITEMS,
) -> tuple[Outcome, ...]:
    """Make items, and the page over them; one that fails does not stop the others.

    Parameters
    ----------
    names
        Of items, or their places in the paper (fig3b); all if there are none.
    folder
        For the results. An item that is there already, made from the same, is kept. One made in
        full is kept in a quick run too.
    quick
        Reduced sizes, for a first look in some minutes.
    seed
        Of all that is random.
    workers
        Processes at once; None for as many as there are cores.
    overwrite
        Make items again that are there, and write to a folder that holds other files.
    watcher
        Told as items start.

    Raises
    ------
    InputError
        Naming an item that is not known, or workers that cannot be.
    OutputError
        If the folder is a file, holds other things, or cannot be written to.
    """
    # What takes tables of others comes after them.
    chosen = sorted(find_items(names, items), key=lambda item: bool(item.uses))
    checked_workers(workers)
    root = Path(folder)
    _take(root, overwrite=overwrite)
    outcomes: list[Outcome] = []
    for number, item in enumerate(chosen, start=1):
        is_quick = quick and item.has_quick
        if not overwrite and _is_kept(item, root, is_quick, seed):
            outcomes.append(Outcome(item, "kept"))
            continue
        context = Context(
            folder=root / item.name / "work",
            quick=is_quick,
            seed=seed,
            workers=workers,
            progress=watcher.starts(item, number, len(chosen)) if watcher else None,
            tables_of=_tables_of(item, root),
        )
        outcomes.append(_made(item, root, context))
        write_page(root, items)  # after each, so that what is there is seen
    write_page(root, items)
    return tuple(outcomes)


def _take(root: Path, *, overwrite: bool) -> None:
    """Make the folder ours, unless it is somebody else's."""
    make_folder(root)
    try:
        is_ours = (root / _MARK).is_file() or not any(root.iterdir())
    except OSError as error:
        raise OutputError(
            f"{root} cannot be read: {error.strerror}. Choose a folder you may write to."
        ) from error
    if not is_ours and not overwrite:
        raise OutputError(
            f"{root} holds files that are no reproduction. Name a new folder, or allow files in "
            "it to be replaced: --force on the command line, overwrite=True in Python."
        )
    write_text(root / _MARK, json.dumps({"made_by": "d3s reproduce"}) + "\n", overwrite=True)


def _made(item: Item, root: Path, context: Context) -> Outcome:
    folder = root / item.name
    make_folder(folder)
    try:
        result = item.run(context)
        made_from = _made_from(item, root, context.quick, context.seed)
        write_result(result, root, item.name, made_from)
    except OutputError:  # of the user's disk, which fails for the others too
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the others must not be lost
        words = str(error) if isinstance(error, D3SError) else f"{type(error).__name__}: {error}"
        write_text(folder / ERROR, traceback.format_exc(), overwrite=True)
        return Outcome(item, "failed", f"{words} (where: {folder / ERROR})")
    return Outcome(item, "made")


def _made_from(item: Item, root: Path, quick: bool, seed: int) -> dict[str, Any]:
    """All that decides the result of an item."""
    return {
        "version": __version__,
        "code": code_digest()[:16],
        "source": _source_digest(item.run),
        "quick": quick,
        "seed": seed,
        "uses": {name: _digest(stored_result(root, name)) for name in item.uses},
    }


def _is_kept(item: Item, root: Path, quick: bool, seed: int) -> bool:
    """Whether an item is there, made from the same; or in full, where quick would do."""
    result = stored_result(root, item.name)
    if result is None or not all((root / item.name / one).is_file() for one in result["files"]):
        return False
    sizes = (True, False) if quick else (False,)
    return any(result["made_from"] == _made_from(item, root, size, seed) for size in sizes)


def _source_digest(run: Callable[[Context], Result]) -> str:
    """Of the file that the item is in, which need not be in this package."""
    path = getattr(sys.modules.get(run.__module__), "__file__", None)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] if path else ""


def _digest(result: dict[str, Any] | None) -> str | None:
    if result is None:
        return None
    text = json.dumps(result["made_from"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _tables_of(item: Item, root: Path) -> Callable[[str], Mapping[str, Rows] | None]:
    def tables_of(name: str) -> Mapping[str, Rows] | None:
        if name not in item.uses:
            raise InputError(f"{item.name} must name {name!r} in its `uses` to take its tables.")
        result = stored_result(root, name)
        return None if result is None else {one["name"]: one["rows"] for one in result["tables"]}

    return tables_of
