"""`SavedShow`: saved depth maps, a recording or a folder on a page, with a time line."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from d3s.camera.live.pictures import PANELS
from d3s.camera.live.results import LiveDepth, Settings, compute, measure_light
from d3s.camera.live.slot import Newest, Slot
from d3s.errors import D3SError, InputError
from d3s.estimate import DepthMap
from d3s.files import IMAGE_SUFFIXES
from d3s.files.raw import path_text
from d3s.frames import FileSource, Frame, Refused, find_frames
from d3s.frames.source_names import RECORDING_SUFFIX
from d3s.rig import Rig

DEPTH_SUFFIX = ".npz"
_CLOSE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Saved:
    """Saved frames by their position."""

    count: int
    read: Callable[[int, Settings, int], LiveDepth]  # position, settings, serial
    is_estimated: bool  # whether depth is estimated as it is shown, with the settings
    close: Callable[[], None] = lambda: None


def open_saved(path: str | os.PathLike[str], rig: Rig | None = None) -> Saved:
    """Frames of a depth map (.npz), a recording (.mcap), an image with both views, or a folder.

    The rig is needed for images, and for recordings that do not have theirs.
    """
    place = Path(path)
    suffix = place.suffix.lower()
    if not place.exists():
        raise InputError(f"{path_text(place)}: there is no such file or folder.")
    if suffix == RECORDING_SUFFIX:
        return _recording(place, rig)
    maps = sorted(place.iterdir()) if place.is_dir() else [place]
    maps = [one for one in maps if one.suffix.lower() == DEPTH_SUFFIX]
    if maps:
        return _depth_maps(maps)
    if not place.is_dir() and suffix not in IMAGE_SUFFIXES:
        raise InputError(
            f"{path_text(place)}: it must be a depth map ({DEPTH_SUFFIX}), a recording "
            f"({RECORDING_SUFFIX}), an image, or a folder of depth maps or images."
        )
    return _images(place, rig)


def _depth_maps(paths: Sequence[Path]) -> Saved:
    def read(position: int, _settings: Settings, serial: int) -> LiveDepth:
        depth_map = DepthMap.load(paths[position])
        left = depth_map.intensity
        return LiveDepth(
            serial=serial,
            number=position,
            name=paths[position].stem,
            left=left,
            right=None,
            depth_map=depth_map,
            light=None if left is None else measure_light(Frame(number=0, raw=left)),
            grabbed_s=time.monotonic(),
        )

    return Saved(count=len(paths), read=read, is_estimated=False)


def _estimated(
    frame: Callable[[int], Frame | Refused],
    count: int,
    rig: Rig,
    close: Callable[[], None] = lambda: None,
) -> Saved:
    def read(position: int, settings: Settings, serial: int) -> LiveDepth:
        found = frame(position)
        if isinstance(found, Refused):
            raise InputError(f"{found.name}: {found.reason}")
        return compute(found, rig, settings, serial=serial, grabbed_s=time.monotonic())

    return Saved(count=count, read=read, is_estimated=True, close=close)


def _recording(path: Path, rig: Rig | None) -> Saved:
    from d3s.camera.recording import Recording

    recording = Recording(path)
    camera = rig or recording.rig()
    if camera is None:
        recording.close()
        raise _no_rig(path)
    times_s = recording.times_s

    def frame(position: int) -> Frame:
        return replace(recording.frame(position), time_s=times_s[position])

    return _estimated(frame, recording.frame_count, camera, recording.close)


def _images(path: Path, rig: Rig | None) -> Saved:
    try:
        frames = find_frames([path], one_file_each=path.is_file()).frames
    except InputError:  # no name says left or right
        frames = find_frames([path], one_file_each=True).frames
    if not frames:
        raise InputError(f"{path_text(path)} has no depth maps, and no images.")
    if rig is None:
        raise _no_rig(path)
    can_split = rig.calibration is not None or rig.stereo is not None

    def frame(position: int) -> Frame | Refused:
        with FileSource([frames[position]], rig=rig if can_split else None) as source:
            return next(iter(source))

    return _estimated(frame, len(frames), rig)


def _no_rig(path: Path) -> InputError:
    return InputError(f"which camera took {path_text(path)}? Give its rig file with --rig.")


class SavedShow:
    """Saved frames as a page shows them; a thread reads and estimates the one that is asked for."""

    def __init__(self, saved: Saved, *, settings: Settings | None = None) -> None:
        self.results: Newest[LiveDepth] = Newest()
        self.settings = settings or Settings()
        self.panels = tuple(one for one in PANELS if saved.is_estimated or one != "right")
        self._saved = saved
        self._wanted: Slot[int] = Slot()
        self._position = self._serial = 0
        self._state = "reading"
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="d3s-view", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread, with the first frame."""
        self._thread.start()
        self._wanted.put(0)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the thread, and close the files."""
        self._wanted.close()
        self._thread.join(_CLOSE_S)
        self._saved.close()

    def abilities(self) -> dict[str, Any]:
        """Controls that the page offers."""
        return {
            "record": False,
            "positions": self._saved.count,
            "estimate": self._saved.is_estimated,
            "camera": {},
        }

    def status(self) -> dict[str, Any]:
        """State in words."""
        return {"state": self._state, "stale": False, "recording": False}

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings; the frame is estimated again if the estimate is to change."""
        with self._lock:
            before, self.settings = self.settings, self.settings.changed(changes)
            after = self.settings
        if (before.method, before.options) != (after.method, after.options):
            self._wanted.put(self._position)
        self.results.notify()

    def act(self, action: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Go to a position: the action "seek", with the value `position`."""
        position = values.get("position")
        if action != "seek":
            raise InputError(f"{action} is for live cameras.")
        if type(position) is not int or not 0 <= position < self._saved.count:
            raise InputError(f"position={position!r} must be 0 to {self._saved.count - 1}.")
        self._position = position
        self._wanted.put(position)
        return {}

    def _work(self) -> None:
        while (position := self._wanted.take()) is not None:
            self._serial += 1
            try:
                found = self._saved.read(position, self.settings, self._serial)
                self.results.put(replace(found, position=position))
                self._state = "saved"
            except D3SError as error:
                self._state = str(error)
                self.results.notify()
