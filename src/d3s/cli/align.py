"""`d3s align`: what to turn and which way, while a camera is built; and captures to calibrate."""

import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from d3s.cli.camera import is_twin, rig_or_paper, source_options
from d3s.cli.live import serve
from d3s.cli.options import Address, Grab, Light
from d3s.cli.output import NOT_KNOWN, NOTHING_USABLE, end, progress_bar, say_step, value_of
from d3s.cli.values import Count, Length, length_m

if TYPE_CHECKING:
    from rich.console import Group

    from d3s.camera.align.measure import Alignment
    from d3s.camera.align.session import Session, Shown

_COLOURS = {"good": "green", "turn": "red", "unknown": "yellow"}
_WORDS = {"good": "good", "turn": "turn it", "unknown": "cannot know"}
_REFRESH_S = 0.2
_IN_JSON = ("number", "name", "seconds", "distance_m", "texture", "matches", "steps", "next")


def align(
    source: str,
    *,
    rig: str | None = None,
    distance: Length = None,
    left_lens: Literal["left", "right"] = "right",
    text: bool = False,
    as_json: bool = False,
    frames: Count = None,
    captures: Path | None = None,
    distances: str | None = None,
    grab: Grab,
    address: Address,
    light: Light,
) -> None:
    """Help somebody with a screwdriver: light, focus, partition, rows, roll and focus difference.

    A page shows one light a step, in the order of the work, and which way to turn; --text shows
    the same in the terminal. Both need raw frames with both halves of the sensor, of a wall with
    fine texture. With --captures, frames of a board at typed distances are checked and filed, and
    calibrated at the end. After --text, the exit code is 1 if something is to turn, and 6 if
    something could not be known. The camera is the paper's prototype if --rig is left.

    Options:
        source (SOURCE): Camera or raw frames: uvc:0, basler, genicam, twin:raw, a recording, a file
            or a folder.
        distance: Distance of the wall before the camera, such as 0.4 or 40cm; needed for the focus
            difference unless things near and far are in view.
        text: Print a table in the terminal, and open no page.
        as_json: Print one line of JSON for each frame, and no table.
        captures: Folder to file captures for the calibration in; continued if it has some.
        distances: Distances to capture, in metres: 0.25,0.3,0.4 or START:STOP:COUNT, even in
            1/distance. With --text; the page has a field for them.
    """
    from d3s.camera.align.filing import CaptureFolder, parsed_distances
    from d3s.camera.align.session import Session, Watch, calibration_of, open_raw

    camera = rig_or_paper(rig)
    with value_of("--distances"):
        planned = () if distances is None else parsed_distances(distances)
    if planned and (captures is None or not text):
        raise typer.BadParameter("--distances needs --captures and --text.")
    watch = Watch(camera, distance_m=distance, left_lens=left_lens, bayer=light.bayer)
    folder = None if captures is None else CaptureFolder(captures)
    with progress_bar(8, "Rendering the twin.", quiet=not is_twin(source)) as progress:
        frames_of = open_raw(source, camera, source_options(light, grab, progress=progress))
    calibrate = calibration_of(camera, left_lens=left_lens, bayer=light.bayer)
    with Session(frames_of, watch, captures=folder, calibrate=calibrate) as session:
        if as_json:
            _finish(_print_json(session, frames))
        elif text and folder is not None:
            _capture(session, list(planned))
        elif text:
            _finish(_print_tables(session, frames))
        else:
            _serve(session, address)


# Terminal -----------------------------------------------------------------------------------------


def _measured(session: "Session", frames: int | None) -> "Iterator[Shown]":
    """Measured frames as they come, each once."""
    arrived: queue.SimpleQueue[Shown | None] = queue.SimpleQueue()
    session.newest.listeners.append(lambda: arrived.put(session.newest.peek()))
    seen, count = None, 0
    while frames is None or count < frames:
        has_ended = session.is_done
        try:
            shown = arrived.get(timeout=_REFRESH_S)
        except queue.Empty:
            if has_ended:
                break
            continue
        if shown is not None and shown is not seen:
            seen, count = shown, count + 1
            yield shown


def _print_json(session: "Session", frames: int | None) -> "Alignment | None":
    from d3s.camera.align.feed import frame_json

    last = None
    for shown in _measured(session, frames):
        last = shown.alignment
        values = frame_json(shown)
        typer.echo(json.dumps({name: values[name] for name in _IN_JSON}, allow_nan=False))
    _say_problem(session)
    return last


def _print_tables(session: "Session", frames: int | None) -> "Alignment | None":
    """Table that is drawn again with every frame; on something else than a terminal, once."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    last = None
    with Live(console=console, auto_refresh=False, transient=True) as drawn:
        for shown in _measured(session, frames):
            last = shown
            drawn.update(_table(shown, session.state), refresh=console.is_terminal)
    if last is not None:
        console.print(_table(last, session.state))
    _say_problem(session)
    return None if last is None else last.alignment


def _say_problem(session: "Session") -> None:
    if session.problem:
        say_step(f"d3s: {session.problem}")


def _finish(last: "Alignment | None") -> None:
    """Exit code by the last frame."""
    from d3s.camera.align.quantities import steps_of

    states = {"turn"} if last is None else {step.state for step in steps_of(last.readings)}
    if "turn" in states:
        end(NOTHING_USABLE)
    if "unknown" in states:
        end(NOT_KNOWN)


def _table(shown: "Shown", state: str) -> "Group":
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    from d3s.camera.align.quantities import next_step, steps_of

    steps = steps_of(shown.alignment.readings)
    table = Table("quantity", "is", "sigma", "should be", "")
    titles: dict[str, list[str]] = {}  # by what is said of them: several may share one reason
    for number, step in enumerate(steps, 1):
        table.add_row(f"[bold]{number}. {step.title}[/bold]")
        for one in step.readings:
            shown_as = one.as_json()["shown"]
            colour = _COLOURS[one.state]
            sign = f"{one.arrow} {_WORDS[one.state]}".strip()
            table.add_row(
                f"   {one.kind.title}",
                shown_as["value"],
                shown_as["sigma"],
                one.should_be,
                f"[{colour}]{sign}[/{colour}]",
            )
            words = "; ".join(part for part in (one.advice, one.note) if part)
            if one.state != "good" and words:
                titles.setdefault(words, []).append(f"[{colour}]{one.kind.title}[/{colour}]")
        table.add_section()
    lines = [f"  {', '.join(those)}: {escape(words)}" for words, those in titles.items()]
    following = next_step(steps)
    now = "[bold green]All steps are good.[/bold green]"
    if following is not None:
        colour = _COLOURS[following.state]
        now = f"[bold {colour}]{following.title}: {escape(following.advice)}[/bold {colour}]"
    name = f" {shown.name}" if shown.name else ""
    return Group(f"Frame {shown.number}{escape(name)}, {escape(state)}.", table, *lines, now)


def _capture(session: "Session", planned: list[float]) -> None:
    """Ask for distances, file a frame at each, and calibrate at the end."""
    from d3s.errors import D3SError

    if session.captures is None:
        return
    done = {one.distance_m for one in session.captures.filed}
    planned = [one for one in planned if one not in done]
    typer.echo(f"{len(done)} frames are filed in {session.captures.folder}.")
    while True:
        typed = typer.prompt(
            "Distance of the board in metres (end to finish)",
            default=f"{planned[0]:g}" if planned else "end",
        ).strip()
        if typed.lower() in ("end", ""):
            break
        try:
            captured = session.capture(length_m(typed.replace(",", ".")))
        except typer.BadParameter as error:
            typer.echo(str(error))
            continue
        except D3SError as error:
            typer.echo(str(error))
            if session.has_ended:
                break
            continue
        if captured.filed is None:
            typer.echo("Not filed. " + " ".join(captured.problems))
            continue
        typer.echo(f"Filed as {captured.filed.name}.")
        planned = [one for one in planned if one != captured.filed.distance_m]
    if session.captures.missing:
        typer.echo(f"{session.captures.missing} more frames are needed to calibrate.")
    elif typer.confirm("Calibrate now?", default=True):
        _calibrate(session)


def _calibrate(session: "Session") -> None:
    say_step("Calibrating: this takes a minute or more.")
    found = session.run_calibration()
    values = found.values
    typer.echo(f"Verdict: {values['grade']}. {values['summary']}")
    for remark in values["remarks"]:
        typer.echo(f"  {remark['words']} {remark['remedy']}")
    typer.echo(f"Report:   {found.page_path}")
    if found.rig_path is None:
        say_step(f"d3s: {found.problem} No rig was written.")
        end(NOTHING_USABLE)
    typer.echo(f"Rig file: {found.rig_path}")


# Page ---------------------------------------------------------------------------------------------


def _serve(session: "Session", address: Address) -> None:
    """Serve the page until Ctrl-C."""
    from d3s.camera.live import check_server

    check_server()
    from d3s.camera.align.feed import align_pages

    serve(align_pages(session), address)
