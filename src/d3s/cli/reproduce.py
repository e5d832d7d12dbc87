"""`d3s reproduce`: make the paper's figures and tables again, on one page."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate.options import Photos
from d3s.cli.output import SOME_FAILED, Quiet
from d3s.cli.sweep import LensName, Scheduler, Workers, chosen_place

if TYPE_CHECKING:
    from d3s import types
    from d3s.lab.reproduce.item import Item
    from d3s.lab.reproduce.run import ItemOutcome, Watcher

_STATES = {"made": "made", "kept": "kept from before", "failed": "FAILED"}


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Items, or their places in the paper such as fig3b; all if left. See --list.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the page.")] = Path(
        "reproduction"
    ),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Reduced sizes: some minutes for all, instead of an hour."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    lens: Annotated[
        LensName,
        typer.Option(help="Lenses of the camera; fig5 is also made with typical, calibrated ones."),
    ] = LensName.PERFECT,
    photos: Photos = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    list_items: Annotated[
        bool, typer.Option("--list", help="Say what there is, and stop.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Make again what is there already.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Make the paper's figures and tables again, each beside what the paper has.

    Writes a folder for each item, with figures (PNG and PDF) and numbers (CSV), and index.html
    over all of them. What is there already is kept, so that a run which was stopped goes on; an
    item that fails does not stop the others.
    """
    from d3s.lab.reproduce.page import PAGE
    from d3s.lab.reproduce.run import find_items
    from d3s.lab.reproduce.run import reproduce as make

    if list_items:
        for item in find_items(names or (), lens=lens.value):
            names_of_item = f"{item.name:16} {item.places[0]:8} {item.reference:26}"
            typer.echo(f"{names_of_item} {item.title} ({item.needs})")
        return
    where = chosen_place(workers, scheduler)
    with _watcher(quiet=quiet) as watcher:
        outcomes = make(
            names or (),
            output,
            quick=quick,
            seed=seed,
            lens=lens.value,
            photos=photos,
            workers=where,
            overwrite=force,
            watcher=watcher,
        )
    if not quiet:
        _print(outcomes)
        typer.echo(f"Page: {output / PAGE}")
    if any(outcome.state == "failed" for outcome in outcomes):
        raise typer.Exit(SOME_FAILED)


def _print(outcomes: "tuple[ItemOutcome, ...]") -> None:
    for outcome in outcomes:
        reason = f": {outcome.words}" if outcome.words else ""
        typer.echo(f"{outcome.item.name:16} {_STATES[outcome.state]}{reason}")


@contextmanager
def _watcher(*, quiet: bool) -> "Iterator[Watcher | None]":
    """Observer of a run: a progress bar on a terminal, lines elsewhere, None if quiet."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield lambda *item: typer.echo(_words(*item), err=True)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def start(*item: Any) -> "types.Progress":
            bar.reset(task, total=None, description=escape(_words(*item)))
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield start


def _words(item: "Item", number: int, count: int) -> str:
    return f"[{number}/{count}] {item.reference}: {item.title}"
