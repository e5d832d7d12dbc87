"""Items of the reproduction: their description, their input and their result.

An item is a module with a function from `Context` to `Result` and an `Item` of the name `ITEM`,
which `d3s.lab.reproduce.registry` lists. It writes no files: `d3s.lab.reproduce.run` writes its
result and puts it on the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from d3s.errors import InputError
from d3s.lab.evaluate.cameras import Lens
from d3s.tasks import Workers
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

    Parameters
    ----------
    folder
        Folder for finished parts of long work, so that it resumes; made when needed.
    quick
        Whether to use a reduced size: seconds for most items, three minutes for all.
    seed
        Seed of everything random.
    workers
        Number of processes; None for one for each core. Or a place of `d3s.tasks`.
    progress
        Called with the finished and the total amount of work, by items that take long.
    tables_of
        Returns the tables, by name, of another item; None if that has not finished. The item must
        be named in `Item.uses`. Cells are as JSON gives them back.
    """

    folder: Path
    quick: bool = False
    seed: int = 0
    workers: Workers = None
    progress: Progress | None = None
    tables_of: Callable[[str], Mapping[str, Rows] | None] = lambda name: None


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
    """A value of the paper beside ours.

    Parameters
    ----------
    what
        Quantity, with its unit if the values have none.
    paper, ours
        Values as text.
    same_conditions
        Whether both were found under the same conditions; a prototype and its simulation are not.
    why
        Which conditions are the same or differ, and what follows for the two values.
    agrees
        Whether our value confirms the paper's; None where the conditions do not allow to say.
    """

    what: str
    paper: str
    ours: str
    same_conditions: bool = False
    why: str
    agrees: bool | None = None


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

    Parameters
    ----------
    name
        Name on the command line and of the folder: lower case, digits and underscores.
    title
        Heading.
    reference
        Place in the paper as the page shows it: "Fig. 3b", "Fig. 6, Table S2".
    places
        The same as further names on the command line, as `plain` writes them: "fig3b", "tables2".
    what
        Description for a reader of the paper: what is shown, and what to look for.
    needs
        How long it takes in full.
    run
        Makes the item.
    uses
        Names of items whose tables it reads through `Context.tables_of`; it is made again when one
        of them has been made.
    has_quick
        Whether a quick run makes it at a reduced size; if not, it is always made in full.
    lens
        Lenses of the camera. An item with typical lenses is made only when these are asked for, and
        has the same places in the paper as its counterpart with perfect lenses.
    """

    name: str
    title: str
    reference: str
    what: str
    needs: Literal["seconds", "minutes"]
    run: Callable[[Context], Result]
    places: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    has_quick: bool = True
    lens: Lens = "perfect"

    def __post_init__(self) -> None:
        if not self.name.replace("_", "").isalnum() or self.name != self.name.lower():
            raise InputError(
                f"name={self.name!r} must be lower case, digits and underscores: it names a folder."
            )
        for place in self.places:
            if place != plain(place):
                raise InputError(f"places has {place!r}, which must be {plain(place)!r}.")


def plain(name: str) -> str:
    """Letters and digits of a name as it was typed, in lower case: "Fig. 5a" is fig5a."""
    return "".join(c for c in name.lower() if c.isalnum())
