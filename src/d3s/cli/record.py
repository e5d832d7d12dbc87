"""`d3s record`, `d3s replay` and `d3s recover`: recordings of frames."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.camera import given_rig, is_twin, name_of, source_options
from d3s.cli.depth import parsed_method
from d3s.cli.options import Estimate, Grab, Light, Telling
from d3s.cli.output import (
    BAD_INPUT,
    NOTHING_USABLE,
    SOME_FAILED,
    check_places,
    end,
    progress_bar,
    say_json,
    say_refused,
    say_step,
)
from d3s.cli.values import Count

if TYPE_CHECKING:
    from d3s.camera.recording import Recorder
    from d3s.frames import Source

_TICK_S = 0.5


def record(
    source: str,
    *,
    output: Path = Path("recording.mcap"),
    rig: str | None = None,
    seconds: float | None = None,
    frames: Count = None,
    side_by_side: bool = False,
    light: Light,
    grab: Grab,
    telling: Telling,
) -> None:
    """Record the frames of a camera without loss, until Ctrl-C.

    The file is MCAP with ROS 2 messages, which Foxglove opens. What was recorded stays, even if the
    program is killed or the disk is full; d3s recover then gives the file its index. Exit code 3
    if the disk failed, and 1 if there was no frame.

    Options:
        output: File to write.
    """
    from d3s.camera.capture.live_camera import LiveCamera, misfit
    from d3s.camera.capture.twin import DEFAULT_STEPS
    from d3s.camera.recording import Recorder
    from d3s.camera.recording.mcap import check_installed
    from d3s.frames import open_source

    check_installed()
    check_places(output, force=telling.force)
    camera = given_rig(rig)
    words = f"Rendering {DEFAULT_STEPS} frames of the scene."
    is_still = telling.is_silent or not is_twin(source)
    with progress_bar(DEFAULT_STEPS, words, quiet=is_still) as progress:
        more = {"keep_raw": True, "progress": progress or _no_progress}
        options = source_options(light, grab, side_by_side=side_by_side, **more)
        found = open_source(source, camera, options)
    with found:
        notes = {"camera": name_of(found, source)}
        if camera is not None and isinstance(found, LiveCamera):
            first = found.first()
            reason = "" if first is None else misfit(first, camera)
            if reason:
                say_step(f"Note: the rig does not fit the frames: {reason}")
        recorder = Recorder(output, rig=camera, notes=notes, overwrite=telling.force)
        try:
            with recorder:
                _record(found, recorder, seconds, frames, is_silent=telling.is_silent)
        finally:
            _print_outcome(recorder, found, output, telling)
    if not recorder.written:
        end(NOTHING_USABLE)


def _no_progress(done: int, total: int) -> None:
    """Say nothing."""


def _record(
    source: "Source",
    recorder: "Recorder",
    seconds: float | None,
    frames: int | None,
    *,
    is_silent: bool,
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
            if now_s - said_s > _TICK_S and not is_silent and sys.stderr.isatty():
                said_s = now_s
                typer.echo(f"\r{taken} frames, {recorder.dropped} dropped ", err=True, nl=False)
            is_over = seconds is not None and now_s - started_s >= seconds
            if recorder.error is not None or is_over or (frames is not None and taken >= frames):
                break
    except KeyboardInterrupt:
        pass


def _print_outcome(recorder: "Recorder", source: "Source", output: Path, telling: Telling) -> None:
    from d3s.camera.capture import LiveCamera

    camera = source if isinstance(source, LiveCamera) else None
    faults = [] if camera is None else [f"{one.kind}: {one.words}" for one in camera.faults]
    values = {
        "file": str(output),
        "frames": recorder.written,
        "lost_by_the_camera": 0 if camera is None else camera.lost,
        "dropped_by_the_recorder": recorder.dropped,
        "faults": faults,
    }
    if telling.as_json:
        say_json(values)
    elif not telling.quiet:
        typer.echo(
            f"{output}: {recorder.written} frames; {values['lost_by_the_camera']} lost by the "
            f"camera, {recorder.dropped} dropped by the recorder."
        )
        for words in faults[-5:]:
            say_step(f"Note: {words}")


def replay(
    recording: Path,
    *,
    output: Path | None = None,
    rig: str | None = None,
    estimate: Estimate,
    telling: Telling,
) -> None:
    """Estimate the depth of a recording again, and compare it with the recorded depth.

    The same frame, rig and options give the same bytes. Exit code 4 if some frames cannot be used
    or have another depth than the recorded one, and 3 if none can be used.

    Options:
        output: Recording to write, with the new depth.
    """
    from d3s.camera.recording import Recording
    from d3s.camera.recording.conversion import replay as replay_again

    check_places(output, force=telling.force)
    camera = given_rig(rig)
    name, options = parsed_method(estimate, camera)
    with Recording(recording) as found_frames:
        count = found_frames.frame_count
    words = f"Estimating the depth of {count} frames."
    with progress_bar(count, words, quiet=telling.is_silent) as progress:
        found = replay_again(
            recording,
            rig=camera,
            method=name,
            options=options,
            output=output,
            overwrite=telling.force,
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
    if telling.as_json:
        say_json(values)
    elif not telling.quiet:
        typer.echo(
            f"{found.frames} frames, median density {found.median_density:.1%}; "
            f"{found.same} of {found.same + found.different} recorded depth maps have the same "
            f"bytes; {found.lost} frames were lost."
        )
        if found.is_cut:
            say_step("Note: the end of the file is missing. d3s recover mends it.")
    say_refused(found.refused)
    if found.refused or found.different:
        end(SOME_FAILED if found.frames else BAD_INPUT)


def recover(
    recording: Path,
    *,
    output: Path | None = None,
    telling: Telling,
) -> None:
    """Make a whole recording of one that was cut by a crash or a full disk.

    All that can be read is copied, with an index, so that other programs open it too. Exit code 4
    if pieces in the middle were damaged.

    Options:
        output: File to write; NAME_recovered.mcap if left.
    """
    from d3s.camera.recording.conversion import recover as make_whole

    target = output or recording.with_name(f"{recording.stem}_recovered.mcap")
    check_places(target, force=telling.force)
    with progress_bar(1, "Copying all that can be read.", quiet=telling.is_silent) as progress:
        found = make_whole(recording, target, overwrite=telling.force, progress=progress)
    if telling.as_json:
        say_json({"file": str(target), **found._asdict()})
    elif not telling.quiet:
        state = "was cut" if found.was_cut else "was whole"
        typer.echo(
            f"{target}: {found.frames} frames, {found.messages} messages. The file {state}; "
            f"{found.damaged} damaged pieces are left out."
        )
    if found.damaged:
        end(SOME_FAILED)
