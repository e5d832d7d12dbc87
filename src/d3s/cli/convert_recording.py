"""Conversions of `d3s convert` between recordings, folders of images, and ROS 2 bags."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import typer

from d3s.cli.output import BAD_INPUT, SOME_FAILED, check_places
from d3s.cli.progress import progress_bar

_SUFFIX = ".mcap"


class RecordingOptions(NamedTuple):
    """Options of a conversion of a recording."""

    is_bag: bool  # whether the output is a ROS 2 bag
    topics: tuple[str, ...]
    full_scale: int | None
    rig: Path | None
    force: bool
    quiet: bool
    as_json: bool


def is_conversion(files: list[Path]) -> bool:
    """Whether two names are a recording and a folder, in either order."""
    if len(files) != 2:
        return False
    source, target = files
    if source.suffix.lower() == _SUFFIX:
        return not target.suffix or target.is_dir()
    return target.suffix.lower() == _SUFFIX and source.is_dir()


def convert_recording(source: Path, target: Path, options: RecordingOptions) -> None:
    """Convert a recording to a folder or a bag, or one of these to a recording.

    Parameters
    ----------
    source
        File or folder to read.
    target
        Folder or file to write.
    options
        Options of the command.
    """
    from d3s.camera.recording.mcap_file import check_installed

    check_installed()
    if source.suffix.lower() != _SUFFIX:
        check_places(target, force=options.force)
    written, refused = _job(source, target, options)
    values: dict[str, Any] = {
        "from": str(source),
        "to": str(target),
        "written": written,
        "refused": [one._asdict() for one in refused],
    }
    if options.as_json:
        typer.echo(json.dumps(values, indent=2))
    elif not options.quiet:
        what = "messages" if options.is_bag else "frames"
        typer.echo(f"{target}: {written} {what}.")
    for one in refused:
        typer.echo(f"Refused: {one.name}: {one.reason}", err=True)
    if refused:
        raise typer.Exit(SOME_FAILED if written else BAD_INPUT)


def _job(source: Path, target: Path, options: RecordingOptions) -> tuple[int, tuple[Any, ...]]:
    from d3s.camera.recording import bags, folders
    from d3s.rig import Rig

    rig = None if options.rig is None else Rig.load(options.rig)
    silent = options.quiet or options.as_json

    def run(work: Callable[[Any], Any]) -> Any:
        with progress_bar(1, f"Converting {source}.", quiet=silent) as progress:
            return work(progress)

    if source.suffix.lower() == _SUFFIX and options.is_bag:
        return run(lambda progress: bags.to_bag(source, target, progress=progress)), ()
    if source.suffix.lower() == _SUFFIX:
        found: tuple[int, tuple[Any, ...]] = run(
            lambda progress: folders.to_folder(
                source, target, overwrite=options.force, progress=progress
            )
        )
        return found
    if bags.is_bag(source):
        count = run(
            lambda progress: bags.from_bag(
                source,
                target,
                images=options.topics,
                rig=rig,
                full_scale=options.full_scale,
                overwrite=options.force,
                progress=progress,
            )
        )
        return count, ()
    found = run(
        lambda progress: folders.from_folder(
            source, target, rig=rig, overwrite=options.force, progress=progress
        )
    )
    return found
