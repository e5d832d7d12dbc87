"""Read raw frames of a board at known distances, and reject frames that show no texture."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.distance_table import (
    FEWEST_FRAMES,
    MOST_FRAMES,
    TABLE_NAME,
    check_distances,
    is_farthest_first,
    read_table,
)
from d3s.calibrate.frames import Captures, ColourSensor, FrameCache, on_each_frame
from d3s.errors import CapturesError, InputError
from d3s.files import list_images
from d3s.files.codecs import check_finite
from d3s.files.images import read_light
from d3s.files.raw import named
from d3s.rig.bayer import (
    MONO,
    channel_means,
    check_order,
    gains_of_means,
    looks_coloured,
    luminance,
)
from d3s.rig.split import checked_frame
from d3s.types import Image, Progress

_UNKNOWN = (0, 0)  # shape of frames that are not read yet, or cannot be
_LATEST_FRAMES = 2  # frames in memory as they were read: those that were used last
# Largest share of clipped pixels: a lamp or a screw may clip a few.
_MOST_CLIPPED = 0.05
_CELL_PX = 8  # side of the cells whose means are compared to detect texture
_LIT = 0.25  # lit cells are brighter than this share of the brightest
_LEAST_CONTRAST = 0.01  # between cells, as a share of the brightness of lit cells
_LEAST_OVER_NOISE = 3.0  # contrast between cells over the contrast of noise alone
# Largest value of a frame of floats. Full scale is 1; a value a little above it is accepted, levels
# of 8 bits that were not divided by 255 are far above it.
_LARGEST = 2.0
_COLOUR_FRAMES = 5  # that tell whether a sensor has colours, and their gains
_UNSAID = (
    "the frames look like those of a colour sensor, and were not said to be. Say the order of its "
    "colours, which its data sheet has: --bayer RGGB, BGGR, GRBG or GBRG on the command line, "
    'bayer in Python. If the sensor is a mono one, say "none".'
)


def read_captures(
    folder: str | os.PathLike[str],
    *,
    bayer: str | None = None,
    linear: bool | None = None,
    progress: Progress | None = None,
) -> Captures:
    """Read the frames that distances.csv of a folder names, and check each once.

    Frames are sorted by distance, also where the table lists them from far to near, which a remark
    says, or several takes one after the other. A frame that is overexposed or shows no texture is
    rejected, with its reason, as long as five frames remain.

    `bayer` is the order of the colours of a colour sensor. `linear` says whether integers are
    proportional to intensity; if None, grey ones are, and of colour images the sRGB curve is
    undone, as `load_pair` does.
    """
    try:
        path = Path(os.fsdecode(folder))
    except TypeError as error:
        raise CapturesError(f"folder={folder!r} must be the name of a folder.") from error
    table = read_table(path)
    rows = sorted(table, key=lambda row: row.distance_m)
    names = tuple(row.name for row in rows)
    curves: dict[str, str] = {}

    def read_file(number: int) -> Image:
        with named(path / names[number]):
            image = read_light(path / names[number], linear=linear)
            check_finite(image.grey, "A sensor gives none.")
        curves[names[number]] = image.words
        return image.grey

    read = lru_cache(_LATEST_FRAMES)(read_file)
    sensor = _sensor(read, len(names), bayer)
    frames = FrameCache(_as_luminance(read, sensor))
    every = Captures(
        names=names,
        distances_m=tuple(row.distance_m for row in rows),
        shape=_UNKNOWN,
        remarks=_order_remark([row.distance_m for row in table]) + _remarks(path, names),
        source=frames,
        is_cached=frames.__contains__,
        sensor=sensor,
        raw_source=None if sensor is None else read,
    )
    kept = _without_rejected(every, path, progress)
    return replace(
        kept,
        remarks=kept.remarks + _colour_remarks(curves),
        digests={name: _digest(path / name) for name in (TABLE_NAME, *kept.names)},
    )


def captures_of(
    images: Sequence[Any] | NDArray[Any],
    distances_m: Sequence[float] | NDArray[Any],
    *,
    names: Sequence[str] | None = None,
    bayer: str | None = None,
    progress: Progress | None = None,
) -> Captures:
    """Captures from arrays, checked as `read_captures` checks files.

    Frames (rows, cols) are uint8 or uint16 of their full scale, or floats with full scale 1. They
    are not copied; each is taken from the sequence when it is used. Distances go from near to far
    or from far to near within each take; frames are sorted by them, and called "frame 0", "frame
    1", ... if they have no names.
    """
    distances, called = _checked_lists(images, distances_m, names)
    order = sorted(range(len(called)), key=distances.__getitem__)
    numbers = {called[number]: number for number in order}
    names = tuple(numbers)

    def read(place: int) -> Image:
        values, unit = checked_frame(images[order[place]], names[place])
        single: Image = np.asarray(values, dtype=np.float32)
        return single if unit == 1 else single * np.float32(unit)

    sensor = _sensor(read, len(names), bayer)
    every = Captures(
        names=names,
        distances_m=tuple(distances[number] for number in order),
        shape=_UNKNOWN,
        remarks=_order_remark(distances),
        source=lru_cache(_LATEST_FRAMES)(_as_luminance(read, sensor)),
        sensor=sensor,
        raw_source=None if sensor is None else read,
    )
    kept = _without_rejected(every, None, progress)
    return replace(kept, digests={name: _digest_of(images[numbers[name]]) for name in kept.names})


def _sensor(read: Callable[[int], Image], count: int, bayer: str | None) -> ColourSensor | None:
    """Order and gains of a colour sensor; None for a mono sensor."""
    if bayer == MONO:
        return None
    frames = list(_some_frames(read, count))
    try:
        if bayer is None:
            if 2 * sum(map(looks_coloured, frames)) > len(frames):
                raise CapturesError(_UNSAID)
            return None
        order = check_order(bayer)
        means = [channel_means(frame, order) for frame in frames]
        known = [one for one in means if np.isfinite(one).all()]
        if not known:
            return ColourSensor(order, (1.0, 1.0, 1.0))  # each frame is refused by itself
        return ColourSensor(order, gains_of_means(np.mean(known, axis=0)))
    except InputError as error:
        raise CapturesError(str(error)) from error


def _some_frames(read: Callable[[int], Image], count: int) -> Iterator[Image]:
    """Some frames from the nearest to the farthest; those that cannot be read are passed over."""
    for number in np.unique(np.linspace(0, count - 1, _COLOUR_FRAMES).round().astype(int)).tolist():
        try:
            yield read(number)
        except InputError:
            continue


def _as_luminance(
    read: Callable[[int], Image], sensor: ColourSensor | None
) -> Callable[[int], Image]:
    if sensor is None:
        return read
    return lambda number: luminance(read(number), sensor.order, sensor.gains)


def _colour_remarks(words: dict[str, str]) -> tuple[str, ...]:
    """One remark for all files that were treated alike."""
    names = {one: [name for name in words if words[name] == one] for one in words.values() if one}
    return tuple(
        f"{some[0]}{f' and {len(some) - 1} other frames' if len(some) > 1 else ''}: {one}"
        for one, some in sorted(names.items())
    )


def _checked_lists(
    images: Any, distances_m: Any, names: Sequence[str] | None
) -> tuple[list[float], list[str]]:
    """Distances in metres and names, one for each frame."""
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


def _without_rejected(every: Captures, folder: Path | None, progress: Progress | None) -> Captures:
    """Captures without rejected frames; raises if frames differ in size or too few are left."""

    def check(number: int) -> tuple[tuple[int, int], str, str]:
        try:
            return _check(every.image(number), every.names[number])
        except InputError as error:
            return _UNKNOWN, str(error), ""

    count = len(every)
    checks = dict(zip(every.names, on_each_frame(check, count, progress), strict=True))
    problems = [problem for _, problem, _ in checks.values() if problem]
    rejected = {name: rejection for name, (_, _, rejection) in checks.items() if rejection}
    can_be_read = not problems
    shapes = Counter(shape for shape, problem, _ in checks.values() if not problem)
    if len(shapes) > 1:
        usual, alike = shapes.most_common(1)[0]
        problems += [
            f"{name} has {shape[1]} x {shape[0]} pixels, and {alike} of {count} "
            f"frames have {usual[1]} x {usual[0]}. All must be whole frames of one camera."
            for name, (shape, problem, _) in checks.items()
            if not problem and shape != usual
        ]
    if count - len(rejected) < FEWEST_FRAMES:
        problems += [f"{name} {why}" for name, why in rejected.items()]
        if rejected and can_be_read:
            problems.append(
                f"{count - len(rejected)} of {count} frames are of use, and a calibration needs "
                f"at least {FEWEST_FRAMES}."
            )
    if problems:
        raise CapturesError(*problems, path=folder)
    kept = [number for number, name in enumerate(every.names) if name not in rejected]
    return replace(every.some(kept), shape=next(iter(shapes)), left_out=rejected)


def _check(frame: Image, name: str) -> tuple[tuple[int, int], str, str]:
    """Shape, why no calibration is possible with the frame, and why it is rejected, or empty."""
    largest = float(frame.max())
    problem = (
        f"{name} has values up to {largest:g}: floats have full scale 1. Divide them by the "
        "largest value that the sensor can give, or store whole numbers of 8 or 16 bit."
        if _LARGEST < largest < np.inf
        else ""
    )
    return (frame.shape[0], frame.shape[1]), problem, "" if problem else rejection_of(frame)


def rejection_of(frame: Image) -> str:
    """Reason to reject a frame; empty if there is none."""
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
    """Contrast between cells of the lit part, and the contrast that noise alone would have.

    Both are shares of the brightness of the lit part, from second differences, which a linear
    fall-off of the light does not change.
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
    # The median gives the width of white noise; texture can only increase it, which is cautious.
    noise = float(np.median(np.abs(fine[: len(lit_pixels), : lit_pixels.shape[1]][lit_pixels])))
    ninth = 1.645 / 0.6745 / _CELL_PX  # 90th percentile over the median, for means of cells
    return float(np.percentile(bends, 90)) / bright, noise * ninth / bright


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(image: Any) -> str:
    """SHA-256 of the values in memory, row by row."""
    return hashlib.sha256(np.ascontiguousarray(image).data).hexdigest()


def _order_remark(distances_m: Sequence[float]) -> tuple[str, ...]:
    if is_farthest_first(distances_m):
        return ("The frames are listed from far to near; they were sorted by distance.",)
    return ()


def _remarks(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    try:
        listed = {str(Path(name)) for name in names}
        others = [path.name for path in list_images(folder) if path.name not in listed]
    except InputError:
        return ()
    if not others:
        return ()
    shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return (f"Images of the folder that {TABLE_NAME} does not name ({len(others)}): {shown}.",)
