"""The table of file formats: names, suffixes, first bytes, and what is read and written of each.

`d3s.files` binds each row to its reader and its writer (`d3s.files.codecs`); docs/files.md has the
details of each. Pure data: the command line reads the table before it imports NumPy.
"""

from dataclasses import dataclass

LAYERS = ("sigma_m", "confidence", "intensity")
"""Layers that a file may hold beside the depth, by the names of the fields of `DepthImage`."""

MAX_PIXELS = 64_000_000
"""Most pixels of an image that is read, unless the caller allows more.

Larger than any sensor this is for: a header that declares more is damaged, or a trap.
"""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One file format: one row of the table."""

    name: str
    suffixes: tuple[str, ...]  # the first one is the usual one
    # First bytes: a file is known by them, and not by its suffix. Empty for text.
    magics: tuple[bytes, ...] = ()
    image: bool = False  # whether `read_image` reads it
    image_out: bool = False  # whether `write_image` writes it
    depth: bool = False  # whether `write_depth` writes it
    layers: tuple[str, ...] = ()  # written beside the depth
    has_camera_inside: bool = True  # whether the depth file needs no camera file beside it
    reads_depth: bool = False  # by `read_depth`
    is_points: bool = False  # points in space, and no image
    extra: str = ""  # extra of the package to install: "exr" for `pip install d3s[exr]`


NPZ = Format(
    name="NPZ", suffixes=(".npz",), magics=(b"PK",), depth=True, layers=LAYERS, reads_depth=True
)
PNG = Format(
    name="PNG",
    suffixes=(".png",),
    magics=(b"\x89PNG\r\n\x1a\n",),
    image=True,
    image_out=True,
    depth=True,
    has_camera_inside=False,
    reads_depth=True,
)
TIFF = Format(
    name="TIFF",
    suffixes=(".tiff", ".tif"),
    magics=(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    image=True,
    image_out=True,
    depth=True,
    reads_depth=True,
)
PNM = Format(
    name="PGM or PPM",
    suffixes=(".pgm", ".ppm", ".pnm"),
    magics=tuple(b"P%d" % kind for kind in range(1, 8)),
    image=True,
)
JPEG = Format(name="JPEG", suffixes=(".jpg", ".jpeg"), magics=(b"\xff\xd8\xff",), image=True)
BMP = Format(name="BMP", suffixes=(".bmp",), magics=(b"BM",), image=True)
WEBP = Format(name="WebP", suffixes=(".webp",), magics=(b"RIFF",), image=True)
NPY = Format(
    name="NPY",
    suffixes=(".npy",),
    magics=(b"\x93NUMPY",),
    image=True,
    image_out=True,
    depth=True,
    has_camera_inside=False,
    reads_depth=True,
)
PFM = Format(
    name="PFM",
    suffixes=(".pfm",),
    magics=(b"Pf", b"PF"),
    image=True,
    image_out=True,
    depth=True,
    has_camera_inside=False,
    reads_depth=True,
)
EXR = Format(
    name="OpenEXR",
    suffixes=(".exr",),
    magics=(b"\x76\x2f\x31\x01",),
    depth=True,
    layers=LAYERS,
    reads_depth=True,
    extra="exr",
)
PLY = Format(
    name="PLY",
    suffixes=(".ply",),
    magics=(b"ply",),
    depth=True,
    layers=LAYERS,
    reads_depth=True,
    is_points=True,
)
CSV = Format(name="CSV", suffixes=(".csv",), depth=True, layers=LAYERS, is_points=True)
MCAP = Format(
    name="MCAP",
    suffixes=(".mcap",),
    magics=(b"\x89MCAP0\r\n",),
    depth=True,
    layers=LAYERS,
    extra="ros",
)

FORMATS = (NPZ, PNG, TIFF, PNM, JPEG, BMP, WEBP, PFM, NPY, EXR, PLY, CSV, MCAP)
"""All formats, in the order in which people read of them."""

IMAGE_FORMATS = tuple(one for one in FORMATS if one.image)
"""Formats that `read_image` reads."""

IMAGE_SUFFIXES = tuple(suffix for one in IMAGE_FORMATS for suffix in one.suffixes)
"""Suffixes of images that are found in a folder."""

IMAGE_OUT_SUFFIXES = tuple(suffix for one in FORMATS if one.image_out for suffix in one.suffixes)
"""Suffixes that `write_image` writes."""

DEPTH_SUFFIXES = {suffix: one for one in FORMATS if one.depth for suffix in one.suffixes}
"""Formats that a depth map is written in, by suffix; NPZ first, which holds everything."""


def format_of_bytes(start: bytes) -> Format | None:
    """Format that a file has by its first bytes; None if there is none."""
    for one in FORMATS:
        if start.startswith(one.magics):
            return one
    return None


def image_names() -> str:
    """Names of the formats that `read_image` reads, for a sentence."""
    return _listed([one.name.replace(" or ", ", ") for one in IMAGE_FORMATS], "or")


def depth_names() -> str:
    """Names of the formats that `read_depth` reads, for a sentence."""
    return _listed([one.name for one in FORMATS if one.reads_depth], "and")


def _listed(names: list[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
