"""`SavedShow`: saved depth maps, a recording or a folder on a page, with a time line."""

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from d3s.camera.live.pictures import PANELS
from d3s.camera.live.results import LiveDepth, compute, measure_light
from d3s.camera.live.settings import Settings
from d3s.camera.live.shows import LiveShow, write_snapshot
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


class SavedMaps:
    """Depth maps that were saved as NPZ."""

    panels = tuple(name for name in PANELS if name != "right")
    is_estimated = False

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self._paths)

    def result(self, position: int, settings: Settings, serial: int) -> LiveDepth:
        """Read a depth map; settings are not needed."""
        del settings
        path = self._paths[position]
        depth_map = DepthMap.load(path)
        left = depth_map.intensity
        light = None if left is None else measure_light(Frame(number=0, views=(left, left)))
        return LiveDepth(
            serial=serial,
            number=position,
            name=path.stem,
            left=left,
            right=None,
            depth_map=depth_map,
            light=light,
            grabbed_s=time.monotonic(),
            position=position,
        )

    def close(self) -> None:
        """Do nothing: files are not kept open."""


class SavedFrames:
    """Saved frames of a camera, whose depth is estimated when they are shown."""

    panels = tuple(PANELS)
    is_estimated = True

    def __init__(
        self,
        frame: Callable[[int], Frame | Refused],
        count: int,
        rig: Rig,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._frame = frame
        self.count = count
        self._rig = rig
        self.close = close

    def result(self, position: int, settings: Settings, serial: int) -> LiveDepth:
        """Read a frame and estimate its depth."""
        frame = self._frame(position)
        if isinstance(frame, Refused):
            raise InputError(f"{frame.name}: {frame.reason}")
        found = compute(frame, self._rig, settings, serial=serial, grabbed_s=time.monotonic())
        return replace(found, position=position)


Saved = SavedMaps | SavedFrames
"""Saved frames by their position."""


def open_saved(path: str | os.PathLike[str], rig: Rig | None = None) -> Saved:
    """Frames of a depth map (.npz), a recording (.mcap), an image with both views, or a folder.

    The rig is needed for images, and for recordings that do not have theirs.
    """
    place = Path(path)
    suffix = place.suffix.lower()
    if not place.exists():
        raise InputError(f"{path_text(place)}: there is no such file or folder.")
    if suffix == DEPTH_SUFFIX:
        return SavedMaps([place])
    if suffix == RECORDING_SUFFIX:
        return _recording_frames(place, rig)
    if place.is_dir():
        maps = sorted(one for one in place.iterdir() if one.suffix.lower() == DEPTH_SUFFIX)
        if maps:
            return SavedMaps(maps)
    elif suffix not in IMAGE_SUFFIXES:
        raise InputError(
            f"{path_text(place)}: it must be a depth map ({DEPTH_SUFFIX}), a recording "
            f"({RECORDING_SUFFIX}), an image, or a folder of depth maps or images."
        )
    return _image_frames(place, rig)


def _recording_frames(path: Path, rig: Rig | None) -> SavedFrames:
    from d3s.camera.recording import Recording

    recording = Recording(path)
    camera = rig or recording.rig()
    if camera is None:
        recording.close()
        raise _no_rig(path)
    if not recording.frame_count:
        recording.close()
        raise InputError(f"{path_text(path)} has no frames.")
    times_s = recording.times_s

    def frame(position: int) -> Frame:
        return replace(recording.frame(position), time_s=times_s[position])

    return SavedFrames(frame, recording.frame_count, camera, recording.close)


def _image_frames(path: Path, rig: Rig | None) -> SavedFrames:
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

    return SavedFrames(frame, len(frames), rig)


def _no_rig(path: Path) -> InputError:
    return InputError(f"which camera took {path_text(path)}? Give its rig file with --rig.")


class SavedShow:
    """Saved frames as a page shows them; a thread reads and estimates the one that is asked for."""

    is_live = False

    def __init__(
        self,
        saved: Saved,
        *,
        title: str,
        settings: Settings | None = None,
        folder: Path | None = None,
    ) -> None:
        self.title = title
        self.results: Newest[LiveDepth] = Newest()
        self.settings = settings or Settings()
        self._saved = saved
        self._folder = folder
        self._wanted: Slot[int] = Slot()
        self._position = 0
        self._serial = 0
        self._state = "reading"
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="d3s-view", daemon=True)

    @property
    def panels(self) -> Collection[str]:
        """Panels that there are."""
        return self._saved.panels

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
            "snapshot": self._folder is not None,
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

    def save(self, result: LiveDepth) -> dict[str, Any]:
        """Write the depth map that a page shows, filtered, as NPZ; return the name of the file."""
        return write_snapshot(result, self.settings, self._folder)

    def _work(self) -> None:
        while (position := self._wanted.take()) is not None:
            self._serial += 1
            try:
                self.results.put(self._saved.result(position, self.settings, self._serial))
                self._state = "saved"
            except D3SError as error:
                self._state = str(error)
                self.results.notify()


Show = LiveShow | SavedShow
"""Results that change with time, with settings and actions: what a `Feed` serves to pages."""
