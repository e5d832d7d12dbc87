"""One scene of a stereo data set: views, camera, truth, regions, and light of the right view."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from d3s.errors import InputError
from d3s.files import read_image
from d3s.lab.evaluate.stereo.folders import SceneFiles
from d3s.lab.evaluate.truth import near_jumps
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.rig.stereo_calibration import read_stereo_calibration
from d3s.types import FloatArray, Image, Mask

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
    """Both views of a scene with the truth; all arrays are (rows, cols).

    Parameters
    ----------
    name
        Name of the scene in tables.
    left, right
        Grey views as they are stored: their gamma is not undone.
    rig
        Pinhole rig of the pair.
    disparities
        Number of whole disparities from 0 that are searched.
    depth_range_m
        Depths of these disparities.
    disparity_px
        True disparity of the left view; NaN where it is unknown.
    occluded
        Pixels of known disparity that the right view does not show; none where this is unknown.
    """

    name: str
    left: Image
    right: Image
    rig: Rig
    disparities: int
    depth_range_m: tuple[float, float]
    disparity_px: FloatArray
    occluded: Mask

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
    """Read a scene.

    `disparities` is the number of whole disparities to search; that of the calibration file if left
    out, or `DEFAULT_DISPARITIES` if it has none.
    """
    left, right = read_image(files.left), read_image(files.right)
    calibration = read_stereo_calibration(files.calibration)
    disparity_px = _read_disparity_px(files.truth, files.layout)
    shapes = {files.right: right.shape, files.truth: disparity_px.shape}
    if calibration.shape is not None:
        shapes[files.calibration] = calibration.shape
    for path, shape in shapes.items():
        if shape != left.shape:
            raise InputError(
                f"{path} is for views of {shape[1]} x {shape[0]} px, and {Path(files.left).name} "
                f"has {left.shape[1]} x {left.shape[0]}. Use files of one size of the data set."
            )
    number = disparities or calibration.disparities or DEFAULT_DISPARITIES
    return StereoScene(
        name=files.name,
        left=left,
        right=right,
        rig=calibration.rig,
        disparities=number,
        depth_range_m=calibration.depth_range_m(number),
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
class Light:
    """Change of the right view before it is matched.

    Parameters
    ----------
    kind
        "gain" multiplies intensities by `value`, "gamma" raises them to the power `value`, and
        "ramp" multiplies them by 1 - `value` at the left end up to 1 + `value` at the right end.
        The default changes nothing.
    value
        Strength of the change.
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
