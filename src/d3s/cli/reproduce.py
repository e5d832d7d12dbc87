"""`d3s demo` and `d3s reproduce`: a snapshot to begin with, and the paper again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from d3s.cli.camera import chosen_place
from d3s.cli.options import Telling
from d3s.cli.output import (
    SOME_FAILED,
    check_places,
    end,
    say_files,
    say_json,
    say_step,
    show,
    table,
)

if TYPE_CHECKING:
    from d3s import types
    from d3s.lab.demo import Demo
    from d3s.lab.reproduce.item import Item
    from d3s.lab.reproduce.run import Watcher

_STATES = {"made": "made", "kept": "kept from before", "failed": "FAILED"}


def demo(
    *,
    output: Path = Path("demo"),
    telling: Telling,
) -> None:
    """See what it is: a simulated snapshot, its depth by three methods, and a page about it.

    The first time takes up to a minute, most of it for compiling; later ones some ten seconds.

    Options:
        output: Folder for the results.
    """
    from d3s.atomic import make_folder
    from d3s.lab.demo import run_demo
    from d3s.lab.view.demo import FILES, TABLE_HEADINGS, TABLE_WORDS, table_rows, write_demo

    make_folder(output)
    check_places(*(output / name for name in FILES), force=telling.force)
    made = run_demo(on_step=None if telling.is_silent else say_step)
    files = write_demo(made, output, overwrite=telling.force)
    if telling.as_json:
        say_json(_as_json(made, files))
    elif not telling.quiet:
        rows = table(TABLE_HEADINGS, table_rows(made), title="One simulated snapshot")
        show(_camera(made), rows, notes=TABLE_WORDS)
        say_files({"Picture": files["demo.png"], "Page": files["index.html"]})


def _as_json(made: "Demo", files: dict[str, Path]) -> dict[str, object]:
    names = "mae_m", "median_m", "density", "coverage"
    figures = {
        name: {**{key: getattr(one.score, key) for key in names}, "time_s": one.time_s}
        for name, one in made.results.items()
    }
    return {"simulated": True, "methods": figures, "files": [str(one) for one in files.values()]}


def _camera(made: "Demo") -> str:
    """Sentence on the camera and the scene."""
    optics, depth_m = made.pair.rig.optics, made.pair.depth_m
    left_m, right_m = optics.focus_distances_m
    return (
        f"The {made.pair.rig.name}: baseline {1e3 * optics.baseline_m:.2f} mm, sensor distance "
        f"{1e3 * optics.sensor_distance_m:.1f} mm, f/{optics.f_number:.2f}, focused at "
        f"{left_m:.3f} m (left) and {right_m:.3f} m (right). The scene is from "
        f"{depth_m.min():.2f} to {depth_m.max():.2f} m."
    )


def reproduce(
    names: list[str] | None = None,
    *,
    output: Path = Path("reproduction"),
    quick: bool = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    lens: Literal["perfect", "typical"] = "perfect",
    photos: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    list_items: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Make the paper's figures and tables again, each beside what the paper has.

    Writes a folder for each item, with figures (PNG and PDF) and numbers (CSV), and index.html
    over all of them. What is there already is kept, so that a run which was stopped goes on; an
    item that fails does not stop the others. All items take an hour, and with --quick some minutes.

    Options:
        names (NAME): Items, or their places in the paper such as fig3b; all if left. See --list.
        output: Folder for the page.
        seed: Seed of all that is random.
        list_items: Say what there is, and stop.
        force: Make again what is there already.
    """
    from d3s.lab.reproduce.page import PAGE
    from d3s.lab.reproduce.run import find_items
    from d3s.lab.reproduce.run import reproduce as make

    if list_items:
        for item in find_items(names or (), lens=lens):
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
            lens=lens,
            photos=photos,
            workers=where,
            overwrite=force,
            watcher=watcher,
        )
    if not quiet:
        for outcome in outcomes:
            reason = f": {outcome.words}" if outcome.words else ""
            typer.echo(f"{outcome.item.name:16} {_STATES[outcome.state]}{reason}")
        say_files({"Page": output / PAGE})
    if any(outcome.state == "failed" for outcome in outcomes):
        end(SOME_FAILED)


@contextmanager
def _watcher(*, quiet: bool) -> "Iterator[Watcher | None]":
    """Observer of a run: a progress bar on a terminal, lines elsewhere, None if quiet."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield lambda *item: say_step(_words(*item))
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
