"""Source of a command: its word, its rig, and the options of cameras."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from d3s.rig import Rig

SOURCES = (
    "A file or folder of images, a video, a recording (.mcap), uvc:0, basler, basler:SERIAL, twin, "
    "twin:ROWSxCOLS, twin:raw, or fake:SCRIPT.toml."
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
