"""What an item of the reproduction is, what it is given, and what it gives back.

An item lives in a module of its own, with a function from `Context` to `Result` and an `Item` that
names it; one line in `d3s.reproduce.registry` makes it known. It writes no files itself: what it
returns is written, and put on the page, by `d3s.reproduce.run`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from d3s.errors import InputError
from d3s.types import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | float | int | bool | None
"""What a cell of a table holds; a number that is not finite is written as an empty cell."""

Rows = Sequence[Mapping[str, Cell]]
"""Rows of a table: all with the same columns, in the same order."""

"""Called with how much is done, and how much there is."""


def no_tables(name: str) -> None:
    """Say that no other item has finished."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """What an item is given.

    Parameters
    ----------
    folder
        Where it may keep finished parts of long work, so that it resumes; made when needed.
    quick
        Whether a reduced size will do: seconds for most items, three minutes together.
    seed
        Of all that is random.
    workers
        Processes at once; None for as many as there are cores.
    progress
        Called as the work goes on, by items that take long.
    tables_of
        Tables, by their names, of another item that has finished; None if it has not. The item
        must be named in `Item.uses`. Cells are as JSON gives them back.
    """

    folder: Path
    quick: bool = False
    seed: int = 0
    workers: int | None = None
    progress: Progress | None = None
    tables_of: Callable[[str], Mapping[str, Rows] | None] = no_tables


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure, written as `name`.png and `name`.pdf, and the words below it."""

    name: str
    figure: "Figure"
    caption: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """Numbers, written as `name`.csv; on the page as well, if `shown`."""

    name: str
    rows: Rows
    caption: str = ""
    shown: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A value of the paper beside ours.

    Parameters
    ----------
    what
        The quantity, with its unit if the values have none.
    paper, ours
        As people read them.
    same_conditions
        Whether both were found under the same conditions; a prototype and its simulation are not.
    why
        What differs, or what makes them the same; and what to make of the two values.
    agrees
        Whether ours bears the paper's out; None where the conditions do not let one say.
    """

    what: str
    paper: str
    ours: str
    same_conditions: bool
    why: str
    agrees: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """What an item gives back.

    `remarks` are paragraphs for the page, of what was found; `sweeps` are the parameters of each
    sweep that was run, as `d3s.reproduce.shared.parameters_of` has them.
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
        What it is called on the command line and on disk: lower case, digits and underscores.
    title
        A few words for a heading.
    reference
        Where in the paper: "Fig. 3b", "Table S2". Also a name on the command line, as is fig3b.
    what
        What is shown and what to look for, in a few sentences for somebody with the paper in hand.
    needs
        How long it takes in full.
    run
        Makes it.
    uses
        Names of items whose tables it takes, through `Context.tables_of`; it is made again after
        they are.
    has_quick
        Whether a quick run makes it at a reduced size; if not, it is always made in full.
    """

    name: str
    title: str
    reference: str
    what: str
    needs: Literal["seconds", "minutes"]
    run: Callable[[Context], Result]
    uses: tuple[str, ...] = ()
    has_quick: bool = True

    def __post_init__(self) -> None:
        if not self.name.replace("_", "").isalnum() or self.name != self.name.lower():
            raise InputError(
                f"name={self.name!r} must be lower case, digits and underscores: it names a folder."
            )

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its places in the paper as `plain` has them; a figure of parts by its number, too."""
        places = [plain(part) for part in self.reference.split(",")]
        return tuple(dict.fromkeys((*places, *(one.rstrip("abc") for one in places))))


def plain(name: str) -> str:
    """Letters and digits of what somebody typed, in lower case: "Fig. 5a" is fig5a."""
    return "".join(c for c in name.lower() if c.isalnum())
