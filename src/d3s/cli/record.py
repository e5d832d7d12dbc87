"""`d3s record`, `d3s replay` and `d3s recover`: recordings of frames."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.camera import (
    CameraOptions,
    SideBySide,
    SourceRig,
    SourceWord,
    name_of,
    opened,
    rig_of_word,
)
from d3s.cli.options import with_groups
from d3s.cli.output import (
    BAD_INPUT,
    NOTHING_USABLE,
    SOME_FAILED,
    Force,
    Json,
    Quiet,
    check_places,
    progress_bar,
    say_json,
    say_refused,
)

if TYPE_CHECKING:
    from d3s.camera.recording import Recorder
    from d3s.frames import Source

_TICK_S = 0.5


@with_groups
def record(
    source: SourceWord,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write.", show_default=False)
    ] = Path("recording.mcap"),
    rig: SourceRig = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.001, help="Stop after so many seconds.", show_default=False),
    ] = None,
    frames: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many frames.", show_default=False)
    ] = None,
    side_by_side: SideBySide = False,
    grabbing: CameraOptions = CameraOptions(),  # noqa: B008 - frozen
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Record the frames of a camera without loss, until Ctrl-C.

    The file is MCAP with ROS 2 messages, which Foxglove opens. What was recorded stays, even if the
    program is killed or the disk is full; d3s recover then gives the file its index. Exit code 3
    if the disk failed, and 1 if there was no frame.
    """
    from d3s.camera.capture.live_camera import LiveCamera, misfit
    from d3s.camera.recording import Recorder
    from d3s.camera.recording.mcap import check_installed
    from d3s.frames import SourceOptions

    check_installed()
    check_places(output, force=force)
    camera = rig_of_word(rig)
    options = SourceOptions(
        side_by_side=side_by_side,
        rate_hz=grabbing.rate,
        exposure_s=grabbing.exposure,
        gain=grabbing.gain,
        keep_raw=True,
    )
    with opened(source, camera, options, quiet=quiet or as_json) as frames_of:
        notes = {"camera": name_of(frames_of, source)}
        if camera is not None and isinstance(frames_of, LiveCamera):
            first = frames_of.first()
            reason = "" if first is None else misfit(first, camera)
            if reason:
                typer.echo(f"Note: the rig does not fit the frames: {reason}", err=True)
        recorder = Recorder(output, rig=camera, notes=notes, overwrite=force)
        try:
            with recorder:
                _record(frames_of, recorder, seconds, frames, quiet or as_json)
        finally:
            _print_outcome(recorder, frames_of, output, quiet, as_json)
    if not recorder.written:
        raise typer.Exit(NOTHING_USABLE)


def _record(
    source: "Source",
    recorder: "Recorder",
    seconds: float | None,
    frames: int | None,
    silent: bool,
) -> None:
    """Record until the source ends, a limit is reached, Ctrl-C is pressed, or the disk fails."""
    from d3s.camera.capture import LiveCamera
    from d3s.frames import Refused

    is_live = isinstance(source, LiveCamera)
    started_s = said_s = time.monotonic()
    taken = 0
    try:
        for outcome in source:
            if isinstance(outcome, Refused):
                recorder.refuse(outcome)
            else:
                recorder.put(outcome, wait=not is_live)
                taken += 1
            now_s = time.monotonic()
            if now_s - said_s > _TICK_S and not silent and sys.stderr.isatty():
                said_s = now_s
                typer.echo(f"\r{taken} frames, {recorder.dropped} dropped ", err=True, nl=False)
            is_over = seconds is not None and now_s - started_s >= seconds
            if recorder.error is not None or is_over or (frames is not None and taken >= frames):
                break
    except KeyboardInterrupt:
        pass


def _print_outcome(
    recorder: "Recorder", source: "Source", output: Path, quiet: bool, as_json: bool
) -> None:
    from d3s.camera.capture import LiveCamera

    camera = source if isinstance(source, LiveCamera) else None
    lost = 0 if camera is None else camera.lost
    faults = [] if camera is None else [f"{one.kind}: {one.words}" for one in camera.faults]
    if as_json:
        values = {
            "file": str(output),
            "frames": recorder.written,
            "lost_by_the_camera": lost,
            "dropped_by_the_recorder": recorder.dropped,
            "faults": faults,
        }
        say_json(values)
    elif not quiet:
        typer.echo(
            f"{output}: {recorder.written} frames; {lost} lost by the camera, {recorder.dropped} "
            "dropped by the recorder."
        )
        for words in faults[-5:]:
            typer.echo(f"Note: {words}", err=True)


def replay(
    recording: Annotated[
        Path, typer.Argument(help="A recording (.mcap).", metavar="FILE", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Recording to write, with the new depth.", show_default=False
        ),
    ] = None,
    rig: SourceRig = None,
    method: Annotated[
        str, typer.Option("--method", "-m", help="joint, consensus, sgbm, or another.")
    ] = "joint",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE", help="Option of the method. Repeatable.", show_default=False
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Estimate the depth of a recording again, and compare it with the recorded depth.

    The same frame, rig and options give the same bytes. Exit code 4 if some frames cannot be used
    or have another depth than the recorded one, and 3 if none can be used.
    """
    from d3s.camera.recording import Recording
    from d3s.camera.recording.conversion import replay as replay_again
    from d3s.cli.depth import parsed_method

    if output is not None:
        check_places(output, force=force)
    name, options = parsed_method(method, option or (), None)
    with Recording(recording) as found_frames:
        count = found_frames.frame_count
    words = f"Estimating the depth of {count} frames."
    with progress_bar(count, words, quiet=quiet or as_json) as progress:
        found = replay_again(
            recording,
            rig=rig_of_word(rig),
            method=name,
            options=options,
            output=output,
            overwrite=force,
            progress=progress,
        )
    values: dict[str, Any] = {
        "frames": found.frames,
        "refused": [one._asdict() for one in found.refused],
        "same_as_recorded": found.same,
        "different": found.different,
        "median_density": found.median_density if found.frames else None,
        "lost": found.lost,
        "is_cut": found.is_cut,
    }
    if as_json:
        say_json(values)
    elif not quiet:
        typer.echo(
            f"{found.frames} frames, median density {found.median_density:.1%}; "
            f"{found.same} of {found.same + found.different} recorded depth maps have the same "
            f"bytes; {found.lost} frames were lost."
        )
        if found.is_cut:
            typer.echo("Note: the end of the file is missing. d3s recover mends it.", err=True)
    say_refused(found.refused)
    if found.refused or found.different:
        raise typer.Exit(SOME_FAILED if found.frames else BAD_INPUT)


def recover(
    recording: Annotated[
        Path,
        typer.Argument(help="An MCAP file that was cut.", metavar="FILE", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; NAME_recovered.mcap if left.", show_default=False
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a whole recording of one that was cut by a crash or a full disk.

    All that can be read is copied, with an index, so that other programs open it too. Exit code 4
    if pieces in the middle were damaged.
    """
    from d3s.camera.recording.conversion import recover as make_whole

    target = output or recording.with_name(f"{recording.stem}_recovered.mcap")
    check_places(target, force=force)
    with progress_bar(1, "Copying all that can be read.", quiet=quiet or as_json) as progress:
        found = make_whole(recording, target, overwrite=force, progress=progress)
    if as_json:
        say_json({"file": str(target), **found._asdict()})
    elif not quiet:
        state = "was cut" if found.was_cut else "was whole"
        typer.echo(
            f"{target}: {found.frames} frames, {found.messages} messages. The file {state}; "
            f"{found.damaged} damaged pieces are left out."
        )
    if found.damaged:
        raise typer.Exit(SOME_FAILED)
