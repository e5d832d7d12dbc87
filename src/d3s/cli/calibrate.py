"""`d3s calibrate`: from captures of a board at known distances to rig files and reports."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from d3s.cli.options import Bayer, FileEncoding, is_linear, order_of
from d3s.cli.output import (
    BAD_INPUT,
    NOTHING_USABLE,
    SOME_FAILED,
    Force,
    Json,
    Quiet,
    check_places,
    check_suffix,
    goes_on,
    graded_table,
    progress_bar,
    say_json,
    say_refused,
)
from d3s.cli.sweep import Scheduler, Workers, chosen_place

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.batch.calibrations import Calibrations
    from d3s.batch.running import Workers as Place
    from d3s.calibrate.calibration_report import Report


class Flags(NamedTuple):
    """Flags of the command."""

    force: bool
    skip_done: bool
    quiet: bool
    as_json: bool


class Half(StrEnum):
    """Values of --left-lens."""

    LEFT = "left"
    RIGHT = "right"


def calibrate(
    captures: Annotated[
        list[Path],
        typer.Argument(
            help="Folder with raw frames of a board, and distances.csv; or several, one for each "
            "camera.",
            metavar="DIR...",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Rig file to write; of several cameras, a folder."),
    ],
    report: Annotated[
        Path | None,
        typer.Option(
            help="Report to write, one page of HTML; its numbers go beside it, as JSON. Beside the "
            "rig file if left.",
            show_default=False,
        ),
    ] = None,
    design: Annotated[
        Path | None,
        typer.Option(
            help="Rig file of the camera as it was built; the paper's prototype if left.",
            show_default=False,
        ),
    ] = None,
    left_lens: Annotated[
        Half, typer.Option(help="Half of the upright frame that the left lens lights.")
    ] = Half.RIGHT,
    fit_ruler: Annotated[
        bool | None,
        typer.Option(
            help="Whether distances have an offset, the same for all, to be found and applied; if "
            "left, where it is clear.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What to call the camera; as the rig file if left.", show_default=False),
    ] = None,
    bayer: Bayer = None,
    encoding: FileEncoding = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    skip_done: Annotated[
        bool,
        typer.Option("--skip-done", help="Of several cameras, leave those that have a report."),
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find everything that a home-made camera needs to know depth.

    Put a textured board at known distances, nearest first, and take a raw frame at each. The
    folder holds these frames and distances.csv: a file name and its distance in metres a line.
    A rig that is not good is provisional: it is marked, and depth, live, check and info say so.
    Where nothing can be fitted the report says why, no rig is written, and the exit code is 1.
    Several cameras share the cores, and a rig file and a report of each go into one folder.
    """
    if len(captures) > 1 or scheduler is not None:
        settings = {
            "design": None if design is None else str(design.absolute()),
            "left_lens": left_lens.value,
            "fit_ruler": fit_ruler,
            "bayer": order_of(bayer),
            "linear": is_linear(encoding),
        }
        if name is not None or report is not None:
            raise typer.BadParameter(
                "--name and --report are for one camera: of several, folders name the results."
            )
        where = chosen_place(workers, scheduler)
        flags = Flags(force, skip_done, quiet, as_json)
        _calibrate_many(captures, output, settings, where, flags)
        return
    if skip_done:
        raise typer.BadParameter("it is for several cameras.", param_hint="--skip-done")
    _calibrate_one(
        captures[0],
        output,
        _page(output, report),
        {
            "design": design,
            "left_lens": left_lens.value,
            "fit_ruler": fit_ruler,
            "name": output.stem if name is None else name,
            "bayer": order_of(bayer),
            "linear": is_linear(encoding),
        },
        Flags(force, skip_done, quiet, as_json),
    )


def _calibrate_one(
    captures: Path, output: Path, page: Path, settings: dict[str, Any], flags: Flags
) -> None:
    """Calibrate one camera, write its files, and print the verdict."""
    from d3s.batch.calibrations import attempt
    from d3s.errors import OutputError
    from d3s.estimate.plot.panels import need_matplotlib
    from d3s.lab.view.calibration import write_report
    from d3s.rig import Rig

    design = settings.pop("design")
    need_matplotlib()
    files = output, page, page.with_suffix(".json")
    check_places(*files, force=flags.force)
    _check_inputs(captures, design, *files)
    built = None if design is None else Rig.load(design)
    silent = flags.quiet or flags.as_json
    with progress_bar(100, f"Calibrating from {captures}.", quiet=silent) as progress:
        rig, found, problem = attempt(captures, design=built, progress=progress, **settings)
    if rig is not None:  # before the report, which is less important
        rig.save(output, overwrite=flags.force)
    try:
        numbers = write_report(found, page, overwrite=flags.force)
    except OutputError as error:
        outcome = f"No rig was written: {problem}" if rig is None else f"The rig is in {output}."
        raise OutputError(f"{error} {outcome}") from error
    if flags.as_json:
        say_json(found.as_json())
    elif not flags.quiet:
        _print(found)
        _say_files(None if rig is None else output, page, numbers)
    if rig is None:
        earlier = f" {output} is that of an earlier calibration." if output.exists() else ""
        words = f"{problem} No rig was written.{earlier} {page} shows what was found."
        typer.echo(f"d3s: {words}", err=True)
        raise typer.Exit(NOTHING_USABLE)


def _page(output: Path, report: Path | None) -> Path:
    """Path of the report."""
    if output.name in ("", ".."):
        raise typer.BadParameter(f"--output {output} must name a file, as rig.toml does.")
    page = output.with_suffix(".html") if report is None else report
    check_suffix(page, "--report", ".html", ".htm")
    if output.resolve() in (page.resolve(), page.with_suffix(".json").resolve()):
        raise typer.BadParameter(f"--output {output} is the name of the report too. Choose two.")
    return page


def _check_inputs(captures: Path, design: Path | None, *paths: Path) -> None:
    """Refuse to replace inputs of the calibration."""
    from d3s.calibrate.distance_table import TABLE_NAME, read_table

    taken = [path for path in paths if path.exists()]
    if not taken:
        return
    names = [TABLE_NAME, *(row.name for row in read_table(captures))]
    inputs = {(captures / name).resolve() for name in names}
    if design is not None:
        inputs.add(design.resolve())
    for path in taken:
        if path.resolve() in inputs:
            raise typer.BadParameter(
                f"{path} is what the calibration is made from. Choose another name for the result."
            )


def _print(found: "Report") -> None:
    """Print the verdict, all measures with their limits, and which frames were left out."""
    from rich.console import Console
    from rich.markup import escape

    from d3s.calibrate.verdict import NOTE_ON_MEASURES

    console = Console()
    verdict = found.verdict
    before = [
        f"Verdict: {verdict.grade}. {verdict.summary}",
        *(f"  {remark.words} {remark.remedy}" for remark in verdict.remarks),
    ]
    after = [
        NOTE_ON_MEASURES,
        *(f"Left out: {name}: {reason}" for name, reason in found.not_read.items()),
        *(f"Left out: {found.names[frame]}: {why}" for frame, why in found.left_out.items()),
        *(
            f"Left out of the {step}: {found.names[frame]}: {reason}"
            for step, frames in found.left_out_by_step.items()
            for frame, reason in frames.items()
        ),
        *(f"Note: {note}" for note in found.notes),
    ]
    for line in before:
        console.print(escape(line), highlight=False)
    console.print(_table(found))
    for line in after:
        console.print(escape(line), highlight=False)


def _table(found: "Report") -> "Table":
    return graded_table(
        ("measure", "value", "good to", "usable to"),
        (
            (one.title_with_unit, one.value, one.good, one.usable, one.grade)
            for one in found.table_of_measures
        ),
    )


def _say_files(output: Path | None, page: Path, numbers: Path) -> None:
    # Not by rich, which wraps long paths and reads brackets as markup.
    if output is not None:
        typer.echo(f"Rig file: {output}")
    typer.echo(f"Report:   {page}\nNumbers:  {numbers}")


def _calibrate_many(
    folders: list[Path],
    output: Path,
    settings: dict[str, Any],
    workers: "Place",
    flags: Flags,
) -> None:
    """Calibrate several cameras, and print a line for each."""
    from d3s.batch.calibrations import calibrate_folders

    if flags.force and flags.skip_done:
        raise typer.BadParameter("--force does all again and --skip-done does not: leave one.")
    words = f"Calibrating {len(folders)} cameras."
    failures: list[object] = []
    silent = flags.quiet or flags.as_json
    with (
        goes_on(
            lambda: (
                f"Calibrations that are finished are whole, in {output}. The same command with "
                "--skip-done instead of --force goes on from here."
            )
        ),
        progress_bar(len(folders), words, quiet=silent, failures=failures) as progress,
    ):
        found = calibrate_folders(
            folders,
            output,
            settings=settings,
            workers=workers,
            overwrite=flags.force,
            skip_done=flags.skip_done,
            progress=progress,
            on_refused=failures.append,
        )
    _print_many(found, output, flags)
    usable = [one for one in found.done if one.rig is not None]
    if len(usable) + len(found.skipped) == len(folders):
        return
    if usable or found.skipped:
        raise typer.Exit(SOME_FAILED)
    raise typer.Exit(NOTHING_USABLE if found.done else BAD_INPUT)


def _print_many(found: "Calibrations", output: Path, flags: Flags) -> None:
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
        say_json(values)
    elif not flags.quiet:
        for one in found.done:
            words = one.problem if one.rig is None else one.summary
            typer.echo(f"{one.name}: {one.grade}. {words}")
        for name in found.skipped:
            typer.echo(f"{name}: its report is there.")
        typer.echo(f"Rig files and reports: {output}")
    say_refused(found.refused)
