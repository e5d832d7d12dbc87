"""Options on the light in image files, shared by commands: colour sensors and encodings."""

from enum import StrEnum
from typing import Annotated

import typer


class BayerName(StrEnum):
    """Values of --bayer where frames are read."""

    RGGB = "RGGB"
    BGGR = "BGGR"
    GRBG = "GRBG"
    GBRG = "GBRG"
    NONE = "none"


class Encoding(StrEnum):
    """Values of --encoding."""

    SRGB = "srgb"
    LINEAR = "linear"


Bayer = Annotated[
    BayerName | None,
    typer.Option(
        "--bayer",
        case_sensitive=False,
        help="Raw frames of a colour sensor: the colours of its first 2 x 2 pixels, as in its data "
        "sheet; none for a mono sensor that is taken for one.",
        show_default=False,
    ),
]
FileEncoding = Annotated[
    Encoding | None,
    typer.Option(
        "--encoding",
        help="How files store light: linear, or srgb as photographs. If left, grey files are "
        "linear and colour files srgb; floats are linear.",
        show_default=False,
    ),
]


def is_linear(encoding: Encoding | None) -> bool | None:
    """Whether integers in files are linear; None if that is not said."""
    return None if encoding is None else encoding == Encoding.LINEAR


def order_of(bayer: BayerName | None) -> str | None:
    """Order of the colours for the library."""
    return None if bayer is None else bayer.value
