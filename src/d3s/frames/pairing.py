"""Which files belong together: pairs by their names, or one frame a file."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from d3s.errors import InputError
from d3s.files import IMAGE_SUFFIXES
from d3s.files.raw import path_text
from d3s.frames.frame import Refused

_SIDE = re.compile(
    r"(?:(?P<before>.*)[-_. ])?(?P<side>left|right)(?:[-_. ](?P<after>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_MIDDLEBURY = "im0", "im1"  # names of the views in a scene of this data set
_RULE = (
    "A pair is left.png right.png. Several are a folder with names that end in _left and _right, "
    "two folders with the same names in both, or left/*.png right/*.png."
)


class FrameFiles(NamedTuple):
    """Files of one frame, and the name of its results."""

    name: str  # empty for left.png and right.png, which say nothing else
    left: Path
    right: Path | None  # None if the one file has both views
    place: int | None = None  # in `left`, from 0, if that is a recording, a video or an array

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the frame is read from."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def absolute(self) -> list[str]:
        """Whole paths of the files; links stay as they are."""
        return [os.path.abspath(path) for path in self.files]  # noqa: PTH100


class FoundFiles(NamedTuple):
    """Frames to work on, views without a partner, and files that are no views."""

    frames: tuple[FrameFiles, ...]
    refused: tuple[Refused, ...] = ()
    ignored: tuple[Path, ...] = ()


class _Sided(NamedTuple):
    """A file, its side by its name or its folder's, and the rest of the name."""

    path: Path
    side: str
    key: str


def find_frames(
    inputs: Sequence[str | os.PathLike[str]], *, one_file_each: bool = False
) -> FoundFiles:
    """Find the frames in files and folders.

    Names with the word left or right are paired by the rest of the name: `a_left.png` with
    `a_right.png`, `left/7.png` with `right/7.png`. Files of one name in two folders are paired too.
    Other files are pairs if the first half of the list are left views and the second half right
    ones, of the same names. Two files are always a pair. With `one_file_each` every file is a frame
    of its own: raw, or both views side by side. An `InputError`: the names do not say what belongs
    together.
    """
    paths = [Path(os.fsdecode(one)) for one in inputs]
    if not paths:
        raise InputError(f"there are no files. {_RULE}")
    _check_kinds(paths)
    if _is_folder(paths[0]):
        return _in_folders(paths, one_file_each)
    if one_file_each or len(paths) == 1:
        return unique_names(_alone(paths))
    return _of_files(paths)


def _check_kinds(paths: Sequence[Path]) -> None:
    """Refuse rig files, mixtures of files and folders, and one path given twice."""
    for path in paths:
        if path.suffix.lower() == ".toml":
            raise InputError(f"{path_text(path)} is a rig file, by its name. Give it as --rig.")
    folders = [path for path in paths if _is_folder(path)]
    if folders and len(folders) < len(paths):
        raise InputError(
            f"{path_text(folders[0])} is a folder, and {len(paths) - len(folders)} of the others "
            f"are files. Name the image in it, or the folder where results go with --output. "
            f"{_RULE}"
        )
    if len(paths) == 2 and os.path.realpath(paths[0]) == os.path.realpath(paths[1]):
        raise InputError(f"{path_text(paths[0])} is given twice, and a pair has two views. {_RULE}")
    if len(folders) > 2:
        raise InputError(f"there are {len(folders)} folders, and at most two can be given. {_RULE}")


def _in_folders(folders: list[Path], one_file_each: bool) -> FoundFiles:
    images: list[Path] = []
    ignored: list[Path] = []
    for folder in folders:
        for path in _entries(folder):
            (images if path.suffix.lower() in IMAGE_SUFFIXES else ignored).append(path)
    if one_file_each:
        return unique_names(_alone(images), ignored=ignored)
    if len(folders) == 2:
        _check_order(folders)
        side = dict(zip(folders, ("left", "right"), strict=True))
        return _paired([_Sided(path, side[path.parent], _key(path)) for path in images], ignored)
    named = [one for path in images if (one := side_of(path)) is not None]
    sides = {one.path for one in named}
    others = [*ignored, *(path for path in images if path not in sides)]
    if named:
        return _paired(named, others)
    numbered = {path.stem: path for path in images if path.stem in _MIDDLEBURY}
    if len(numbered) == 2:
        frame = FrameFiles(folders[0].resolve().name, numbered["im0"], numbered["im1"])
        return FoundFiles((frame,), ignored=tuple(p for p in others if p not in frame.files))
    raise InputError(
        f"{path_text(folders[0])} has no image whose name says left or right, of "
        f"{len(images)}. Name pairs a_left.png and a_right.png; or say --raw, or "
        "--side-by-side, if each file has both views."
    )


def _alone(paths: Iterable[Path]) -> Iterator[FrameFiles]:
    return (FrameFiles(path.stem, path, None) for path in paths)


def _of_files(paths: list[Path]) -> FoundFiles:
    sided = [one for path in paths if (one := _sided(path)) is not None]
    if len(paths) == 2:
        _check_order(paths)
        both = {one.side for one in sided}
        key = sided[0].key if both == {"left", "right"} else _key(paths[0])
        return FoundFiles((FrameFiles(key, paths[0], paths[1]),))
    if len(sided) == len(paths):
        return _paired(sided, [])
    half, odd = divmod(len(paths), 2)
    left, right = paths[:half], paths[half:]
    if odd or [_key(path) for path in left] != [_key(path) for path in right]:
        raise InputError(
            f"the {len(paths)} files do not pair up: their names do not say which are left and "
            f"right, and the first half has not the names of the second. {_RULE} If each file has "
            "both views, say --raw or --side-by-side."
        )
    return unique_names(
        FrameFiles(_key(one), one, other) for one, other in zip(left, right, strict=True)
    )


def _check_order(paths: list[Path]) -> None:
    """Refuse a right view before its left view, where the names say so."""
    sides = [one.side if (one := _sided(path)) is not None else "" for path in paths]
    if sides == ["right", "left"]:
        raise InputError(
            f"{path_text(paths[0])} comes before {path_text(paths[1])}: the left view goes first. "
            "Give them in the other order."
        )


def _paired(sided: Iterable[_Sided], ignored: list[Path]) -> FoundFiles:
    """Pair views of one key; a view without a partner, or with several, is refused."""
    views: dict[str, tuple[list[Path], list[Path]]] = {}
    for one in sided:
        views.setdefault(one.key, ([], []))[one.side == "right"].append(one.path)
    frames, refused = [], []
    for key, (left, right) in views.items():
        if len(left) == len(right) == 1:
            frames.append(FrameFiles(key, left[0], right[0]))
            continue
        reason = f"there is no {'right' if left else 'left'} view of this name."
        if len(left) > 1 or len(right) > 1:
            reason = "several files have this name. Leave one left and one right view."
        refused += [Refused(path_text(path), reason) for path in (*left, *right)]
    return FoundFiles(tuple(frames), tuple(refused), tuple(ignored))


def unique_names(
    frames: Iterable[FrameFiles], refused: Iterable[Refused] = (), ignored: Iterable[Path] = ()
) -> FoundFiles:
    """Keep the first of several frames of one name; the others join the `refused`."""
    kept: dict[str, FrameFiles] = {}
    further = []
    for frame in frames:
        first = kept.setdefault(frame.name, frame)
        if first is not frame:
            reason = f"its results would have the name of those of {path_text(first.left)}."
            further.append(Refused(path_text(frame.left), f"{reason} Rename one."))
    return FoundFiles(tuple(kept.values()), (*refused, *further), tuple(ignored))


def _sided(path: Path) -> _Sided | None:
    """Side of a file by its name, or by the name of its folder; None if neither says it."""
    of_stem = side_of(path)
    if of_stem is not None:
        return of_stem
    of_folder = _SIDE.fullmatch(path.parent.name)
    return None if of_folder is None else _Sided(path, of_folder["side"].lower(), path.stem)


def side_of(path: Path) -> _Sided | None:
    """Side of a file by its own name; None if it does not say it."""
    found = _SIDE.fullmatch(path.stem)
    if found is None:
        return None
    rest = [part for part in (found["before"], found["after"]) if part]
    return _Sided(path, found["side"].lower(), "_".join(rest))


def _key(path: Path) -> str:
    """Name of a file without its suffix and the word left or right."""
    of_stem = side_of(path)
    return path.stem if of_stem is None else of_stem.key


def _entries(folder: Path) -> list[Path]:
    """Entries of a folder that are not hidden, sorted by name."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names only, for many frames
    except OSError as error:
        raise InputError(
            f"{path_text(folder)}: cannot be read: {error.strerror}. Check the name and the rights."
        ) from error
    return [folder / name for name in names if not name.startswith(".")]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # no possible name: reading it will raise the error
        return False
