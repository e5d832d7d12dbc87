"""Scenes of a stereo data set in a folder, recognised by the names of their files."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from d3s.errors import InputError
from d3s.files.raw import named

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
    """Files of one scene.

    Parameters
    ----------
    name
        Name of the scene in tables: its folder below the one that was searched, or its number.
    layout
        How the files are to be read.
    left, right, calibration, truth
        Paths. `truth` is the disparity of the left view.
    visible
        Path of the file that tells which pixels both views show: a mask (`mask0nocc.png`), the
        disparity of the right view (`disp1GT.pfm`, `disp1.pfm`), or the disparity of these pixels
        (`disp_noc_0`). Empty if there is none.
    """

    name: str
    layout: Layout
    left: str
    right: str
    calibration: str
    truth: str
    visible: str = ""

    def as_table(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Return the files that `as_table` was made from."""
        return cls(**table)

    def digest(self) -> str:
        """Digest of the content of all files: a changed file makes another result."""
        whole = hashlib.sha256()
        for path in (self.left, self.right, self.calibration, self.truth, self.visible):
            with named(path):
                whole.update(hashlib.sha256(Path(path).read_bytes() if path else b"").digest())
        return whole.hexdigest()


@dataclass(frozen=True, kw_only=True)
class FoundScenes:
    """Scenes below a folder, and why others are left out.

    Parameters
    ----------
    scenes
        Complete scenes, sorted by name.
    left_out
        Files that other scenes lack, by the name of the scene.
    """

    scenes: tuple[SceneFiles, ...]
    left_out: Mapping[str, str]


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
