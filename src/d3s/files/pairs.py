"""A pair of views from files: two of them, one with both side by side, or a raw frame."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from d3s.errors import InputError
from d3s.files.images import MAX_PIXELS, as_grey, read_samples
from d3s.files.raw import named, shown
from d3s.types import Image

_Path = str | os.PathLike[str]


class Splitter(Protocol):
    """What cuts a raw frame into both views: a calibrated `Rig`."""

    def split(self, raw: Any, /) -> tuple[Image, Image]:
        """Left and right view."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedPair:
    """Two views as floats with full scale 1, (rows, cols); `left, right = pair` works too.

    `remarks` says in words what was done to the images that one might not expect.
    """

    left: Image
    right: Image
    remarks: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Image]:
        """The left view, then the right one."""
        return iter((self.left, self.right))


def load_pair(
    left: _Path,
    right: _Path | None = None,
    *,
    rig: Splitter | None = None,
    side_by_side: bool = False,
    linear: bool | None = None,
    max_pixels: int = MAX_PIXELS,
) -> LoadedPair:
    """Both views, from two files or from one.

    Two files are the views themselves, rectified. One file is a raw frame, which the calibrated
    `rig` splits; with `side_by_side` it is both views, the left one in its left half. PNG, TIFF,
    PGM, PPM, JPEG, NPY and PFM are read, by the rules of `read_image`: a file that is cut or
    damaged is refused, and a note on which way is up is not followed.

    Parameters
    ----------
    left
        The left view, or the one file.
    right
        The right view.
    rig
        The camera, for a raw frame.
    side_by_side
        Whether the one file has both views beside each other.
    linear
        Whether integers are proportional to intensity, as from a sensor. If left, those of grey
        images are. Colour images are taken for photographs: the curve of sRGB is undone before
        they become grey. Floats have no such curve.
    max_pixels
        Refuse an image with more.

    Raises
    ------
    InputError
        Naming the file, what is wrong and the likely remedy.

    Examples
    --------
    >>> import d3s
    >>> import numpy as np
    >>> np.save("left.npy", np.zeros((4, 6)))
    >>> np.save("right.npy", np.ones((4, 6)))
    >>> left, right = d3s.load_pair("left.npy", "right.npy")
    >>> right.shape, right.dtype.name, float(right.max())
    ((4, 6), 'float32', 1.0)
    """
    if right is not None:
        if side_by_side:
            raise InputError(
                "side_by_side is for one file with both views, and there are two files: "
                f"{shown(left)} and {shown(right)}. Leave one of them."
            )
        return _two(left, right, linear, max_pixels)
    image, remark = _read(left, linear, max_pixels)
    views = _halves(left, image) if side_by_side else _split(left, image, rig)
    return LoadedPair(left=views[0], right=views[1], remarks=remark)


def _two(left: _Path, right: _Path, linear: bool | None, max_pixels: int) -> LoadedPair:
    first, remark = _read(left, linear, max_pixels)
    second, other = _read(right, linear, max_pixels)
    if first.shape != second.shape:
        raise InputError(
            f"{shown(left)} has {_size(first)} and {shown(right)} has {_size(second)}: both views "
            "must have one size. Are both rectified, and of one pair?"
        )
    return LoadedPair(left=first, right=second, remarks=remark or other)


def _read(path: _Path, linear: bool | None, max_pixels: int) -> tuple[Image, tuple[str, ...]]:
    """Grey image of a file, and what to say of it."""
    with named(path):
        samples = read_samples(path, max_pixels)
        in_colour = samples.values.ndim == 3 and samples.values.shape[2] >= 3
        as_linear = not in_colour if linear is None else linear
        image = as_grey(samples, as_linear, allow_nan=True)
    if not in_colour:
        return image, ()
    curved = samples.full_scale is not None and not as_linear
    curve = ", and the curve of sRGB was undone before" if curved else ""
    return image, (
        f"{shown(path)} is in colour: it became grey by the weights of Rec. 709{curve}.",
    )


def _halves(path: _Path, image: Image) -> tuple[Image, Image]:
    cols = image.shape[1]
    if cols % 2:
        raise InputError(
            f"{shown(path)} has {_size(image)}: two views side by side have an even number of "
            "columns. Cut it to one, or give each view as a file."
        )
    return np.ascontiguousarray(image[:, : cols // 2]), np.ascontiguousarray(image[:, cols // 2 :])


def _split(path: _Path, image: Image, rig: Splitter | None) -> tuple[Image, Image]:
    if rig is None:
        raise InputError(
            f"{shown(path)} is one file, and a pair is needed. Give the right view too; or, if it "
            f"has both, say so with side_by_side; or, if it is a raw frame, name its rig. {_FLAGS}"
        )
    try:
        return rig.split(image)
    except InputError as error:
        raise InputError(
            f"{shown(path)} is one file, taken for a raw frame: {error} If it is the left view, "
            f"give the right view too; if it has both views side by side, say so. {_FLAGS}"
        ) from error


_FLAGS = "(--side-by-side and --rig on the command line.)"


def _size(image: Image) -> str:
    return f"{image.shape[0]} x {image.shape[1]} px (rows x columns)"
