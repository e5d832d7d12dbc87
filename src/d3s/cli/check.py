"""`d3s check`: what has drifted since a rig was calibrated."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from d3s.cli.camera import rig_or_paper
from d3s.cli.options import Light, Telling
from d3s.cli.output import (
    BAD_INPUT,
    DRIFTED,
    NOT_KNOWN,
    check_places,
    check_suffix,
    end,
    progress_bar,
    say_files,
    say_json,
    say_refused,
    say_step,
    show,
    table,
    value_of,
)
from d3s.cli.values import Distances, Length

if TYPE_CHECKING:
    from d3s.check import CheckReport
    from d3s.frames import Frame, Refused
    from d3s.rig import Rig


def check(
    frames: list[Path],
    *,
    rig: str,
    output: Path | None = None,
    distances: Distances = None,
    distance_sigma: Length = None,
    report: Path | None = None,
    log: bool = True,
    side_by_side: bool = False,
    light: Light,
    telling: Telling,
) -> None:
    """Find what has drifted since the calibration, from ordinary frames.

    Rows, roll, scale, turn, gain, flat field, focus, noise and spots, each with its uncertainty.
    With --output, a mended rig is written if something has drifted. The numbers of the report go
    beside it, as JSON. Exit codes: 0 nothing has drifted, or the mended rig is written; 5 the
    camera has drifted; 6 the frames cannot tell.

    Options:
        frames (FRAMES): Raw frames of different scenes, best ten or more, or a folder of them; or
            rectified pairs, by names that say left and right, as for d3s depth.
        rig ({RIG_FORM}): Rig file of the camera.
        output: Mended rig file to write.
        distances: The frames show a wall at this distance from the lenses, such as 1.0 or 80cm; or
            one for each frame, with commas between.
        distance_sigma: Standard deviation of these distances; 1mm if left.
        log: Add the result to the log beside the rig file, for the trend.
    """
    import d3s
    from d3s.check.check_run import ROUNDS
    from d3s.check.drift import RULER_M, checked_distances

    _check_files(Path(rig), output, report, force=telling.force)
    camera = rig_or_paper(rig, quiet=telling.quiet)
    given, refused = _read(frames, camera, light, side_by_side=side_by_side)
    say_refused(refused)
    if not given:
        end(BAD_INPUT)
    with value_of("--distances"):
        distances_m = checked_distances(distances or (), len(given))
    number = "1 frame" if len(given) == 1 else f"{len(given)} frames"
    words = f"Checking {camera.name} by {number}."
    with progress_bar(ROUNDS * len(given), words, quiet=telling.is_silent) as progress:
        found = d3s.check(
            camera,
            given,
            distances_m=distances_m,
            distance_sigma_m=distance_sigma or RULER_M,
            progress=progress,
        )
    files = _write(found, Path(rig), output, report, log=log, force=telling.force)
    if telling.as_json:
        say_json(found.as_json())
    elif not telling.quiet:
        _print(found)
        if output is not None and not found.can_mend:
            typer.echo(f"{output} was not written: there is nothing that a rig file could mend.")
        say_files(files)
    if found.verdict == "unknown":
        end(NOT_KNOWN)
    if found.verdict == "drifted" and not (output is not None and found.can_mend):
        end(DRIFTED)


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
    check_places(output, report, report and report.with_suffix(".json"), force=force)


def _read(
    frames: list[Path], rig: "Rig", light: Light, *, side_by_side: bool
) -> "tuple[list[Frame], list[Refused]]":
    """Frames of the files, and those that cannot be read."""
    from d3s.frames import FileSource, Frame, find_frames
    from d3s.rig.bayer import MONO

    knows_colours = rig.calibration is not None and rig.calibration.bayer is not None
    found = find_frames(frames, one_file_each=side_by_side or not _are_pairs(frames))
    outcomes = list(
        FileSource(
            found.frames,
            side_by_side=side_by_side,
            linear=light.linear,
            bayer=light.bayer or (MONO if knows_colours else None),
        )
    )
    given = [one for one in outcomes if isinstance(one, Frame)]
    return given, [*found.refused, *(one for one in outcomes if not isinstance(one, Frame))]


def _are_pairs(paths: list[Path]) -> bool:
    """Whether all names, or names in the folders, say left or right."""
    from d3s.frames.pairing import side_of

    return all(
        side_of(path) is not None
        or (path.is_dir() and any(side_of(one) is not None for one in path.iterdir()))
        for path in paths
    )


def _write(
    found: "CheckReport",
    rig: Path,
    output: Path | None,
    report: Path | None,
    *,
    log: bool,
    force: bool,
) -> dict[str, Path | None]:
    """Write the files that are wanted; their paths by what they are."""
    from d3s.check.check_report import append_log, log_path, read_log
    from d3s.errors import D3SError
    from d3s.lab.view.check import write_check

    files: dict[str, Path | None] = {}
    if output is not None and found.can_mend:
        found.mended_rig.save(output, overwrite=force)
        files["Mended rig"] = output
    checks = []
    if log:
        try:
            read_log(log_path(rig))  # nothing is added to a file that is no log
            files["Log"] = append_log(found, rig)
            checks = read_log(log_path(rig))
        except D3SError as error:
            say_step(f"No log: {error}")
    if report is not None:
        files["Report"] = report
        files["Numbers"] = write_check(found, report, log=checks, overwrite=force)
    return files


def _print(found: "CheckReport") -> None:
    rows = (
        (
            f"{one.kind.title} ({one.kind.unit})" if one.kind.unit else one.kind.title,
            *(one.shown(name) for name in ("value", "sigma", "limit")),
            one.state,
        )
        for one in found.quantities
    )
    show(
        f"Verdict: {found.verdict}. {found.summary}",
        *(f"  {remark}" for remark in found.remarks),
        table(("quantity", "change", "sigma", "limit", ""), rows),
        *(f"Unknown: {one}" for one in sorted({q.reason for q in found.quantities if q.reason})),
        *(f"Note: {note}" for note in found.notes),
    )
