"""`d3s calibrate` of several cameras: their folders in, a folder of rig files and reports out."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from d3s.cli.output import BAD_INPUT, NOTHING_USABLE, SOME_FAILED
from d3s.cli.progress import Failures, progress_bar
from d3s.cli.sweep import INTERRUPTED

if TYPE_CHECKING:
    from d3s import tasks
    from d3s.batch.calibrations import Calibrations


class Flags(NamedTuple):
    """Flags of the command."""

    force: bool
    skip_done: bool
    quiet: bool
    as_json: bool


def calibrate_many(
    folders: list[Path],
    output: Path,
    settings: dict[str, Any],
    workers: "tasks.Workers",
    flags: Flags,
) -> None:
    """Calibrate several cameras, and print a line for each.

    Parameters
    ----------
    folders
        Folders of captures.
    output
        Folder for rig files and reports.
    settings
        Arguments of `d3s.calibrate`.
    workers
        Number of processes, or a place.
    flags
        Flags of the command.
    """
    from d3s.batch.calibrations import calibrate_folders

    if flags.force and flags.skip_done:
        raise typer.BadParameter("--force does all again and --skip-done does not: leave one.")
    words, failures = f"Calibrating {len(folders)} cameras.", Failures()
    silent = flags.quiet or flags.as_json
    try:
        with progress_bar(len(folders), words, quiet=silent, failures=failures) as progress:
            found = calibrate_folders(
                folders,
                output,
                settings=settings,
                workers=workers,
                overwrite=flags.force,
                skip_done=flags.skip_done,
                progress=progress,
                on_refused=failures.add,
            )
    except KeyboardInterrupt:
        typer.echo(
            f"d3s: stopped. Calibrations that are finished are whole, in {output}. The same "
            "command with --skip-done instead of --force goes on from here.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    _print(found, output, flags)
    usable = [one for one in found.done if one.rig is not None]
    if len(usable) + len(found.skipped) == len(folders):
        return
    if usable or found.skipped:
        raise typer.Exit(SOME_FAILED)
    raise typer.Exit(NOTHING_USABLE if found.done else BAD_INPUT)


def _print(found: "Calibrations", output: Path, flags: Flags) -> None:
    if flags.as_json:
        values = {
            "done": [
                {
                    "name": one.name,
                    "grade": one.grade,
                    "summary": one.summary,
                    "rig": None if one.rig is None else str(one.rig),
                    "report": str(one.report),
                    "problem": one.problem,
                }
                for one in found.done
            ],
            "skipped": list(found.skipped),
            "refused": [one._asdict() for one in found.refused],
        }
        typer.echo(json.dumps(values, indent=2))
    elif not flags.quiet:
        for one in found.done:
            words = one.problem if one.rig is None else one.summary
            typer.echo(f"{one.name}: {one.grade}. {words}")
        for name in found.skipped:
            typer.echo(f"{name}: its report is there.")
        typer.echo(f"Rig files and reports: {output}")
    for refused in found.refused:
        typer.echo(f"Refused: {refused.name}: {refused.reason}", err=True)
