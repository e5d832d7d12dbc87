"""`d3s check`: what has drifted since a rig was calibrated."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from d3s.cli.options import length_m
from d3s.cli.output import (
    BAD_INPUT,
    DRIFTED,
    NOT_KNOWN,
    Force,
    Json,
    Quiet,
    check_places,
    check_suffix,
    graded_table,
    progress_bar,
    say_json,
    say_refused,
    value_of,
)

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.check import CheckReport
    from d3s.frames import Frame, Refused


def check(
    rig: Annotated[
        Path, typer.Argument(help="Rig file of the camera.", metavar="RIG", show_default=False)
    ],
    frames: Annotated[
        list[Path],
        typer.Argument(
            help="Raw frames of different scenes, best ten or more; or a folder of them. With "
            "--pairs, as for d3s depth.",
            metavar="FRAMES",
            show_default=False,
            readable=False,  # files that cannot be read are refused one by one
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Mended rig file to write.", show_default=False),
    ] = None,
    distance: Annotated[
        list[float] | None,
        typer.Option(
            parser=length_m,
            metavar="LENGTH",
            help="The frames show a wall at this distance from the lenses, such as 1.0 or 80cm. "
            "Repeat it for one distance per frame.",
            show_default=False,
        ),
    ] = None,
    distance_sigma: Annotated[
        float | None,
        typer.Option(
            parser=length_m,
            metavar="LENGTH",
            help="Standard deviation of these distances; 1mm if left.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Report to write, one page of HTML; its numbers go beside it, as JSON.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        bool,
        typer.Option(help="Add the result to the log beside the rig file, for the trend."),
    ] = True,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="The files are rectified views, left and right.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find what has drifted since the calibration, from ordinary frames.

    Rows, roll, scale, turn, gain, flat field, focus, noise and spots, each with its uncertainty.
    With --output, a mended rig is written if something has drifted. Exit codes: 0 nothing has
    drifted, or the mended rig is written; 5 the camera has drifted; 6 the frames cannot tell.
    """
    import d3s
    from d3s.check.check_run import ROUNDS
    from d3s.check.drift import RULER_M, checked_distances
    from d3s.rig import Rig
    from d3s.rig.bayer import MONO

    _check_files(rig, output, report, force=force)
    camera = Rig.load(rig)
    if camera.doubt and not quiet:
        typer.echo(f"Note: {camera.doubt}", err=True)
    knows_colours = camera.calibration is not None and camera.calibration.bayer is not None
    given, refused = _read(frames, pairs=pairs, bayer=MONO if knows_colours else None)
    say_refused(refused)
    if not given:
        raise typer.Exit(BAD_INPUT)
    with value_of("--distance"):
        checked_distances(distance or (), len(given))
    number = "1 frame" if len(given) == 1 else f"{len(given)} frames"
    words = f"Checking {camera.name} by {number}."
    with progress_bar(ROUNDS * len(given), words, quiet=quiet or as_json) as progress:
        found = d3s.check(
            camera,
            given,
            distances_m=tuple(distance or ()),
            distance_sigma_m=distance_sigma or RULER_M,
            progress=progress,
        )
    lines = _write(found, rig, output, report, log=log, force=force)
    if as_json:
        say_json(found.as_json())
    elif not quiet:
        _print(found, lines)
    code = exit_code(found, is_mended=output is not None and found.can_mend)
    if code:
        raise typer.Exit(code)


def exit_code(found: "CheckReport", *, is_mended: bool) -> int:
    """Exit code of the command."""
    if found.verdict == "unknown":
        return NOT_KNOWN
    return DRIFTED if found.verdict == "drifted" and not is_mended else 0


def _check_files(rig: Path, output: Path | None, report: Path | None, *, force: bool) -> None:
    """Refuse outputs that cannot be written, before the work."""
    from d3s.estimate.plot.panels import need_matplotlib

    check_suffix(output, "--output", ".toml")
    check_suffix(report, "--report", ".html", ".htm")
    if output is not None and output.resolve() == rig.resolve():
        raise typer.BadParameter(
            f"{output} is the rig that is checked. Choose another name, and keep the old one.",
            param_hint="--output",
        )
    if report is not None:
        need_matplotlib()
    pages = () if report is None else (report, report.with_suffix(".json"))
    check_places(*(() if output is None else (output,)), *pages, force=force)


def _read(
    frames: list[Path], *, pairs: bool, bayer: str | None
) -> "tuple[list[Frame], list[Refused]]":
    """Frames of the files, and those that cannot be read."""
    from d3s.frames import FileSource, Frame, find_frames

    found = find_frames(frames, one_file_each=not pairs)
    outcomes = list(FileSource(found.frames, bayer=bayer))
    given = [one for one in outcomes if isinstance(one, Frame)]
    return given, [*found.refused, *(one for one in outcomes if not isinstance(one, Frame))]


def _write(
    found: "CheckReport",
    rig: Path,
    output: Path | None,
    report: Path | None,
    *,
    log: bool,
    force: bool,
) -> list[str]:
    """Write the files that are wanted; lines that name them."""
    from d3s.check.check_report import append_log, log_path, read_log
    from d3s.errors import D3SError
    from d3s.lab.view.check import write_check

    lines = []
    if output is not None:
        if found.can_mend:
            found.mended_rig.save(output, overwrite=force)
            lines.append(f"Mended rig: {output}")
        else:
            lines.append(f"{output} was not written: there is nothing that a rig file could mend.")
    checks = []
    if log:
        try:
            read_log(log_path(rig))  # nothing is added to a file that is no log
            path = append_log(found, rig)
            checks = read_log(path)
            lines.append(f"Log:        {path}")
        except D3SError as error:
            lines.append(f"No log: {error}")
    if report is not None:
        numbers = write_check(found, report, log=checks, overwrite=force)
        lines.append(f"Report:     {report}\nNumbers:    {numbers}")
    return lines


def _print(found: "CheckReport", files: list[str]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding

    console = Console()
    console.print(f"Verdict: {found.verdict}. {found.summary}", highlight=False)
    for remark in found.remarks:
        console.print(Padding(escape(remark), (0, 0, 0, 2)), highlight=False)
    console.print(_table(found))
    reasons = {one.reason for one in found.quantities if one.reason}
    for one in sorted(reasons):
        console.print(escape(f"Unknown: {one}"), highlight=False)
    for line in (*(f"Note: {note}" for note in found.notes), *files):
        typer.echo(line)


def _table(found: "CheckReport") -> "Table":
    return graded_table(
        ("quantity", "change", "sigma", "limit"),
        (
            (
                f"{one.kind.title} ({one.kind.unit})" if one.kind.unit else one.kind.title,
                *(one.shown(name) for name in ("value", "sigma", "limit")),
                one.state,
            )
            for one in found.quantities
        ),
    )
