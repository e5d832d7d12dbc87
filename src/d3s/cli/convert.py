"""`d3s convert`: depth from one format to others, and recordings to folders and back."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.camera import given_rig
from d3s.cli.options import Given, Telling
from d3s.cli.output import (
    BAD_INPUT,
    SOME_FAILED,
    check_places,
    end,
    progress_bar,
    say_json,
    say_refused,
    say_step,
    value_of,
)
from d3s.cli.values import Unit
from d3s.errors import D3SError, InputError
from d3s.formats import NPZ

if TYPE_CHECKING:
    from d3s.files import DepthImage, Points
    from d3s.rig import Rig

_RECORDING = ".mcap"


def convert(
    files: list[Path],
    *,
    to: list[str] | None = None,
    output: Path | None = None,
    rig: str | None = None,
    unit: Unit = None,
    input_unit: Unit = None,
    bag: bool = False,
    topic: list[str] | None = None,
    full_scale: Annotated[int | None, typer.Option(min=1, max=65535)] = None,
    telling: Telling,
) -> None:
    """Convert depth from one format to others, and recordings to folders and back.

    The suffix chooses the format, and a name that ends in preview.png is a picture in colours with
    a bar. A name that ends in .glb or mesh.ply is a mesh with the left view as its texture, from an
    .npz file. What a format cannot hold is said. With --to every file is converted that can be; the
    others are named, and the exit code is 4, or 3 if none could be converted. Points from a file
    that does not know its camera need --rig.

    A recording (.mcap) becomes a folder of images, or a ROS 2 bag with --bag; a folder of images
    or a ROS 2 bag becomes a recording. No bit of a frame is lost.

    Options:
        files (IN OUT...): A file of depth (.npz .png .tiff .pfm .npy .exr .ply), then the files to
            write (also .csv and .mcap); with --to, files of depth alone. Or a recording and a
            folder, in either order.
        to: Suffix, such as .ply: convert every file to it, beside the file. Repeatable.
        output: Folder for the files of --to.
        unit: Unit of the integers in a PNG that is written, such as 0.1mm; 1mm if left, or a
            coarser one that is told if depths do not fit.
        input_unit: Unit of the integers in a PNG that is read and does not state it, such as 1mm.
        bag: The folder to write is a ROS 2 bag.
        topic: Topic of raw frames in a ROS 2 bag; or given twice, those of the left and the right
            view.
        full_scale: Largest value of these frames, such as 4095.
    """
    camera = given_rig(rig)
    if not to and _is_conversion(files):
        if bag:
            bag_options: Given = {"is_bag": True}
        else:
            bag_options = {"topics": tuple(topic or ()), "full_scale": full_scale, "rig": camera}
        _convert_recording(files[0], files[1], bag_options, telling)
        return
    if bag or topic or full_scale is not None:
        raise typer.BadParameter(
            "--bag, --topic and --full-scale are for a recording (.mcap) and a folder."
        )
    _check_unit(unit, "--unit")
    _check_unit(input_unit, "--input-unit")
    jobs = _jobs(files, to, output)
    if unit is not None and not any(map(_is_png, jobs[0][1])):
        raise typer.BadParameter("it is for a PNG, and none is written.", param_hint="--unit")
    done: list[dict[str, Any]] = []
    refused = []
    for source, targets in jobs:
        try:
            _check_names(source, targets, [path for one in done for path in one["files"]])
            content = _read(source, targets, camera, input_unit)
            done += [_write(content, source, one, unit, telling.force) for one in targets]
        except D3SError as error:
            if not to:
                raise
            refused.append(str(error))
    if telling.as_json:
        say_json({"written": done, "refused": refused})
    elif not telling.quiet:
        for one in done:
            typer.echo(_line(one))
    for words in refused:
        say_step(f"d3s: {words}")
    if refused:
        end(SOME_FAILED if done else BAD_INPUT)


# Depth --------------------------------------------------------------------------------------------


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


def _check_unit(unit_m: float | None, option: str) -> None:
    from d3s.files.depth_png import check_unit

    if unit_m is not None:
        with value_of(option):
            check_unit(unit_m)


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


def _read(
    source: Path, targets: list[Path], rig: "Rig | None", unit_m: float | None
) -> "DepthImage | Points":
    """Content of a file, if all targets can hold it."""
    from d3s.estimate.plot.preview import ENDING
    from d3s.files import DepthImage, read_depth
    from d3s.files.depth_files import check_target
    from d3s.files.raw import named
    from d3s.lab.dense.mesh import is_mesh

    content = read_depth(source, unit_m=unit_m)
    if rig is not None and isinstance(content, DepthImage):
        with named(source):
            content = content.with_camera(rig.optics.focal_length_px, rig.principal_point_px)
    for target in targets:
        with named(target):
            if is_mesh(target) and source.suffix.lower() != NPZ.suffixes[0]:
                raise InputError(
                    "a mesh is made of an .npz file of d3s depth or d3s densify, which has the "
                    "camera, the left view and the flags. Give that file."
                )
            if not is_mesh(target) and not target.name.endswith(ENDING):
                check_target(content, target)
            elif not isinstance(content, DepthImage):
                raise InputError("a picture needs an image of depths, and these are points.")
    return content


def _write(
    content: "DepthImage | Points", source: Path, target: Path, unit: float | None, force: bool
) -> dict[str, Any]:
    from d3s.estimate import DepthMap
    from d3s.estimate.plot.preview import ENDING, write_preview
    from d3s.files import DepthImage, write_depth
    from d3s.files.depth_files import MILLIMETRE_M, lost
    from d3s.files.depth_png import fitting_unit_m
    from d3s.lab.dense.mesh import is_mesh, write_mesh

    written, without = [target], list[str]()
    if isinstance(content, DepthImage) and target.name.endswith(ENDING):
        rows, cols = content.depth_m.shape
        names = [content.notes[name] for name in ("camera", "method") if name in content.notes]
        words = f"{content.density:.0%} of {rows} x {cols} px have a depth"
        title = ": ".join([", ".join(names), words]) if names else words
        write_preview(target, content.depth_m, title=title, overwrite=force)
        without = ["the numbers"]
    elif is_mesh(target):
        write_mesh(target, DepthMap.load(source), overwrite=force)
    else:
        if unit is None and isinstance(content, DepthImage) and _is_png(target):
            unit = fitting_unit_m(content.depth_m)
        unit = unit or MILLIMETRE_M
        written = write_depth(target, content, unit_m=unit, overwrite=force)
        without = list(lost(content, target, unit))
    return {"from": str(source), "files": [str(path) for path in written], "without": without}


def _line(entry: dict[str, Any]) -> str:
    from d3s.files.raw import path_text

    without = f" (without {', '.join(entry['without'])})" if entry["without"] else ""
    return f"{', '.join(map(path_text, entry['files']))}{without}"


# Recordings ---------------------------------------------------------------------------------------


def _is_conversion(files: list[Path]) -> bool:
    """Whether two names are a recording and a folder, in either order."""
    if len(files) != 2:
        return False
    source, target = files
    if source.suffix.lower() == _RECORDING:
        return not target.suffix or target.is_dir()
    return target.suffix.lower() == _RECORDING and source.is_dir()


def _convert_recording(source: Path, target: Path, options: Given, telling: Telling) -> None:
    """Convert a recording to a folder or a bag, or one of these to a recording."""
    from d3s.camera.recording.mcap import check_installed

    check_installed()
    if source.suffix.lower() != _RECORDING:
        check_places(target, force=telling.force)
    with progress_bar(1, f"Converting {source}.", quiet=telling.is_silent) as progress:
        made = _converted(source, target, options, {"progress": progress}, force=telling.force)
    written, refused = made
    if telling.as_json:
        say_json(
            {
                "from": str(source),
                "to": str(target),
                "written": written,
                "refused": [one._asdict() for one in refused],
            }
        )
    elif not telling.quiet:
        what = "messages" if "is_bag" in options else "frames"
        typer.echo(f"{target}: {written} {what}.")
    say_refused(refused)
    if refused:
        end(SOME_FAILED if written else BAD_INPUT)


def _converted(
    source: Path, target: Path, options: Given, more: Given, *, force: bool
) -> tuple[int, tuple[Any, ...]]:
    """Number of frames or messages that were written, and frames that were refused."""
    from d3s.camera.recording import conversion

    if source.suffix.lower() == _RECORDING and "is_bag" in options:
        return conversion.to_bag(source, target, **more), ()
    if source.suffix.lower() == _RECORDING:
        return conversion.to_folder(source, target, overwrite=force, **more)
    more |= {"rig": options.get("rig"), "overwrite": force}
    if not conversion.is_bag(source):
        return conversion.from_folder(source, target, **more)
    images, full_scale = options.get("topics", ()), options.get("full_scale")
    return conversion.from_bag(source, target, images=images, full_scale=full_scale, **more), ()
