"""Run of items: up-to-date items are kept, all others are made.

A reproduction is a folder: one folder for each item, with its figures, its tables and
`result.json`, which says what they were made from; and a page over all items.
"""

import hashlib
import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from d3s.atomic import make_folder, write_text
from d3s.batch.running import Workers, checked_workers
from d3s.errors import D3SError, InputError, OutputError
from d3s.lab.evaluate.cameras import Lens
from d3s.lab.reproduce.item import (
    ERROR,
    Context,
    Item,
    Rows,
    plain,
    stored_result,
    write_result,
)
from d3s.lab.reproduce.page import write_page
from d3s.runtime.versions import code_digest
from d3s.types import Progress
from d3s.version import __version__

_PLACES = (
    "fig1b_working_range.ITEM",
    "fig3b_consensus.CONSENSUS_PLANE",
    "fig5_accuracy.ITEM",
    "fig5_order.ITEM",
    "fig5_typical.ITEM",
    "fig6_systems.ITEM",
    "fig7_real_world.ITEM",
    "tab_s1_cases.ITEM",
    "fig3b_consensus.ZICI",
    "fig_s3_tuning.AB_FIT",
    "fig_s3_tuning.BASELINES",
    "fig_s5_synthetic_scenes.ITEM",
    "fig_s6_psf.ITEM",
)


ITEMS: tuple[Item, ...] = tuple(
    getattr(import_module(f"d3s.lab.reproduce.{module}"), name)
    for module, name in (place.split(".") for place in _PLACES)
)
"""All items in the order of the paper, which is their order on the page."""


def find_items(
    names: Sequence[str], items: Sequence[Item] = ITEMS, lens: Lens = "perfect"
) -> tuple[Item, ...]:
    """Return items by their names or places in the paper, in the registry's order; all for none.

    An unknown name is refused with a list of all names and places. Items with other lenses are left
    out.
    """
    items = [item for item in items if item.lens == lens]
    if not names:
        return tuple(items)
    known = {item.name: {plain(item.name), *item.places} for item in items}
    unknown = [name for name in names if not any(plain(name) in keys for keys in known.values())]
    if unknown:
        kind = "" if lens == "perfect" else f" with {lens} lenses"
        raise InputError(
            f"{', '.join(map(repr, unknown))}: no such item{kind}. There are "
            f"{', '.join(f'{item.name} ({item.reference})' for item in items)}."
        )
    wanted = {plain(name) for name in names}
    return tuple(item for item in items if wanted & known[item.name])


_MARK = "reproduction.json"  # marks a folder that may be written to


class ItemOutcome(NamedTuple):
    """Outcome of an item: made now, kept from before, or failed, with the reason."""

    item: Item
    state: Literal["made", "kept", "failed"]
    words: str = ""


Watcher = Callable[[Item, int, int], Progress | None]
"""Observer of a run, called before an item is made.

It takes the item, its number from 1, and the number of all items of the run, and returns a callback
for the progress of the item, or None.
"""


def reproduce(
    names: Sequence[str] = (),
    folder: str | os.PathLike[str] = "reproduction",
    *,
    quick: bool = False,
    seed: int = 0,
    lens: Lens = "perfect",
    photos: str | None = None,
    workers: Workers = None,
    overwrite: bool = False,
    watcher: Watcher | None = None,
    items: Sequence[Item] = ITEMS,
) -> tuple[ItemOutcome, ...]:
    """Make items and the page over them; an item that fails does not stop the others.

    Parameters
    ----------
    names
        Names of items, or their places in the paper (fig3b); all `items` if there are none.
    folder
        Folder for the results. An item that is there, made from the same code and settings, is
        kept. One made in full is kept in a quick run too.
    quick
        Whether to use reduced sizes: some minutes for all items.
    lens
        With "typical" lenses, only items that have been measured with them are made.
    overwrite
        Whether to make items again that are there, and to write to a folder with other files.
    seed, photos, workers, watcher, items
        As in `Context`; observer of the run; items to choose from.
    """
    # Items that read tables of others come after them.
    chosen = sorted(find_items(names, items, lens), key=lambda item: bool(item.uses))
    checked_workers(workers)
    root = Path(folder)
    _take(root, overwrite=overwrite)
    outcomes: list[ItemOutcome] = []
    for number, item in enumerate(chosen, start=1):
        context = Context(
            folder=root / item.name / "work",
            quick=quick and item.has_quick,
            seed=seed,
            photos=photos,
            workers=workers,
            tables_of=_tables_of(item, root),
        )
        if not overwrite and _is_kept(item, root, context):
            outcomes.append(ItemOutcome(item, "kept"))
            continue
        progress = watcher(item, number, len(chosen)) if watcher else None
        outcomes.append(_made(item, root, replace(context, progress=progress)))
        write_page(root, items)  # after each item, so that finished ones can be seen
    write_page(root, items)
    return tuple(outcomes)


def _take(root: Path, *, overwrite: bool) -> None:
    """Mark a new or empty folder as a reproduction; refuse one with other files."""
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


def _made(item: Item, root: Path, context: Context) -> ItemOutcome:
    folder = root / item.name
    make_folder(folder)
    try:
        write_result(item.run(context), root, item.name, _made_from(item, root, context))
    except OutputError:  # the disk will fail for the others too
        raise
    except Exception as error:  # noqa: BLE001 - no error may stop the others
        words = str(error) if isinstance(error, D3SError) else f"{type(error).__name__}: {error}"
        write_text(folder / ERROR, traceback.format_exc(), overwrite=True)
        return ItemOutcome(item, "failed", f"{words} (where: {folder / ERROR})")
    return ItemOutcome(item, "made")


def _made_from(item: Item, root: Path, context: Context) -> dict[str, Any]:
    """Return everything that decides the result of an item."""
    return {
        "version": __version__,
        "code": code_digest()[:16],
        "quick": context.quick,
        "seed": context.seed,
        "photos": context.photos,
        "uses": {name: _digest(stored_result(root, name)) for name in item.uses},
    }


def _is_kept(item: Item, root: Path, context: Context) -> bool:
    """Whether an item on disk is up to date; one made in full also serves a quick run."""
    result = stored_result(root, item.name)
    if result is None or not all((root / item.name / one).is_file() for one in result["files"]):
        return False
    made_from = _made_from(item, root, context)
    return result["made_from"] in (made_from, {**made_from, "quick": False})


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
