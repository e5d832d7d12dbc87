"""Options and steps that all commands with sweeps share: methods, workers, kept trials, files."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.output import goes_on, progress_bar, value_of

if TYPE_CHECKING:
    from d3s.batch.running import Workers as Place
    from d3s.lab.evaluate.contender import Contender
    from d3s.lab.evaluate.evaluation import Run


class LensName(StrEnum):
    """Values of --lens."""

    PERFECT = "perfect"
    TYPICAL = "typical"


_BETWEEN_METHODS = r",(?![^\[]*\])"  # a comma that is not within the brackets of an option

Workers = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT",
        help="Processes to share the work among, each with one thread; one for each core if left.",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Or the scheduler of a Dask cluster to do the work, such as tcp://10.0.0.1:8786.",
        show_default=False,
    ),
]


def method_option(if_left: str) -> Any:
    """Option --method; `if_left` names the methods of a sweep without it."""
    return typer.Option(
        "--method",
        "-m",
        metavar="NAME[:FIELD=VALUE...]",
        help="Method to try, with options if you like: consensus:min_confidence=0.8. Repeatable, "
        f"or with commas between: joint,bm. {if_left} if left.",
        show_default=False,
    )


def contenders_of(given: Iterable[str] | None, if_left: Iterable[str]) -> "tuple[Contender, ...]":
    """Return the contenders that --method names."""
    from d3s.lab.evaluate.contender import as_contenders

    words = [one for text in given or if_left for one in re.split(_BETWEEN_METHODS, text)]
    with value_of("--method"):
        return as_contenders([word.strip() for word in words])


@contextmanager
def sweep_run(
    files: Mapping[str, Path],
    pairs: int,
    *,
    workers: int | None,
    scheduler: str | None,
    force: bool,
    quiet: bool,
) -> "Iterator[Run]":
    """Context in which a sweep over `pairs` is run and its files are written.

    Existing files are refused before anything is run. Finished trials are kept beside the files
    until the context ends, in a folder named after the first file.
    """
    from d3s.lab.evaluate.evaluation import check_absent

    where = chosen_place(workers, scheduler)
    if not force:
        check_absent(*files.values())
    first = next(iter(files.values()))
    words = f"Trying {pairs} pairs."
    with (
        _kept_trials(first.parent, first.stem) as folder,
        progress_bar(pairs, words, quiet=quiet) as progress,
    ):
        yield {"workers": where, "folder": folder, "progress": progress}


def chosen_place(workers: int | None, scheduler: str | None) -> "Place":
    """Place that --workers or --scheduler names; an impossible one is wrong use."""
    from d3s.batch.running import checked_workers

    if scheduler is not None:
        if workers is not None:
            raise typer.BadParameter(
                "--workers is for this machine and --scheduler for a cluster: leave one of them."
            )
        return scheduler
    with value_of("--workers"):
        checked_workers(workers)
    return workers


def say_files(files: Mapping[str, Path]) -> None:
    """Print the paths of the results."""
    for what, path in files.items():
        # Not through rich, which would wrap a long path and read brackets in it as markup.
        typer.echo(f"{what.capitalize()}: {path}")


def say_left_out(reasons: Mapping[str, str]) -> None:
    """Print to stderr what was left out and why, by name."""
    for name, words in reasons.items():
        typer.echo(f"Left out: {name} {words}.", err=True)


@contextmanager
def _kept_trials(output: Path, command: str) -> Iterator[Path]:
    """Hidden folder for the finished trials of a command, removed when all is done.

    After Ctrl-C it stays, and a line tells how to go on. Folders of other commands stay.
    """
    folder = output / ".trials" / command
    with goes_on(
        lambda: (
            "The same command goes on from here: "
            f"{sum(1 for _ in folder.glob('*.json'))} finished trials are kept in {folder}."
        )
    ):
        yield folder
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # another command has trials there
        folder.parent.rmdir()
