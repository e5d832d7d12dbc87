"""Frames from files: two views, one file with both side by side, or a raw frame."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import D3SError, InputError
from d3s.files.depth_image import for_screens
from d3s.files.images import read_light
from d3s.files.raw import WORDS, named, path_text
from d3s.formats import MAX_PIXELS
from d3s.frames.frame import Frame, Refused, Source, halves, size_words
from d3s.frames.pairing import FrameFiles
from d3s.rig import Rig
from d3s.rig.bayer import MONO, check_said, colours, luminance, unsaid_warning
from d3s.types import Image

_Path = str | os.PathLike[str]
_LOSSY = (
    "is compressed with loss: plain surfaces may show its blocks, and weak texture is gone. Save "
    "pictures as PNG or TIFF."
)
_FLAGS = "(--side-by-side and --rig on the command line.)"


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedPair:
    """Two views, float32 with full scale 1, (rows, columns); `left, right = pair` works too."""

    left: Image
    right: Image
    remarks: tuple[str, ...] = ()  # what was done that a person might not expect: grey, turned
    warnings: tuple[str, ...] = ()  # what is likely wrong: a colour sensor that was not said
    colour: NDArray[np.uint8] | None = None  # of the left view for screens, (rows, columns, 3)

    def __iter__(self) -> Iterator[Image]:
        """The left view, then the right one."""
        return iter((self.left, self.right))


def load_pair(
    left: _Path,
    right: _Path | None = None,
    *,
    rig: Rig | None = None,
    side_by_side: bool = False,
    linear: bool | None = None,
    bayer: str | None = None,
    keep_colour: bool = False,
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
    bayer
        Order of the colours of a colour sensor whose raw frames these are, such as "RGGB", where
        the rig does not say it; "none" if they only look like it. If None, grey frames with the
        pattern of a colour sensor get a warning.
    keep_colour
        Whether to return the colours of the left view.
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
    read = partial(_read, linear=linear, keep_colour=keep_colour, max_pixels=max_pixels)
    if right is None and not side_by_side:
        found, views, colour = _raw(left, rig, read, bayer, keep_colour)
        return LoadedPair(left=views[0], right=views[1], colour=colour, **_told(found))
    if right is not None and side_by_side:
        raise InputError(
            "side_by_side is for one file with both views, and there are two files: "
            f"{path_text(left)} and {path_text(right)}. Leave one of them."
        )
    said = check_said(bayer, None)
    files = [read(left, bayer=said)]
    colour = files[0].colour
    if right is None:
        images = halves(files[0].image, path_text(left))
        colour = None if colour is None else colour[:, : colour.shape[1] // 2]
    else:
        files.append(read(right, bayer=said, keep_colour=False))
        images = files[0].image, files[1].image
    views = images if rig is None else rig.rectify(*images)
    if right is not None and views[0].shape != views[1].shape:
        raise InputError(
            f"{path_text(left)} has {size_words(images[0])} and {path_text(right)} has "
            f"{size_words(images[1])}: both views must have one size. Are both rectified, and "
            "of one pair?"
        )
    if rig is not None:
        colour = _moved(colour, lambda plane: rig.rectify(plane, plane)[0])
    return LoadedPair(left=views[0], right=views[1], colour=colour, **_told(*files))


class FileSource(Source):
    """Frames of files, as `find_frames` pairs them: a `Source`; the options are of `load_pair`.

    The rig splits raw frames into pairs. Without one, a frame of one file stays raw.
    """

    def __init__(
        self,
        frames: Sequence[FrameFiles],
        *,
        rig: Rig | None = None,
        side_by_side: bool = False,
        linear: bool | None = None,
        max_pixels: int = MAX_PIXELS,
        bayer: str | None = None,
        keep_colour: bool = False,
    ) -> None:
        self._frames, self._rig, self._side_by_side = tuple(frames), rig, side_by_side
        self._options: dict[str, Any] = {"linear": linear, "bayer": bayer, "max_pixels": max_pixels}
        self._keep_colour = keep_colour

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

    def _frame(self, number: int, files: FrameFiles) -> Frame:
        if files.right is None and not self._side_by_side and self._rig is None:
            options = {**self._options, "bayer": check_said(self._options["bayer"], None)}
            found = _read(files.left, keep_colour=False, **options)
            return Frame(number=number, name=files.name, raw=found.image, **_told(found))
        pair = load_pair(
            files.left,
            files.right,
            rig=self._rig,
            side_by_side=self._side_by_side,
            keep_colour=self._keep_colour,
            **self._options,
        )
        told: dict[str, Any] = {"remarks": pair.remarks, "warnings": pair.warnings}
        views = pair.left, pair.right
        return Frame(number=number, name=files.name, views=views, colour=pair.colour, **told)


class _Read(NamedTuple):
    """Image of a file, and words on it, empty if there are none."""

    image: Image
    remarks: tuple[str, str, str]  # on colour, on turning, on loss
    warning: str
    colour: NDArray[np.uint8] | None


def _told(*read: _Read) -> dict[str, Any]:
    """Remarks and warnings on the files of a frame: both views are alike, but for turning."""
    colour, turned, lossy = zip(*(one.remarks for one in read), strict=True)
    remarks = (colour[0] or colour[-1], *turned, lossy[0] or lossy[-1])
    warnings = [one.warning for one in read if one.warning]
    return {"remarks": tuple(filter(None, remarks)), "warnings": tuple(warnings[:1])}


def _moved(
    colour: NDArray[np.uint8] | None, move: Callable[[Image], Image]
) -> NDArray[np.uint8] | None:
    """Colours of the left view, moved as the view is; black where a camera shows nothing."""
    if colour is None:
        return None
    planes = [np.ascontiguousarray(colour[..., i], dtype=np.float32) for i in range(3)]
    levels = np.nan_to_num(
        np.stack([move(plane / np.float32(255)) for plane in planes], axis=-1)
    ).clip(0, 1)
    return np.asarray(np.rint(255 * levels), dtype=np.uint8)


def _read(
    path: _Path, *, linear: bool | None, bayer: str | None, keep_colour: bool, max_pixels: int
) -> _Read:
    """Grey image of a file, upright."""
    with named(path):
        found = read_light(path, linear=linear, keep_colour=keep_colour, max_pixels=max_pixels)
        image, colour, warning = found.grey, None, ""
        if found.colour is not None:  # photographs keep their white
            colour = for_screens(found.colour, white=1.0 if found.curve == "srgb" else None)
        if bayer in (None, MONO) or found.curve:
            is_known = bayer or found.curve or found.is_lossy  # loss is in blocks, with a period
            warning = "" if is_known else unsaid_warning(image)
        else:
            if keep_colour:
                colour = for_screens(colours(image, bayer or ""), white=None)
            image = luminance(image, bayer or "")
    name, turned = path_text(path), WORDS.get(found.orientation)
    remarks = (
        f"{name} is {found.words}" if found.words else "",
        f"{name} was {turned}, as its EXIF orientation says. If that is wrong, save the image "
        "without it."
        if turned
        else "",
        f"{name} {_LOSSY}" if found.is_lossy else "",
    )
    return _Read(image, remarks, f"{name} {warning}" if warning else "", colour)


def _raw(
    path: _Path,
    rig: Rig | None,
    read: Callable[..., _Read],
    bayer: str | None,
    keep_colour: bool,
) -> tuple[_Read, tuple[Image, Image], NDArray[np.uint8] | None]:
    """Views of a raw frame; a rig that knows the colours of its sensor needs not be told."""
    own = getattr(getattr(rig, "calibration", None), "bayer", None)
    bayer = check_said(bayer, own)
    found = read(path, bayer=bayer if own is None else MONO)
    if own is not None and found.remarks[0]:
        raise InputError(
            f"{path_text(path)} is in colour already, and the rig was calibrated with raw {own} "
            "frames, as the sensor gives them. Save raw frames."
        )
    if rig is None:
        raise InputError(
            f"{path_text(path)} is one file, and a pair is needed. Give the right view too; or, if "
            f"it has both, say so with side_by_side; or, if it is a raw frame, name its rig. "
            f"{_FLAGS}"
        )
    try:
        views = rig.split(found.image, bayer=own or MONO)  # which has been looked for
    except InputError as error:
        raise InputError(
            f"{path_text(path)} is one file, taken for a raw frame: {error} If it is the left "
            f"view, give the right view too; if it has both views side by side, say so. {_FLAGS}"
        ) from error
    colour = _split_colour(found, rig, own) if keep_colour else None
    return found, views, colour


def _split_colour(found: _Read, rig: Rig, own: str | None) -> NDArray[np.uint8] | None:
    """Colours of the left view, as screens show them."""
    if rig.calibration is None:
        return None
    mono = rig.replace(calibration=rig.calibration.replace(bayer=None, channel_gains=None))
    if own is not None:
        planes = colours(found.image, own, rig.calibration.channel_gains)
        return for_screens(
            np.stack([mono.split(planes[:, :, i], bayer=MONO)[0] for i in range(3)], axis=2),
            white=None,
        )
    return _moved(found.colour, lambda plane: mono.split(plane, bayer=MONO)[0])
