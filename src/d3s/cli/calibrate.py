"""`d3s calibrate`: from captures of a board at known distances to rig files and reports."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from d3s.cli.camera import PAPER, chosen_place, given_rig
from d3s.cli.options import Light, Telling
from d3s.cli.output import (
    BAD_INPUT,
    NOTHING_USABLE,
    SOME_FAILED,
    check_places,
    check_suffix,
    end,
    goes_on,
    progress_bar,
    say_files,
    say_json,
    say_refused,
    say_step,
    show,
    table,
)

if TYPE_CHECKING:
    from d3s.batch.calibrations import Calibrations
    from d3s.batch.running import Workers
    from d3s.calibrate.calibration_report import Report


def calibrate(
    captures: list[Path],
    *,
    output: Path,
    report: Path | None = None,
    rig: str | None = None,
    left_lens: Literal["left", "right"] = "right",
    fit_ruler: bool | None = None,
    as_printed: bool = False,
    name: str | None = None,
    light: Light,
    workers: int | None = None,
    scheduler: str | None = None,
    telling: Telling,
) -> None:
    """Find everything that a home-made camera needs to know depth.

    Put a textured board at known distances, nearest first, and take a raw frame at each. The
    folder holds these frames and distances.csv: a file name and its distance in metres a line.
    --rig is the camera as it was built; the paper's prototype if left. The report and its numbers
    go beside the rig file unless --report says where.
    A rig that is not good is provisional: it is marked, and depth, live, check and info say so.
    Where nothing can be fitted the report says why, no rig is written, and the exit code is 1.
    Several cameras share the cores, and a rig file and a report of each go into one folder; those
    that have a report are left, so that a run which was stopped goes on.

    Options:
        captures (DIR...): Folder with raw frames of a board, and distances.csv; or several, one for
            each camera.
        output: Rig file to write; of several cameras, a folder.
        fit_ruler: Whether distances have an offset, the same for all, to be found and applied; if
            left, where it is clear.
        as_printed: Anchors and rectification as in the supplement of the paper: less accurate.
        name: What to call the camera; as the rig file if left.
    """
    settings: dict[str, Any] = {
        "left_lens": left_lens,
        "fit_ruler": fit_ruler,
        "as_printed": as_printed,
        "bayer": light.bayer,
        "linear": light.linear,
    }
    if len(captures) == 1 and scheduler is None:
        settings["name"] = output.stem if name is None else name
        _calibrate_one(captures[0], output, report, rig, settings, telling)
        return
    if name is not None or report is not None:
        raise typer.BadParameter(
            "--name and --report are for one camera: of several, folders name the results."
        )
    where = chosen_place(workers, scheduler)
    _calibrate_many(captures, output, rig, settings, where, telling)


def _calibrate_one(
    captures: Path,
    output: Path,
    report: Path | None,
    rig: str | None,
    settings: dict[str, Any],
    telling: Telling,
) -> None:
    """Calibrate one camera, write its files, and print the verdict."""
    from d3s.batch.calibrations import attempt
    from d3s.errors import OutputError
    from d3s.estimate.plot.panels import need_matplotlib
    from d3s.lab.view.calibration import write_report

    page = _page(output, report)
    need_matplotlib()
    files = output, page, page.with_suffix(".json")
    check_places(*files, force=telling.force)
    _check_inputs(captures, rig, *files)
    built = given_rig(rig)
    with progress_bar(100, f"Calibrating from {captures}.", quiet=telling.is_silent) as progress:
        made, found, problem = attempt(captures, design=built, progress=progress, **settings)
    if made is not None:  # before the report, which is less important
        made.save(output, overwrite=telling.force)
    try:
        numbers = write_report(found, page, overwrite=telling.force)
    except OutputError as error:
        outcome = f"No rig was written: {problem}" if made is None else f"The rig is in {output}."
        raise OutputError(f"{error} {outcome}") from error
    if telling.as_json:
        say_json(found.as_json())
    elif not telling.quiet:
        _print(found)
        written = None if made is None else output
        say_files({"Rig file": written, "Report": page, "Numbers": numbers})
    if made is None:
        earlier = f" {output} is that of an earlier calibration." if output.exists() else ""
        say_step(f"d3s: {problem} No rig was written.{earlier} {page} shows what was found.")
        end(NOTHING_USABLE)


def _page(output: Path, report: Path | None) -> Path:
    """Path of the report."""
    if output.name in ("", ".."):
        raise typer.BadParameter(f"--output {output} must name a file, as rig.toml does.")
    page = output.with_suffix(".html") if report is None else report
    check_suffix(page, "--report", ".html", ".htm")
    if output.resolve() in (page.resolve(), page.with_suffix(".json").resolve()):
        raise typer.BadParameter(f"--output {output} is the name of the report too. Choose two.")
    return page


def _check_inputs(captures: Path, rig: str | None, *paths: Path) -> None:
    """Refuse to replace inputs of the calibration."""
    from d3s.calibrate.distance_table import TABLE_NAME, read_table

    taken = [path for path in paths if path.exists()]
    if not taken:
        return
    names = [TABLE_NAME, *(row.name for row in read_table(captures))]
    inputs = {(captures / name).resolve() for name in names} | {Path(rig or TABLE_NAME).resolve()}
    for path in taken:
        if path.resolve() in inputs:
            raise typer.BadParameter(
                f"{path} is what the calibration is made from. Choose another name for the result."
            )


def _print(found: "Report") -> None:
    """Print the verdict, all measures with their limits, and which frames were left out."""
    from d3s.calibrate.verdict import NOTE_ON_MEASURES

    verdict = found.verdict
    measures = (
        (one.title_with_unit, one.value, one.good, one.usable, one.grade)
        for one in found.table_of_measures
    )
    show(
        f"Verdict: {verdict.grade}. {verdict.summary}",
        *(f"  {remark.words} {remark.remedy}" for remark in verdict.remarks),
        table(("measure", "value", "good to", "usable to", ""), measures),
        NOTE_ON_MEASURES,
        *(f"Left out: {name}: {reason}" for name, reason in found.not_read.items()),
        *(f"Left out: {found.names[frame]}: {why}" for frame, why in found.left_out.items()),
        *(
            f"Left out of the {step}: {found.names[frame]}: {reason}"
            for step, frames in found.left_out_by_step.items()
            for frame, reason in frames.items()
        ),
        *(f"Note: {note}" for note in found.notes),
    )


def _calibrate_many(
    folders: list[Path],
    output: Path,
    rig: str | None,
    settings: dict[str, Any],
    workers: "Workers",
    telling: Telling,
) -> None:
    """Calibrate several cameras, and print a line for each."""
    from d3s.batch.calibrations import calibrate_folders

    given_rig(rig)  # refused before the work
    design = str(Path(rig).absolute()) if rig is not None and rig != PAPER else None
    failures: list[object] = []
    with (
        goes_on(
            lambda: (
                f"Calibrations that are finished are whole, in {output}. The same command without "
                "--force goes on from here."
            )
        ),
        progress_bar(
            len(folders),
            f"Calibrating {len(folders)} cameras.",
            quiet=telling.is_silent,
            failures=failures,
        ) as progress,
    ):
        found = calibrate_folders(
            folders,
            output,
            settings={"design": design, **settings},
            workers=workers,
            overwrite=telling.force,
            skip_done=not telling.force,
            progress=progress,
            on_refused=failures.append,
        )
    _print_many(found, output, telling)
    usable = [one for one in found.done if one.rig is not None]
    if len(usable) + len(found.skipped) < len(folders):
        some = SOME_FAILED if usable or found.skipped else NOTHING_USABLE
        end(some if found.done or found.skipped else BAD_INPUT)


def _print_many(found: "Calibrations", output: Path, telling: Telling) -> None:
    if telling.as_json:
        names = "name", "grade", "summary", "rig", "report", "problem"
        done = [{name: getattr(one, name) for name in names} for one in found.done]
        for row in done:
            row |= {name: row[name] and str(row[name]) for name in ("rig", "report")}
        refused = [one._asdict() for one in found.refused]
        say_json({"done": done, "skipped": list(found.skipped), "refused": refused})
    elif not telling.quiet:
        for one in found.done:
            words = one.problem if one.rig is None else one.summary
            typer.echo(f"{one.name}: {one.grade}. {words}")
        for name in found.skipped:
            typer.echo(f"{name}: its report is there.")
        typer.echo(f"Rig files and reports: {output}")
    say_refused(found.refused)
