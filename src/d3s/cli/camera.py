"""Camera and source of a command: a rig file, a calibration of others, a name, or numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from d3s.cli.options import has_unit, length_m
from d3s.cli.output import progress_bar, value_of

if TYPE_CHECKING:
    from d3s.frames import FoundFiles, Source, SourceOptions
    from d3s.rig import Rig

PAPER = "paper"
_CALIBRATION = "calib.txt"  # beside the views of Middlebury and ETH3D
_METRE_LONG = 1.0


class Numbers(NamedTuple):
    """Numbers of a rectified pair, as they were given; None if they were not."""

    focal_length_px: float | None
    baseline: str | None
    disparity_offset_px: float | None


def chosen_rig(
    rig: str | None, numbers: Numbers, found: "FoundFiles"
) -> "tuple[Rig, tuple[str, ...]]":
    """Camera, and remarks on it."""
    from d3s.rig import Rig

    if rig is not None:
        if any(value is not None for value in numbers):
            raise typer.BadParameter(
                "--rig says all of the camera: leave it, or --focal-length-px, --baseline and "
                "--disparity-offset-px."
            )
        if rig == PAPER:
            return Rig.paper_prototype(), ()
        return rig_of_file(Path(rig))
    if any(value is not None for value in numbers):
        return _from_numbers(numbers)
    attached = _attached(found)
    if attached is not None:
        return attached, ()
    beside = _beside(found)
    if beside is None:
        raise _no_camera()
    read, remarks = rig_of_file(beside)
    return read, (f"the camera is that of {beside}.", *remarks)


def rig_of_file(path: Path) -> "tuple[Rig, tuple[str, ...]]":
    """Rig of a rig file or of a calibration file, and remarks on it."""
    from d3s.rig import Rig

    if path.suffix.lower() == ".toml" or not path.is_file():
        camera = Rig.load(path)
        return camera, (camera.doubt,) if camera.doubt else ()
    from d3s.rig.imports import read_rig

    imported = read_rig([path])
    return imported.rig, imported.remarks


def _from_numbers(numbers: Numbers) -> "tuple[Rig, tuple[str, ...]]":
    from d3s.rig import Rig

    if numbers.focal_length_px is None or numbers.baseline is None:
        raise _no_camera()
    try:
        baseline_m = length_m(numbers.baseline)
    except typer.BadParameter as error:
        raise typer.BadParameter(str(error), param_hint="--baseline") from error
    with value_of("--focal-length-px, --baseline or --disparity-offset-px"):
        camera = Rig.of_pinhole(
            focal_length_px=numbers.focal_length_px,
            baseline_m=baseline_m,
            disparity_offset_px=numbers.disparity_offset_px or 0.0,
        )
    remarks = []
    text = numbers.baseline.strip()
    if baseline_m >= _METRE_LONG and not has_unit(text):
        remarks.append(
            f"--baseline {text} is taken for {text} m. Is it in millimetres? Then say {text}mm."
        )
    if numbers.disparity_offset_px is None:
        remarks.append(
            "--disparity-offset-px is left out, and 0 taken, as after most rectifications. For a "
            "file of Middlebury it is minus its doffs; a wrong one makes all depths wrong."
        )
    return camera, tuple(remarks)


def _no_camera() -> typer.BadParameter:
    return typer.BadParameter(
        "which camera took this? Give its rig file or its calibration file with --rig, or --rig "
        "paper for the paper's prototype; for any other rectified pair give --focal-length-px and "
        "--baseline."
    )


def _attached(found: "FoundFiles") -> "Rig | None":
    """Rig that is attached to all recordings; None if there is none."""
    from d3s.camera.recording import Recording
    from d3s.errors import InputError
    from d3s.frames.source_names import RECORDING_SUFFIX

    paths = dict.fromkeys(one.left for one in found.frames)
    rigs = []
    for path in paths:
        if path.suffix.lower() != RECORDING_SUFFIX:
            return None
        with Recording(path) as recording:
            rigs.append(recording.rig())
    if any(rig != rigs[0] for rig in rigs):
        raise InputError("the recordings are of several cameras. Name one with --rig, or do each.")
    return rigs[0] if rigs else None


def _beside(found: "FoundFiles") -> Path | None:
    """Calibration file in the folder of all views; None if there is none."""
    folders = {one.left.parent for one in found.frames if one.right is not None}
    if len(folders) != 1:
        return None
    path = folders.pop() / _CALIBRATION
    return path if path.is_file() else None


SOURCES = (
    "A file or folder of images, a video, a recording (.mcap), uvc:0, basler, genicam, either with "
    ":SERIAL, twin, twin:ROWSxCOLS, or twin:raw."
)
SourceWord = Annotated[str, typer.Argument(help=SOURCES, metavar="SOURCE", show_default=False)]
SourceRig = Annotated[
    str | None,
    typer.Option(
        "--rig",
        metavar="FILE|paper",
        help="Rig file of the camera, or paper, the paper's prototype as designed.",
        show_default=False,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", metavar="HZ", help="Frames a second.", show_default=False),
]
Exposure = Annotated[
    float | None,
    typer.Option("--exposure", metavar="SECONDS", help="Exposure time.", show_default=False),
]
Gain = Annotated[
    float | None,
    typer.Option("--gain", help="Gain, in the unit of the camera: mostly dB.", show_default=False),
]


class CameraOptions(NamedTuple):
    """Options of cameras."""

    rate: Rate = None
    exposure: Exposure = None
    gain: Gain = None


SideBySide = Annotated[
    bool,
    typer.Option("--side-by-side", help="Each image has both views, left and right half."),
]


def rig_of_word(word: str | None) -> "Rig | None":
    """Rig of a file, of the name `paper`, or None if none was given."""
    from pathlib import Path

    from d3s.cli.camera import PAPER, rig_of_file
    from d3s.rig import Rig

    if word is None:
        return None
    if word == PAPER:
        return Rig.paper_prototype()
    camera, _ = rig_of_file(Path(word))
    if camera.doubt:
        typer.echo(f"Note: {camera.doubt}", err=True)
    return camera


def opened(word: str, rig: "Rig | None", options: "SourceOptions", *, quiet: bool) -> "Source":
    """Source of a word, with a progress bar if it has to be rendered first."""
    from dataclasses import replace

    from d3s.camera.capture.twin import DEFAULT_STEPS
    from d3s.frames import open_source

    is_twin = word.partition(":")[0] == "twin"
    words = f"Rendering {DEFAULT_STEPS} frames of the scene."
    with progress_bar(DEFAULT_STEPS, words, quiet=quiet or not is_twin) as progress:
        return open_source(word, rig, replace(options, progress=progress or _no_progress))


def _no_progress(done: int, total: int) -> None:
    """Say nothing."""


def name_of(source: "Source", word: str) -> str:
    """Name of a camera for people; the word of any other source."""
    from d3s.camera.capture import LiveCamera

    return source.name or word if isinstance(source, LiveCamera) else word
