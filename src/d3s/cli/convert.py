"""`d3s convert`: depth from one format to others, and recordings to folders and back."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from d3s.cli.options import length_m
from d3s.cli.output import (
    BAD_INPUT,
    SOME_FAILED,
    Force,
    Quiet,
    check_places,
    progress_bar,
    say_json,
    say_refused,
    value_of,
)
from d3s.errors import D3SError, InputError
from d3s.formats import DEPTH_SUFFIXES, FORMATS, NPZ

if TYPE_CHECKING:
    from d3s.files import DepthImage, Points
    from d3s.rig import Rig

_BOTH_WAYS = " ".join(
    one.suffixes[0] for one in FORMATS if one.depth and one.reads_depth and one is not NPZ
)
_OUT_ONLY = " ".join(one.suffixes[0] for one in DEPTH_SUFFIXES.values() if not one.reads_depth)
HELP = (
    f"Convert depth between formats: {_BOTH_WAYS}, from .npz, and to {_OUT_ONLY}.\n\n"
    "The suffix chooses the format, and a name that ends in preview.png is a picture in colours "
    "with a bar. A name that ends in .glb or mesh.ply is a mesh with the left view as its texture, "
    "from an .npz file. What a format cannot hold is said. With --to every file is converted that "
    "can be; the others are named, and the exit code is 4, or 3 if none could be converted.\n\n"
    "A recording (.mcap) becomes a folder of images, or a ROS 2 bag with --bag; a folder of images "
    "or a ROS 2 bag becomes a recording. No bit of a frame is lost."
)


_RECORDING = ".mcap"


class _RecordingOptions(NamedTuple):
    """Options of a conversion of a recording."""

    is_bag: bool  # whether the output is a ROS 2 bag
    topics: tuple[str, ...]
    full_scale: int | None
    rig: Path | None
    force: bool
    quiet: bool
    as_json: bool


class _Settings(NamedTuple):
    """Settings that all conversions of one command share."""

    rig: "Rig | None"
    unit_m: float | None  # None for 1 mm, or another if that does not fit
    input_unit_m: float | None
    force: bool


def convert(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A file of depth, then the files to write; with --to, files of depth alone. Or a "
            "recording and a folder, in either order.",
            metavar="IN OUT...",
            readable=False,
        ),
    ],
    to: Annotated[
        list[str] | None,
        typer.Option(
            help="Suffix, such as .ply: convert every file to it, beside the file. May be given "
            "several times.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the files of --to.", show_default=False),
    ] = None,
    rig: Annotated[
        Path | None,
        typer.Option(
            help="Rig file, for points from a file that does not know its camera.",
            show_default=False,
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Unit of the integers in a PNG that is written, such as 0.1mm; 1mm if left, or a "
            "coarser one that is told if depths do not fit.",
            show_default=False,
        ),
    ] = None,
    input_unit: Annotated[
        str | None,
        typer.Option(
            help="Unit of the integers in a PNG that is read and does not state it, such as 1mm.",
            show_default=False,
        ),
    ] = None,
    bag: Annotated[bool, typer.Option("--bag", help="The folder to write is a ROS 2 bag.")] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            help="Topic of raw frames in a ROS 2 bag; or given twice, those of the left and the "
            "right view.",
            show_default=False,
        ),
    ] = None,
    full_scale: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Largest value of these frames, such as 4095.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
) -> None:
    """Convert depth between formats; the help text is `HELP`."""
    from d3s.rig import Rig

    if not to and _is_conversion(files):
        options = _RecordingOptions(bag, tuple(topic or ()), full_scale, rig, force, quiet, as_json)
        _convert_recording(files[0], files[1], options)
        return
    if bag or topic or full_scale is not None:
        raise typer.BadParameter(
            "--bag, --topic and --full-scale are for a recording (.mcap) and a folder."
        )
    settings = _Settings(
        None if rig is None else Rig.load(rig),
        None if unit is None else _unit_m(unit, "--unit"),
        None if input_unit is None else _unit_m(input_unit, "--input-unit"),
        force,
    )
    jobs = _jobs(files, to, output)
    if unit is not None and not any(map(_is_png, jobs[0][1])):
        raise typer.BadParameter("it is for a PNG, and none is written.", param_hint="--unit")
    done: list[dict[str, Any]] = []
    refused = []
    for source, targets in jobs:
        try:
            _check_names(source, targets, [path for one in done for path in one["files"]])
            done += _convert(source, targets, settings)
        except D3SError as error:
            if not to:
                raise
            refused.append(str(error))
    if as_json:
        say_json({"written": done, "refused": refused})
    elif not quiet:
        for one in done:
            typer.echo(_line(one))
    for words in refused:
        typer.echo(f"d3s: {words}", err=True)
    if refused:
        raise typer.Exit(SOME_FAILED if done else BAD_INPUT)


def _jobs(
    files: list[Path], to: list[str] | None, output: Path | None
) -> list[tuple[Path, list[Path]]]:
    """Files to read, each with the files to write."""
    from d3s.atomic import make_folder

    if not to:
        if output is not None:
            raise typer.BadParameter(
                "--output is for the files of --to. Name the files themselves."
            )
        if len(files) < 2:
            raise typer.BadParameter("Name a file to read, and then one or more to write.")
        return [(files[0], files[1:])]
    endings = [_ending(suffix) for suffix in to]
    if output is not None:
        make_folder(output)
    return [
        (path, [(output or path.parent) / f"{path.stem}{ending}" for ending in endings])
        for path in files
    ]


def _ending(suffix: str) -> str:
    """End of the names of the files to write."""
    from d3s.estimate.plot.preview import ENDING
    from d3s.files.depth_files import format_of
    from d3s.lab.dense.mesh import is_mesh

    ending = suffix if suffix.startswith((".", "_")) else f".{suffix}"
    with value_of("--to"):
        if Path(ending).name != ending:
            raise InputError(f"{suffix!r} is a path. Give a suffix, and the folder as --output.")
        # .npz is refused later, with the reason
        if not ending.endswith((ENDING, ".npz")) and not is_mesh(Path(f"name{ending}")):
            format_of(f"name{ending}")
    return ending


def _unit_m(text: str, option: str) -> float:
    from d3s.files.depth_png import check_unit

    with value_of(option):
        unit_m = length_m(text)
        check_unit(unit_m)
    return unit_m


def _is_png(target: Path) -> bool:
    """Whether a file is a PNG of depths with a unit, and no picture of them."""
    from d3s.estimate.plot.preview import ENDING

    return target.suffix.lower() == ".png" and not target.name.endswith(ENDING)


def _check_names(source: Path, targets: list[Path], written: Iterable[str]) -> None:
    """Refuse to replace the file that is read, or a file that this command has written."""
    from d3s.files.raw import path_text

    taken = {os.path.realpath(path) for path in written}
    for target in targets:
        if os.path.realpath(target) == os.path.realpath(source):
            raise InputError(
                f"{path_text(source)} is the file that is read. Name another to write."
            )
        if os.path.realpath(target) in taken:
            raise InputError(
                f"{path_text(source)} would become {path_text(target)}, and so did another of the "
                "files. Convert it to another folder, with --output."
            )


def _convert(source: Path, targets: list[Path], settings: _Settings) -> list[dict[str, Any]]:
    from d3s.estimate.plot.preview import ENDING
    from d3s.files import DepthImage, read_depth
    from d3s.files.depth_files import check_target
    from d3s.files.raw import named
    from d3s.lab.dense.mesh import is_mesh

    content = read_depth(source, unit_m=settings.input_unit_m)
    if settings.rig is not None and isinstance(content, DepthImage):
        focal_length_px = settings.rig.optics.focal_length_px
        with named(source):
            content = content.with_camera(focal_length_px, settings.rig.principal_point_px)
    for target in targets:  # all checked before the first is written
        with named(target):
            if is_mesh(target):
                _check_mesh(source)
            elif not target.name.endswith(ENDING):
                check_target(content, target)
            elif not isinstance(content, DepthImage):
                raise InputError("a picture needs an image of depths, and these are points.")
    return [_write(content, source, target, settings) for target in targets]


def _check_mesh(source: Path) -> None:
    """Refuse a mesh of a file that does not tell filled depths from measured ones."""
    if source.suffix.lower() != NPZ.suffixes[0]:
        raise InputError(
            "a mesh is made of an .npz file of d3s depth or d3s densify, which has the camera, the "
            "left view and the flags. Give that file."
        )


def _write(
    content: "DepthImage | Points", source: Path, target: Path, settings: _Settings
) -> dict[str, Any]:
    from d3s.estimate import DepthMap
    from d3s.estimate.plot.preview import ENDING, write_preview
    from d3s.files import DepthImage, write_depth
    from d3s.files.depth_files import lost
    from d3s.lab.dense.mesh import is_mesh, write_mesh

    if isinstance(content, DepthImage) and target.name.endswith(ENDING):
        rows, cols = content.depth_m.shape
        names = [content.notes[name] for name in ("camera", "method") if name in content.notes]
        words = f"{content.density:.0%} of {rows} x {cols} px have a depth"
        title = ": ".join([", ".join(names), words]) if names else words
        write_preview(target, content.depth_m, title=title, overwrite=settings.force)
        written, without = [target], ["the numbers"]
    elif is_mesh(target):
        write_mesh(target, DepthMap.load(source), overwrite=settings.force)
        written, without = [target], []
    else:
        unit_m = settings.unit_m or _png_unit_m(content, target)
        written = write_depth(target, content, unit_m=unit_m, overwrite=settings.force)
        without = list(lost(content, target, unit_m))
    return {"from": str(source), "files": [str(path) for path in written], "without": without}


def _png_unit_m(content: "DepthImage | Points", target: Path) -> float:
    """Unit of a PNG in metres: a millimetre if that holds all depths."""
    from d3s.files import DepthImage
    from d3s.files.depth_files import MILLIMETRE_M
    from d3s.files.depth_png import fitting_unit_m

    if not isinstance(content, DepthImage) or not _is_png(target):
        return MILLIMETRE_M
    return fitting_unit_m(content.depth_m) or MILLIMETRE_M


def _line(entry: dict[str, Any]) -> str:
    from d3s.files.raw import path_text

    without = f" (without {', '.join(entry['without'])})" if entry["without"] else ""
    return f"{', '.join(map(path_text, entry['files']))}{without}"


def _is_conversion(files: list[Path]) -> bool:
    """Whether two names are a recording and a folder, in either order."""
    if len(files) != 2:
        return False
    source, target = files
    if source.suffix.lower() == _RECORDING:
        return not target.suffix or target.is_dir()
    return target.suffix.lower() == _RECORDING and source.is_dir()


def _convert_recording(source: Path, target: Path, options: _RecordingOptions) -> None:
    """Convert a recording to a folder or a bag, or one of these to a recording."""
    from d3s.camera.recording.mcap import check_installed

    check_installed()
    if source.suffix.lower() != _RECORDING:
        check_places(target, force=options.force)
    written, refused = _converted(source, target, options)
    values: dict[str, Any] = {
        "from": str(source),
        "to": str(target),
        "written": written,
        "refused": [one._asdict() for one in refused],
    }
    if options.as_json:
        say_json(values)
    elif not options.quiet:
        what = "messages" if options.is_bag else "frames"
        typer.echo(f"{target}: {written} {what}.")
    say_refused(refused)
    if refused:
        raise typer.Exit(SOME_FAILED if written else BAD_INPUT)


def _converted(
    source: Path, target: Path, options: _RecordingOptions
) -> tuple[int, tuple[Any, ...]]:
    from d3s.camera.recording import conversion
    from d3s.rig import Rig

    rig = None if options.rig is None else Rig.load(options.rig)
    force, silent = options.force, options.quiet or options.as_json
    with progress_bar(1, f"Converting {source}.", quiet=silent) as progress:
        if source.suffix.lower() == _RECORDING and options.is_bag:
            return conversion.to_bag(source, target, progress=progress), ()
        if source.suffix.lower() == _RECORDING:
            return conversion.to_folder(source, target, overwrite=force, progress=progress)
        more: dict[str, Any] = {"rig": rig, "overwrite": force, "progress": progress}
        if not conversion.is_bag(source):
            return conversion.from_folder(source, target, **more)
        topics, full_scale = options.topics, options.full_scale
        count = conversion.from_bag(source, target, images=topics, full_scale=full_scale, **more)
        return count, ()
