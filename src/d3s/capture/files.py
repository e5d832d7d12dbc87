"""Frames from files: two views, one file with both side by side, or a raw frame."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from d3s.capture.frames import Frame, Refused, Splitter
from d3s.capture.pairing import FrameFiles
from d3s.errors import D3SError, InputError
from d3s.files import orientation
from d3s.files.images import as_grey, read_samples
from d3s.files.raw import named, path_text
from d3s.formats import MAX_PIXELS
from d3s.types import Image

_Path = str | os.PathLike[str]
_FLAGS = "(--side-by-side and --rig on the command line.)"


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedPair:
    """Two views, float32 with full scale 1, (rows, columns); `left, right = pair` works too.

    `remarks` says in words what was done to the images that a person might not expect: colour that
    became grey, and an image that was turned by its EXIF orientation.
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
    """Read both views, from two files or from one.

    Two files are the views themselves, rectified; or the pictures of a stereo camera, which a `rig`
    of `Rig.from_file` rectifies. One file is a raw frame, which the calibrated `rig` splits; with
    `side_by_side` it is both views, the left one in its left half. PNG, TIFF,
    PGM, PPM, JPEG, BMP, WebP, PFM and NPY are read, by the rules of `read_image`: a file that is
    cut is refused, and an image is turned by its EXIF orientation, with a remark.

    Parameters
    ----------
    left
        The left view, or the one file.
    right
        The right view, of the same size.
    rig
        The camera, for a raw frame or for pictures that are to be rectified.
    side_by_side
        Whether the one file has both views beside each other.
    linear
        Whether integers are proportional to intensity, as from a sensor. If None, grey integers
        are, and colour images are taken for photographs: the sRGB curve is undone before they
        become grey. Floats have no such curve.
    max_pixels
        Refuse an image with more pixels.

    Returns
    -------
    LoadedPair
        Both views, and remarks on what was done to them.

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
                f"{path_text(left)} and {path_text(right)}. Leave one of them."
            )
        return _two(left, right, rig, linear, max_pixels)
    found = _read(left, linear, max_pixels)
    if side_by_side:
        views = _rectified(*_halves(left, found.image), rig)
    else:
        views = _split(left, found.image, rig)
    return LoadedPair(left=views[0], right=views[1], remarks=_remarks(found))


class FileSource:
    """Frames of files, as `find_frames` pairs them: a `Source`.

    Parameters
    ----------
    frames
        The files of each frame.
    rig
        The camera that splits raw frames into pairs. Without one, a frame of one file stays raw.
    side_by_side
        Whether each file has both views beside each other.
    linear
        Whether integers are proportional to intensity; None decides as `load_pair` does.
    max_pixels
        Refuse a file with more pixels.
    """

    def __init__(
        self,
        frames: Sequence[FrameFiles],
        *,
        rig: Splitter | None = None,
        side_by_side: bool = False,
        linear: bool | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        self._max_pixels = max_pixels
        self._frames = tuple(frames)
        self._rig = rig
        self._side_by_side = side_by_side
        self._linear = linear

    @property
    def frame_count(self) -> int:
        """Number of frames."""
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Read one frame after the other; a file that cannot be read gives a `Refused`."""
        for number, files in enumerate(self._frames):
            outcome: Frame | Refused
            try:
                outcome = self._frame(number, files)
            except D3SError as error:
                outcome = Refused(path_text(files.left), str(error))
            yield outcome

    def close(self) -> None:
        """Do nothing: every file is closed as soon as it is read."""

    def __enter__(self) -> Self:
        """Return the source itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the source."""
        self.close()

    def _frame(self, number: int, files: FrameFiles) -> Frame:
        is_raw = files.right is None and not self._side_by_side
        if is_raw and self._rig is None:
            found = _read(files.left, self._linear, self._max_pixels)
            return Frame(number=number, name=files.name, raw=found.image, remarks=_remarks(found))
        pair = load_pair(
            files.left,
            files.right,
            rig=self._rig,
            side_by_side=self._side_by_side,
            linear=self._linear,
            max_pixels=self._max_pixels,
        )
        views = (pair.left, pair.right)
        return Frame(number=number, name=files.name, views=views, remarks=pair.remarks)


class _Read(NamedTuple):
    """Image of a file, and remarks on it, empty if there are none."""

    image: Image
    colour: str
    turned: str


def _rectified(left: Image, right: Image, rig: Splitter | None) -> tuple[Image, Image]:
    return (left, right) if rig is None else rig.rectify(left, right)


def _two(
    left: _Path, right: _Path, rig: Splitter | None, linear: bool | None, max_pixels: int
) -> LoadedPair:
    first = _read(left, linear, max_pixels)
    second = _read(right, linear, max_pixels)
    views = _rectified(first.image, second.image, rig)
    if views[0].shape != views[1].shape:
        raise InputError(
            f"{path_text(left)} has {_size(first.image)} and {path_text(right)} has "
            f"{_size(second.image)}: both views must have one size. Are both rectified, and of one "
            "pair?"
        )
    return LoadedPair(left=views[0], right=views[1], remarks=_remarks(first, second))


def _remarks(*read: _Read) -> tuple[str, ...]:
    """Remarks on the files of a frame; on colour once, since both views are alike."""
    colours = [one.colour for one in read if one.colour]
    return (*colours[:1], *(one.turned for one in read if one.turned))


def _read(path: _Path, linear: bool | None, max_pixels: int) -> _Read:
    """Grey image of a file, upright."""
    with named(path):
        samples = read_samples(path, max_pixels)
        in_colour = samples.values.ndim == 3 and samples.values.shape[2] >= 3
        as_linear = not in_colour if linear is None else linear
        image = as_grey(samples, linear=as_linear, allow_nan=True)
    curved = samples.full_scale is not None and not as_linear
    curve = ", and the curve of sRGB was undone before" if curved else ""
    colour = f"{path_text(path)} is in colour: it became grey by the weights of Rec. 709{curve}."
    words = orientation.WORDS.get(samples.orientation)
    turned = (
        f"{path_text(path)} was {words}, as its EXIF orientation says. If that is wrong, save the "
        "image without it."
    )
    return _Read(image, colour if in_colour else "", turned if words else "")


def _halves(path: _Path, image: Image) -> tuple[Image, Image]:
    cols = image.shape[1]
    if cols % 2:
        raise InputError(
            f"{path_text(path)} has {_size(image)}: two views side by side have an even number of "
            "columns. Cut it to one, or give each view as a file."
        )
    return np.ascontiguousarray(image[:, : cols // 2]), np.ascontiguousarray(image[:, cols // 2 :])


def _split(path: _Path, image: Image, rig: Splitter | None) -> tuple[Image, Image]:
    if rig is None:
        raise InputError(
            f"{path_text(path)} is one file, and a pair is needed. Give the right view too; or, if "
            f"it has both, say so with side_by_side; or, if it is a raw frame, name its rig. "
            f"{_FLAGS}"
        )
    try:
        return rig.split(image)
    except InputError as error:
        raise InputError(
            f"{path_text(path)} is one file, taken for a raw frame: {error} If it is the left "
            f"view, give the right view too; if it has both views side by side, say so. {_FLAGS}"
        ) from error


def _size(image: Image) -> str:
    return f"{image.shape[0]} x {image.shape[1]} px (rows x columns)"
