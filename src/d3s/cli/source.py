"""Source of a command: its word, its rig, and the options of cameras."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from d3s.cli.progress import progress_bar

if TYPE_CHECKING:
    from d3s.frames import Source, SourceOptions
    from d3s.rig import Rig

SOURCES = (
    "A file or folder of images, a video, a recording (.mcap), uvc:0, basler, genicam, either with "
    ":SERIAL, twin, twin:ROWSxCOLS, twin:raw, or fake:SCRIPT.toml."
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
    return Rig.paper_prototype() if word == PAPER else rig_of_file(Path(word))[0]


def opened(word: str, rig: "Rig | None", options: "SourceOptions", *, quiet: bool) -> "Source":
    """Source of a word, with a progress bar if it has to be rendered first.

    Parameters
    ----------
    word
        Word of the command line.
    rig
        The camera, if it was given.
    options
        Options of the source.
    quiet
        Whether to print nothing.
    """
    from dataclasses import replace

    from d3s.camera.capture.twin import DEFAULT_STEPS
    from d3s.frames import open_source

    is_twin = word.partition(":")[0] == "twin"
    words = f"Rendering {DEFAULT_STEPS} frames of the scene."
    with progress_bar(DEFAULT_STEPS, words, quiet=quiet or not is_twin) as progress:
        return open_source(word, rig, replace(options, progress=progress))


def name_of(source: "Source", word: str) -> str:
    """Name of a camera for people; the word of any other source."""
    from d3s.camera.capture import LiveCamera

    return source.name or word if isinstance(source, LiveCamera) else word
