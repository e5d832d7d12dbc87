"""Raw frames of a board at known distances, read when they are asked for."""

import hashlib
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.frames import on_each_frame
from d3s.calibrate.kept import KeptFrames
from d3s.calibrate.table import (
    FEWEST_FRAMES,
    MOST_FRAMES,
    TABLE_NAME,
    check_distances,
    read_table,
)
from d3s.errors import CapturesError, InputError
from d3s.files import list_images, read_image
from d3s.rig.split import checked_frame
from d3s.types import Image, Progress

_KEPT_FRAMES = 2  # that were asked for last

# A frame shows nothing where it is clipped, and a little of that is a lamp or a screw.
_MOST_CLIPPED = 0.05
_CELL_PX = 8  # of the means that texture is looked for in
_LIT = 0.25  # of the brightest cells
_LEAST_CONTRAST = 0.01  # of the brightness of the lit cells
_LEAST_OVER_NOISE = 3.0
# Of full scale 1: a frame may be a little above it, levels of 8 bit that were not divided are far.
_LARGEST = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Captures:
    """Raw frames, the nearest board first, and what is known of them."""

    names: tuple[str, ...]
    distances_m: tuple[float, ...]
    shape: tuple[int, int]
    digests: dict[str, str]  # SHA-256 by the name of the file, that of the table among them
    left_out: dict[str, str]  # why a frame is not among them, by its name
    remarks: tuple[str, ...]
    source: Callable[[int], Image] = field(repr=False)
    # Whether a frame is in memory, so that it costs nothing to ask for it again.
    is_kept: Callable[[int], bool] = field(repr=False, default=lambda _: True)

    def __len__(self) -> int:
        return len(self.names)

    def image(self, number: int) -> Image:
        """One frame with full scale 1, not to be written to."""
        if not 0 <= number < len(self):
            raise InputError(f"frame {number} is not one of {len(self)}, counted from 0.")
        return self.source(number)

    def some(self, numbers: Sequence[int]) -> "Captures":
        """Only these frames, in this order."""
        order = [range(len(self))[number] for number in numbers]
        return Captures(
            names=tuple(self.names[number] for number in order),
            distances_m=tuple(self.distances_m[number] for number in order),
            shape=self.shape,
            digests=self.digests,
            left_out=self.left_out,
            remarks=self.remarks,
            source=lambda number: self.image(order[number]),
            is_kept=lambda number: self.is_kept(order[number]),
        )


def read_captures(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> Captures:
    """Frames that distances.csv of a folder names, each looked at once.

    Several takes, one behind the other, are sorted by distance. A frame that is overexposed or
    shows no texture is left out, with its reason, as long as five remain.

    Parameters
    ----------
    folder
        With distances.csv, as `table` describes it, and the images that it names.
    progress
        Called with the number of frames that were looked at, and of all.

    Raises
    ------
    CapturesError
        Naming all that is wrong at once: lines of the table, files, frames.
    """
    try:
        place = Path(os.fsdecode(folder))
    except TypeError as error:
        raise CapturesError(f"folder={folder!r} must be the name of a folder.") from error
    rows = sorted(read_table(place), key=lambda row: row.distance_m)
    paths = [place / row.name for row in rows]
    names = [row.name for row in rows]
    frames = KeptFrames(_Latest(lambda number: _read(paths[number])))
    looks = _looked_at(lambda number: _look(frames(number), names[number]), names, progress)
    kept, left_out = _chosen(names, looks, place)
    digests = {TABLE_NAME: _digest(place / TABLE_NAME)}
    digests |= {names[number]: _digest(paths[number]) for number in kept}
    return Captures(
        names=tuple(names[number] for number in kept),
        distances_m=tuple(rows[number].distance_m for number in kept),
        shape=looks[kept[0]].shape,
        digests=digests,
        left_out=left_out,
        remarks=_remarks(place, names),
        source=lambda number: frames(kept[number]),
        is_kept=lambda number: frames.holds(kept[number]),
    )


def captures_of(
    images: Sequence[Any] | NDArray[Any],
    distances_m: Sequence[float] | NDArray[Any],
    *,
    names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Captures:
    """The same from arrays: the distances increase, or those of each of several takes do.

    Parameters
    ----------
    images
        Raw frames, (rows, cols) each: uint8 or uint16 of their full scale, or floats with full
        scale 1. They are not copied, and asked for by number whenever one is needed.
    distances_m
        Of the board, one a frame.
    names
        What to call the frames; "frame 0" and so on unless given.
    progress
        As for `read_captures`.

    Raises
    ------
    CapturesError
        Naming all that is wrong at once.
    """
    distances, called = _checked_lists(images, distances_m, names)
    order = sorted(range(len(called)), key=distances.__getitem__)
    called = [called[number] for number in order]

    def read(number: int) -> Image:
        values, unit = checked_frame(images[order[number]], called[number])
        single: Image = np.asarray(values, dtype=np.float32)
        return single if unit == 1 else single * np.float32(unit)

    looks = _looked_at(lambda number: _look(read(number), called[number]), called, progress)
    kept, left_out = _chosen(called, looks, None)
    return Captures(
        names=tuple(called[number] for number in kept),
        distances_m=tuple(distances[order[number]] for number in kept),
        shape=looks[kept[0]].shape,
        digests={called[number]: _digest_of(images[order[number]]) for number in kept},
        left_out=left_out,
        remarks=(),
        source=_Latest(lambda number: read(kept[number])),
    )


def _checked_lists(
    images: Any, distances_m: Any, names: Sequence[str] | None
) -> tuple[list[float], list[str]]:
    """Distances and names, one a frame."""
    if not hasattr(images, "__len__") or not hasattr(images, "__getitem__"):
        raise CapturesError("images must be a sequence of raw frames.")
    count = len(images)
    try:
        distances = [float(distance_m) for distance_m in distances_m]
    except (TypeError, ValueError) as error:
        raise CapturesError(f"distances_m must be numbers, one a frame: {error}.") from error
    called = [f"frame {number}" for number in range(count)] if names is None else list(names)
    problems = [
        f"{what} has {len(values)} values, and there are {count} images."
        for what, values in (("distances_m", distances), ("names", called))
        if len(values) != count
    ]
    if not FEWEST_FRAMES <= count <= MOST_FRAMES:
        problems.append(
            f"there are {count} images: a calibration needs {FEWEST_FRAMES} to {MOST_FRAMES}."
        )
    if len(set(called)) != len(called):
        problems.append("names must differ from each other.")
    if not problems:
        problems = check_distances(distances, called)
    if problems:
        raise CapturesError(*problems)
    return distances, called


class _Latest:
    """Frames that were asked for last are not read again."""

    def __init__(self, read: Callable[[int], Image]) -> None:
        self._read = read
        self._frames: OrderedDict[int, Image] = OrderedDict()
        self._lock = Lock()

    def __call__(self, number: int) -> Image:
        with self._lock:
            frame = self._frames.get(number)
            if frame is not None:
                self._frames.move_to_end(number)
                return frame
        frame = self._read(number)
        with self._lock:
            self._frames[number] = frame
            while len(self._frames) > _KEPT_FRAMES:
                self._frames.popitem(last=False)
        return frame


class _Look(NamedTuple):
    """What a first look at a frame tells."""

    shape: tuple[int, int]
    problem: str  # why it cannot be read at all
    trouble: str  # why it is of no use


def _looked_at(
    look: Callable[[int], _Look], names: list[str], progress: Progress | None
) -> list[_Look]:
    """A look at each frame; as many at a time as there are threads."""

    def safe_look(number: int) -> _Look:
        try:
            return look(number)
        except InputError as error:
            return _Look((0, 0), str(error), "")

    return on_each_frame(safe_look, len(names), progress)


def _chosen(
    names: list[str], looks: list[_Look], folder: Path | None
) -> tuple[list[int], dict[str, str]]:
    """Numbers of the frames to use, and why others are not."""
    problems = [look.problem for look in looks if look.problem]
    shapes = Counter(look.shape for look in looks if not look.problem)
    if len(shapes) > 1:
        (usual, count), *_ = shapes.most_common(1)
        problems += [
            f"{name} has {look.shape[1]} x {look.shape[0]} pixels, and {count} of {len(names)} "
            f"frames have {usual[1]} x {usual[0]}. All must be whole frames of one camera."
            for name, look in zip(names, looks, strict=True)
            if not look.problem and look.shape != usual
        ]
    useless = [
        (name, look.trouble) for name, look in zip(names, looks, strict=True) if look.trouble
    ]
    if len(names) - len(useless) < FEWEST_FRAMES:
        problems += [f"{name} {trouble}" for name, trouble in useless]
        if useless and not any(look.problem for look in looks):
            problems.append(
                f"{len(names) - len(useless)} of {len(names)} frames are of use, and a calibration "
                f"needs at least {FEWEST_FRAMES}."
            )
    if problems:
        raise CapturesError(*problems, path=folder)
    left_out = dict(useless)
    return [number for number, name in enumerate(names) if name not in left_out], left_out


def _read(path: Path) -> Image:
    return read_image(path)


def _look(frame: Image, name: str) -> _Look:
    largest = float(frame.max())
    problem = (
        f"{name} has values up to {largest:g}: floats have full scale 1. Divide them by the "
        "largest value that the sensor can give, or store whole numbers of 8 or 16 bit."
        if _LARGEST < largest < np.inf
        else ""
    )
    return _Look((frame.shape[0], frame.shape[1]), problem, "" if problem else _trouble(frame))


def _trouble(frame: Image) -> str:
    """Why a frame is of no use, if it is."""
    if not np.isfinite(frame.sum(dtype=np.float64)):
        return "has values that are NaN or infinite."
    at_top = frame == max(frame.max(), np.float32(1e-9))
    if np.count_nonzero(at_top) > _MOST_CLIPPED * frame.size:
        return (
            f"is overexposed: {100 * at_top.mean():.0f} % of its pixels are at its largest value. "
            "Expose less."
        )
    contrast, noise = _contrast(frame)
    if contrast < _LEAST_CONTRAST or contrast < _LEAST_OVER_NOISE * noise:
        return (
            "shows no texture that could be followed: is the board there, in the light, and the "
            "lens cap off?"
        )
    return ""


def _contrast(frame: Image) -> tuple[float, float]:
    """Contrast between small cells of the lit part, and what of it noise alone would make.

    By second differences, in which an even fall of light does not show; of full scale 1 where the
    lit part is that.
    """
    rows, cols = (size // _CELL_PX * _CELL_PX for size in frame.shape)
    if min(rows, cols) < 3 * _CELL_PX:
        return 0.0, 0.0
    cells = frame[:rows, :cols].reshape(rows // _CELL_PX, _CELL_PX, -1, _CELL_PX).mean(axis=(1, 3))
    bright = float(np.percentile(cells, 95))
    is_lit = cells > _LIT * bright
    whole = is_lit[:, 1:-1] & is_lit[:, :-2] & is_lit[:, 2:]
    if bright <= 0 or not whole.any():
        return 0.0, 0.0
    bends = np.abs(cells[:, :-2] - 2 * cells[:, 1:-1] + cells[:, 2:])[whole]
    fine = np.diff(frame[::_CELL_PX], n=2, axis=1)
    lit_pixels = np.repeat(is_lit, _CELL_PX, axis=1)[: len(fine), 1 : fine.shape[1] + 1]
    # Of white noise the median tells the width; texture can only add, and makes it more cautious.
    noise = float(np.median(np.abs(fine[: len(lit_pixels), : lit_pixels.shape[1]][lit_pixels])))
    ninth = 1.645 / 0.6745 / _CELL_PX  # the share of 90 % against that of 50 %, of cells
    return float(np.percentile(bends, 90)) / bright, noise * ninth / bright


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(image: Any) -> str:
    """Of the values as they lie in memory, row by row."""
    return hashlib.sha256(np.ascontiguousarray(image).data).hexdigest()


def _remarks(folder: Path, names: list[str]) -> tuple[str, ...]:
    try:
        listed = {str(Path(name)) for name in names}
        others = [path.name for path in list_images(folder) if path.name not in listed]
    except InputError:
        return ()
    if not others:
        return ()
    shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return (f"Images of the folder that {TABLE_NAME} does not name ({len(others)}): {shown}.",)
