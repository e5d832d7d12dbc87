"""The table of file formats: names, suffixes, first bytes, and what is read and written of each.

`d3s.files` binds each row to its reader and its writer (`d3s.files.codecs`). Help texts, error
texts, `d3s info`, `d3s convert` and the tables of docs/files.md are made from these rows. Pure
data: the command line reads the table before it imports NumPy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

LAYERS = ("sigma_m", "confidence", "intensity")
"""Layers that a file may hold beside the depth, by the names of the fields of `DepthImage`."""

MAX_PIXELS = 64_000_000
"""Most pixels of an image that is read, unless the caller allows more.

Larger than any sensor this is for: a header that declares more is damaged, or a trap.
"""

CAMERA_INSIDE = "inside"
CAMERA_BESIDE = "`scene.camera.json`"
CAMERA_NOT_NEEDED = "not needed"


@dataclass(frozen=True, kw_only=True)
class Format:
    """One file format: one row of the table."""

    name: str
    suffixes: tuple[str, ...]  # the first one is the usual one
    # First bytes: a file is known by them, and not by its suffix. Empty for text.
    magics: tuple[bytes, ...] = ()
    description: str  # one line
    # Samples and numbers that each function reads or writes; empty if it does not.
    image: str = ""  # `read_image`
    full_scale: str = ""  # integer sample that becomes 1; empty for floats
    image_out: str = ""  # `write_image`
    depth: str = ""  # `write_depth`
    no_depth: str = ""  # value of a pixel without depth
    layers: tuple[str, ...] = ()  # written beside the depth
    beside: str = ""  # content beside the depth, in words
    camera: str = ""  # where the camera of a depth file is
    reads_depth: bool = False  # by `read_depth`
    is_points: bool = False  # points in space, and no image
    extra: str = ""  # extra of the package to install: "exr" for `pip install d3s[exr]`

    @property
    def has_camera_inside(self) -> bool:
        """Whether the depth file needs no camera file beside it."""
        return self.camera != CAMERA_BESIDE


NPZ = Format(
    name="NPZ",
    suffixes=(".npz",),
    magics=(b"PK",),
    description="named NumPy arrays; of a depth map everything",
    depth="float32, metres",
    no_depth="NaN",
    layers=LAYERS,
    beside="all: sigma, confidence, flags, intensity, rig, method, options, warnings; times too, "
    "unless `d3s depth` wrote it",
    camera="inside, `K`",
    reads_depth=True,
)
PNG = Format(
    name="PNG",
    suffixes=(".png",),
    magics=(b"\x89PNG\r\n\x1a\n",),
    description="integers, compressed without loss, with checksums",
    image="grey or colour, 1 to 16 bit",
    full_scale="255 or 65535",
    image_out="16-bit grey, clipped to 0 to 1 and rounded",
    depth="16-bit integers of `unit_m`",
    no_depth="0",
    beside="the unit",
    camera=CAMERA_BESIDE,
    reads_depth=True,
)
TIFF = Format(
    name="TIFF",
    suffixes=(".tiff", ".tif"),
    magics=(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    description="integers or floats; BigTIFF too",
    image="grey or RGB, 8 or 16 bit, or 32-bit floats; not compressed, LZW, deflate or PackBits",
    full_scale="255 or 65535",
    image_out="32-bit floats",
    depth="float32, metres",
    no_depth="NaN",
    camera=CAMERA_INSIDE,
    reads_depth=True,
)
PNM = Format(
    name="PGM or PPM",
    suffixes=(".pgm", ".ppm", ".pnm"),
    magics=tuple(b"P%d" % kind for kind in range(1, 8)),
    description="integers, not compressed",
    image="binary, up to 16 bit",
    full_scale="the maxval of the header: 4095 for 12 bit",
)
JPEG = Format(
    name="JPEG",
    suffixes=(".jpg", ".jpeg"),
    magics=(b"\xff\xd8\xff",),
    description="photographs, compressed with loss, without checksums",
    image="grey or colour, 8 bit",
    full_scale="255",
)
BMP = Format(
    name="BMP",
    suffixes=(".bmp",),
    magics=(b"BM",),
    description="Windows bitmap",
    image="grey or colour, 1 to 8 bit a channel; not compressed",
    full_scale="255",
)
WEBP = Format(
    name="WebP",
    suffixes=(".webp",),
    magics=(b"RIFF",),
    description="photographs of the web, without checksums",
    image="grey or colour, 8 bit, with or without loss; not animated",
    full_scale="255",
)
NPY = Format(
    name="NPY",
    suffixes=(".npy",),
    magics=(b"\x93NUMPY",),
    description="one NumPy array",
    image="8 or 16 bit, or floats of 32 or 64 bit",
    full_scale="255 or 65535",
    image_out="32-bit floats",
    depth="float32, metres",
    no_depth="NaN",
    camera=CAMERA_BESIDE,
    reads_depth=True,
)
PFM = Format(
    name="PFM",
    suffixes=(".pfm",),
    magics=(b"Pf", b"PF"),
    description="floats, not compressed",
    image="floats, in either byte order",
    image_out="32-bit floats",
    depth="float32, metres",
    no_depth="NaN",
    camera=CAMERA_BESIDE,
    reads_depth=True,
)
EXR = Format(
    name="OpenEXR",
    suffixes=(".exr",),
    magics=(b"\x76\x2f\x31\x01",),
    description="named layers of floats",
    depth="float32, metres, in `Z`",
    no_depth="NaN",
    layers=LAYERS,
    beside="`sigma`, `confidence`, intensity in `Y`",
    camera=CAMERA_INSIDE,
    reads_depth=True,
    extra="exr",
)
PLY = Format(
    name="PLY",
    suffixes=(".ply",),
    magics=(b"ply",),
    description="points in space, binary",
    depth="a point each, float32, metres",
    no_depth="left out",
    layers=LAYERS,
    beside="sigma, confidence, intensity",
    camera=CAMERA_NOT_NEEDED,
    reads_depth=True,
    is_points=True,
)
CSV = Format(
    name="CSV",
    suffixes=(".csv",),
    description="points in space, as text",
    depth="a point each, seven digits, metres",
    no_depth="left out",
    layers=LAYERS,
    beside="sigma, confidence, intensity",
    camera=CAMERA_NOT_NEEDED,
    is_points=True,
)

MCAP = Format(
    name="MCAP",
    suffixes=(".mcap",),
    magics=(b"\x89MCAP0\r\n",),
    description="recording with ROS 2 messages",
    depth="images 32FC1, metres, and 16UC1, millimetres; points",
    no_depth="NaN; 0 in 16UC1; no point",
    layers=LAYERS,
    beside="sigma as an image; sigma, confidence and intensity of points",
    camera="inside, `CameraInfo`",
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


def overview_table() -> str:
    """Table of docs/files.md: all formats, and what is read and written of each."""
    rows = [
        (
            one.name.replace(" or ", ", "),
            ", ".join(f"`{suffix}`" for suffix in one.suffixes),
            one.description,
            _ways(bool(one.image), bool(one.image_out)),
            _ways(one.reads_depth, bool(one.depth)),
        )
        for one in FORMATS
    ]
    return _table(("format", "suffix", "what it is", "images", "depth"), rows)


def image_table() -> str:
    """Table of docs/files.md: images that are read."""
    rows = [(one.name.replace(" or ", ", "), one.image, one.full_scale) for one in IMAGE_FORMATS]
    return _table(("format", "samples", "full scale, which becomes 1"), rows)


def depth_table() -> str:
    """Table of docs/files.md: depth that is written."""
    rows = [
        (
            ", ".join(f"`{suffix}`" for suffix in one.suffixes),
            one.depth,
            one.no_depth,
            one.beside,
            f"inside, and {one.camera}" if one is PNG else one.camera,
        )
        for one in FORMATS
        if one.depth
    ]
    return _table(("suffix", "depth", "no depth", "beside the depth", "the camera"), rows)


def _ways(reads: bool, writes: bool) -> str:
    return " and ".join(["read"] * reads + ["written"] * writes)


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join(
        f"| {' | '.join(line)} |".replace("|  |", "| |").replace("| --- |", "|---|")
        for line in lines
    )


def _listed(names: list[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
