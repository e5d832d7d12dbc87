"""One scene of a stereo data set: views, camera, truth, regions, and light of the right view."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import numpy as np

from d3s.errors import InputError
from d3s.files import read_image
from d3s.files.raw import named
from d3s.lab.evaluate.truth import near_jumps
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.rig.imports.data_sets import read_stereo_calibration
from d3s.types import FloatArray, Image, Mask

Layout = Literal["middlebury", "kitti"]
"""Names of files as Middlebury 2014 and ETH3D have them, or as KITTI 2015 has them."""

_TRUTHS = ("disp0GT.pfm", "disp0.pfm")  # of the benchmark (v3), and of the scenes of 2014
_LOOKED_FOR = """\
Looked for, here and in all folders below:
  Middlebury 2014, Middlebury v3, ETH3D two-view: a folder for each scene with im0.png, im1.png, \
calib.txt and disp0GT.pfm or disp0.pfm
  KITTI 2015: folders image_2, image_3, calib_cam_to_cam, and disp_occ_0 or disp_noc_0"""


@dataclass(frozen=True, kw_only=True)
class SceneFiles:
    """Files of one scene: their paths.

    `visible` tells which pixels both views show: a mask (`mask0nocc.png`), the disparity of the
    right view (`disp1GT.pfm`, `disp1.pfm`), or the disparity of these pixels (`disp_noc_0`). It is
    empty if there is none.
    """

    name: str  # in tables: its folder below the one that was searched, or its number
    layout: Layout
    left: str
    right: str
    calibration: str
    truth: str  # disparity of the left view
    visible: str = ""

    def digest(self) -> str:
        """Digest of the content of all files: a changed file makes another result."""
        whole = hashlib.sha256()
        for path in (self.left, self.right, self.calibration, self.truth, self.visible):
            with named(path):
                whole.update(hashlib.sha256(Path(path).read_bytes() if path else b"").digest())
        return whole.hexdigest()


@dataclass(frozen=True, kw_only=True)
class FoundScenes:
    """Scenes below a folder, and why others are left out."""

    scenes: tuple[SceneFiles, ...]  # complete ones, sorted by name
    left_out: Mapping[str, str]  # files that other scenes lack, by the name of the scene


def find_scenes(folder: str | os.PathLike[str]) -> FoundScenes:
    """Find all scenes in a folder and in the folders below it."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{root} is no folder. Name the folder of a stereo data set.")
    scenes: list[SceneFiles] = []
    left_out: dict[str, str] = {}
    for one in _candidates(root):
        missing = [name for name, path in one.items() if path is None]
        name = str(one["name"])
        if missing:
            left_out[name] = f"has no {', '.join(missing)}"
        else:
            scenes.append(SceneFiles(**{field: str(value) for field, value in one.items()}))  # type: ignore[arg-type]
    if not scenes:
        lacks = [f"{name} {words}" for name, words in list(left_out.items())[:3]]
        raise InputError(
            "\n".join([f"{root} holds no scene of a stereo data set.", *lacks, _LOOKED_FOR])
        )
    scenes.sort(key=lambda one: one.name)
    return FoundScenes(scenes=tuple(scenes), left_out=left_out)


def _candidates(root: Path) -> Iterator[dict[str, Path | str | None]]:
    """Fields of `SceneFiles` of each scene, None for files that are missing."""
    for here, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if "im0.png" in files:
            yield _middlebury(Path(here), root, set(files))
        if {"image_2", "image_3"} <= set(folders):
            yield from _kitti(Path(here), root)


def _middlebury(here: Path, root: Path, files: set[str]) -> dict[str, Path | str | None]:
    def first(*names: str) -> Path | None:
        return next((here / name for name in names if name in files), None)

    return {
        "name": here.relative_to(root).as_posix() if here != root else here.resolve().name,
        "layout": "middlebury",
        "left": here / "im0.png",
        "right": first("im1.png"),
        "calibration": first("calib.txt"),
        "truth": first(*_TRUTHS),
        "visible": first("mask0nocc.png", "disp1GT.pfm", "disp1.pfm") or "",
    }


def _kitti(here: Path, root: Path) -> Iterator[dict[str, Path | str | None]]:
    def existing(path: Path) -> Path | None:
        return path if path.is_file() else None

    prefix = "" if here == root else f"{here.relative_to(root).as_posix()}/"
    # Frames _11 are the next ones in time: they have no truth.
    for left in sorted((here / "image_2").glob("*_10.png")):
        noc, occ = (existing(here / f"disp_{kind}_0" / left.name) for kind in ("noc", "occ"))
        yield {
            "name": prefix + left.stem,
            "layout": "kitti",
            "left": left,
            "right": existing(here / "image_3" / left.name),
            "calibration": existing(
                here / "calib_cam_to_cam" / f"{left.stem.removesuffix('_10')}.txt"
            ),
            "truth": occ or noc,
            "visible": noc or "",
        }


DEFAULT_DISPARITIES = 256
"""Disparities that are searched where the calibration file does not say: those KITTI can store."""
JUMP_REACH_PX = 12
"""Pixels within this distance of a jump of the true disparity are near a jump."""
WEAK_WINDOW_PX = 9
"""Side of the window over which the squared gradient is averaged."""
WEAK_BELOW = 4.0
"""Mean squared horizontal difference of neighbours, in levels of 8 bits, below which texture is
weak (Scharstein and Szeliski, IJCV 2002)."""

_LARGEST_DIFFERENCE_PX = 1.0  # of the true disparities of both views where both show the point
_KITTI_LEVELS = 65535  # full scale of the files
_KITTI_PER_PX = 256  # levels per pixel of disparity; level 0 is unknown
_VISIBLE_ABOVE = 0.99  # white in mask0nocc.png; grey is occluded, black is unknown


@dataclass(frozen=True, kw_only=True, eq=False)
class StereoScene:
    """Both views of a scene with the truth; all arrays are (rows, cols)."""

    name: str  # in tables
    left: Image  # grey as it is stored: its gamma is not undone
    right: Image
    rig: Rig  # pinhole rig of the pair
    disparities: int  # number of whole disparities from 0 that are searched
    depth_range_m: tuple[float, float]  # of these disparities
    disparity_px: FloatArray  # true disparity of the left view; NaN where it is unknown
    occluded: Mask  # known disparity, not shown by the right view; none where this is unknown

    @property
    def known(self) -> Mask:
        """Pixels of known disparity."""
        return np.isfinite(self.disparity_px)

    @cached_property
    def weak(self) -> Mask:
        """Pixels with weak texture around them in the left view: see `WEAK_BELOW`."""
        import cv2

        step = np.diff(255.0 * self.left, axis=1, append=255.0 * self.left[:, -1:])
        size = (WEAK_WINDOW_PX, WEAK_WINDOW_PX)
        return np.asarray(cv2.blur(step**2, size, borderType=cv2.BORDER_REFLECT) < WEAK_BELOW)

    @cached_property
    def near_jump(self) -> Mask:
        """Pixels within `JUMP_REACH_PX` of a jump of the true disparity by more than 1 px.

        A pixel of unknown disparity counts with that of the nearest known one.
        """
        from scipy.ndimage import distance_transform_edt

        if not self.known.any():
            return np.zeros(self.known.shape, dtype=np.bool_)
        nearest = distance_transform_edt(~self.known, return_distances=False, return_indices=True)
        filled = self.disparity_px[tuple(nearest)].astype(np.float32)
        return near_jumps(filled, JUMP_REACH_PX)

    def regions(self, *, with_occluded: bool = False) -> dict[str, Mask]:
        """Overlapping parts of the pixels of known disparity, by name; empty ones are left out.

        "all", and the parts of it, have occluded pixels only `with_occluded`.
        """
        judged = self.known if with_occluded else self.known & ~self.occluded
        parts = {
            "all": judged,
            "textured": judged & ~self.weak,
            "weak": judged & self.weak,
            "near jumps": judged & self.near_jump,
            "away from jumps": judged & ~self.near_jump,
            "occluded": self.occluded,
        }
        return {name: mask for name, mask in parts.items() if mask.any()}


def read_scene(files: SceneFiles, disparities: int | None = None) -> StereoScene:
    """Read a scene; `disparities` to search are those of its file if left out, or the default."""
    left, right = read_image(files.left), read_image(files.right)
    rig, _ = read_stereo_calibration(files.calibration)
    views = rig.stereo
    disparity_px = _read_disparity_px(files.truth, files.layout)
    shapes = {files.right: right.shape, files.truth: disparity_px.shape}
    if views is not None and views.shape is not None:
        shapes[files.calibration] = views.shape
    for path, shape in shapes.items():
        if shape != left.shape:
            raise InputError(
                f"{path} is for views of {shape[1]} x {shape[0]} px, and {Path(files.left).name} "
                f"has {left.shape[1]} x {left.shape[0]}. Use files of one size of the data set."
            )
    told = None if views is None else views.disparity_range_px
    number = disparities or (DEFAULT_DISPARITIES if told is None else int(told[1]) + 1)
    return StereoScene(
        name=files.name,
        left=left,
        right=right,
        rig=rig,
        disparities=number,
        depth_range_m=rig.optics.depth_range_m((0.0, number - 1.0)),
        disparity_px=disparity_px,
        occluded=_occluded(files, disparity_px),
    )


def _read_disparity_px(path: str, layout: str) -> FloatArray:
    """Disparity in px, NaN where it is unknown."""
    values = read_image(path, allow_nan=True).astype(np.float64)
    if layout == "kitti":
        values = np.rint(values * _KITTI_LEVELS) / _KITTI_PER_PX
        return np.where(values > 0, values, np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def _occluded(files: SceneFiles, disparity_px: FloatArray) -> Mask:
    """Pixels of known disparity that the right view does not show."""
    known = np.isfinite(disparity_px)
    if not files.visible:
        return np.zeros_like(known)
    if files.layout == "kitti" or files.visible.endswith(".pfm"):
        other_px = _read_disparity_px(files.visible, files.layout)
        shape = other_px.shape
        visible = np.isfinite(other_px)
    else:
        mask = read_image(files.visible)
        shape, visible = mask.shape, mask > _VISIBLE_ABOVE
    if shape != known.shape:
        raise InputError(
            f"{files.visible} has {shape[1]} x {shape[0]} px, and {Path(files.truth).name} "
            f"{known.shape[1]} x {known.shape[0]}. Use files of one size of the data set."
        )
    if files.visible.endswith(".pfm"):
        visible = _seen_from_right(disparity_px, other_px)
    return known & ~visible


def _seen_from_right(left_px: FloatArray, right_px: FloatArray) -> Mask:
    """Pixels of the left view whose match in the right view has the same disparity."""
    rows, cols = np.indices(left_px.shape)
    match = np.rint(cols - np.nan_to_num(left_px)).astype(np.intp)
    inside = (match >= 0) & (match < left_px.shape[1])
    there_px = right_px[rows, np.where(inside, match, 0)]
    with np.errstate(invalid="ignore"):
        agree = np.abs(there_px - left_px) <= _LARGEST_DIFFERENCE_PX
    return np.asarray(inside & agree)


_LIMITS = {"gain": (0.0, 10.0), "gamma": (0.0, 10.0), "ramp": (-1.0, 1.0)}
_LEVELS = 255  # the change is rounded to 8 bits again, as a camera would store it
AS_STORED = "as stored"
"""Name of the trials in which nothing is changed."""


@dataclass(frozen=True)
class LightChange:
    """Change of the right view before it is matched; the default changes nothing.

    "gain" multiplies intensities by `value`, "gamma" raises them to the power `value`, and "ramp"
    multiplies them by 1 - `value` at the left end up to 1 + `value` at the right end.
    """

    kind: str = ""
    value: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse gain=0.6, gamma=1.3 or ramp=0.3."""
        if text == AS_STORED:
            return cls()
        kind, _, word = text.partition("=")
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        low, high = _LIMITS.get(kind, (np.inf, -np.inf))
        if not low < value < high:
            raise InputError(
                f"light {short_repr(text)} must be gain=NUMBER or gamma=NUMBER, above 0 and below "
                "10, or ramp=NUMBER, above -1 and below 1: gain=0.6, gamma=1.3, ramp=0.3."
            )
        return cls(kind, value)

    @property
    def name(self) -> str:
        """Name in tables, which `parse` reads."""
        return f"{self.kind}={self.value:g}" if self.kind else AS_STORED

    def apply(self, view: Image) -> Image:
        """Return the view in the changed light, clipped at full scale and rounded to 8 bits."""
        if not self.kind:
            return view
        if self.kind == "gamma":
            changed = view.astype(np.float64) ** self.value
        elif self.kind == "ramp":
            changed = view * np.linspace(1 - self.value, 1 + self.value, view.shape[1])
        else:
            changed = view * np.float64(self.value)
        stored = np.rint(np.clip(changed, 0, 1) * _LEVELS) / _LEVELS
        return np.asarray(stored, dtype=np.float32)
