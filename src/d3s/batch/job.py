"""`DepthJob`: the rig, the method and its options, the depths to keep, and the formats to write."""

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from d3s.errors import InputError, MissingPackageError
from d3s.estimate import DepthMap, Options
from d3s.estimate.depth_map import check_limits
from d3s.estimate.methods import checked_options, estimate_quietly
from d3s.estimate.plot.panels import need_matplotlib
from d3s.files import note
from d3s.files.codecs import CHECKS
from d3s.files.depth_files import DISPARITY_SUFFIXES, FORMATS
from d3s.files.depth_png import check_unit
from d3s.files.raw import path_text
from d3s.formats import CSV, DEPTH_SUFFIXES, MAX_PIXELS, PLY
from d3s.registry import registered
from d3s.rig import Rig
from d3s.types import Image

ZARR, PREVIEW, FIGURE, CAMERA = "zarr", "preview", "figure", "camera"
DISPARITIES = [f"disparity{suffix}" for suffix in DISPARITY_SUFFIXES]
DEFAULT_FORMATS = ("npz", "png", PREVIEW)
ALL_FORMATS = (*(suffix[1:] for suffix in DEPTH_SUFFIXES), *DISPARITIES, ZARR, PREVIEW, FIGURE)
"""NPZ with everything, the formats that other programs read, and pictures for people."""

_HOLD_COLOUR = (".npz", *PLY.suffixes, *CSV.suffixes)
STORE = "depth.zarr"
"""Name of the array of all frames, in the folder of the results."""


@dataclass(frozen=True, kw_only=True)
class DepthJob:
    """Method and options of the estimate, the depths to keep, and the formats to write."""

    rig: Rig
    method: str = "joint"
    options: Options | Mapping[str, Any] | None = None
    side_by_side: bool = False
    linear: bool | None = None
    bayer: str | None = None
    min_confidence: float | None = None
    max_sigma_m: float | None = None
    dense: float | None = None  # fill holes to this sigma in metres, all if infinite
    formats: tuple[str, ...] = DEFAULT_FORMATS
    unit_m: float | None = None  # of the PNG; None for 1 mm, or another if that does not fit
    max_pixels: int = MAX_PIXELS  # of a file

    def __post_init__(self) -> None:
        check_formats(self.formats)
        if self.unit_m is not None:
            check_unit(self.unit_m)
        check_limits(min_confidence=self.min_confidence, max_sigma_m=self.max_sigma_m)

    @property
    def needs_colour(self) -> bool:
        """Whether a format is written that holds the colours of the left view."""
        return any(f".{one}" in _HOLD_COLOUR for one in self.formats)

    def estimate(self, left: Image, right: Image) -> DepthMap:
        """Run the method on a pair, unfiltered."""
        fill: Callable[..., DepthMap] = estimate_quietly
        if self.dense is not None:
            fill = partial(registered("fills", "dense"), max_sigma_m=self.dense)
        found: DepthMap = fill(left, right, self.rig, method=self.method, options=self.options)
        return found

    def targets(self, name: str, output: Path) -> dict[str, Path]:
        """Files of the results of a frame, by format; the camera that some need comes last.

        The array of all frames is not among them.
        """
        start = f"{name}_" if name else ""
        names = {one: f"depth.{one}" for one in self.formats if one != ZARR}
        names |= {one: one for one in DISPARITIES if one in names}
        names |= {one: f"{one}.png" for one in (PREVIEW, FIGURE) if one in names}
        files = {one: output / f"{start}{name}" for one, name in names.items()}
        if any(not FORMATS[f".{one}"].has_camera_inside for one in files if f".{one}" in FORMATS):
            files[CAMERA] = note.camera_beside(output / f"{start}depth.png")
        return files

    def as_json(self) -> dict[str, Any]:
        """Fields as JSON holds them."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "rig": self.rig.model_dump(mode="json"),
            "options": checked_options(self.method, self.options).model_dump(mode="json"),
            "dense": "all" if self.dense == math.inf else self.dense,  # JSON has no infinity
            "formats": list(self.formats),
        }


def check_formats(formats: Sequence[str]) -> None:
    """Refuse an empty list of formats, unknown ones, and ones whose package is missing."""
    unknown = [one for one in formats if one not in ALL_FORMATS]
    if unknown or not formats:
        wrong = path_text(unknown[0]) or "an empty name" if unknown else "nothing"
        raise InputError(f"formats has {wrong}: it can have {', '.join(ALL_FORMATS)}.")
    if FIGURE in formats:
        need_matplotlib()
    if ZARR in formats and importlib.util.find_spec("zarr") is None:
        raise MissingPackageError("writing zarr needs the package zarr", "zarr")
    for one in formats:
        found = DEPTH_SUFFIXES.get(f".{one}")
        if found is not None and found.name in CHECKS:
            CHECKS[found.name]()
