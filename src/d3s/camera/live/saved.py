"""`SavedShow`: saved depth maps, a recording or a folder on a page, with a time line."""

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self

from d3s.camera.live.live import write_snapshot
from d3s.camera.live.pictures import PANELS
from d3s.camera.live.results import Result, compute, measure_light
from d3s.camera.live.settings import Settings
from d3s.camera.live.slot import Newest, Slot
from d3s.errors import D3SError, InputError
from d3s.estimate import DepthMap
from d3s.files import IMAGE_SUFFIXES
from d3s.files.raw import path_text
from d3s.frames import FileSource, Frame, Refused, find_frames
from d3s.frames.sources import RECORDING_SUFFIX
from d3s.rig import Rig

DEPTH_SUFFIX = ".npz"
_CLOSE_S = 5.0


class Reel(Protocol):
    """Saved frames by their position."""

    @property
    def count(self) -> int:
        """Number of frames."""

    @property
    def panels(self) -> Collection[str]:
        """Panels that there are."""

    @property
    def is_estimated(self) -> bool:
        """Whether depth is estimated when a frame is shown, so that options matter."""

    def result(self, position: int, settings: Settings, serial: int) -> Result:
        """Result of a frame.

        Parameters
        ----------
        position
            Number of the frame, from 0.
        settings
            Method and options, if it is estimated.
        serial
            Number of the result.
        """

    def close(self) -> None:
        """Release files."""


class DepthMapReel:
    """Depth maps that were saved as NPZ.

    Parameters
    ----------
    paths
        Files, in the order of the time line.
    """

    panels = tuple(name for name in PANELS if name != "right")
    is_estimated = False

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self._paths)

    def result(self, position: int, settings: Settings, serial: int) -> Result:
        """Read a depth map; settings are not needed.

        Parameters
        ----------
        position
            Number of the file, from 0.
        settings
            Of the estimate, which was made before.
        serial
            Number of the result.
        """
        del settings
        path = self._paths[position]
        depth_map = DepthMap.load(path)
        left = depth_map.intensity
        light = None if left is None else measure_light(Frame(number=0, views=(left, left)))
        return Result(
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


class FrameReel:
    """Saved frames of a camera, whose depth is estimated when they are shown.

    Parameters
    ----------
    frame
        Gives the frame of a position, or the reason why it cannot be read.
    count
        Number of frames.
    rig
        Camera that took them.
    close
        Called at the end.
    """

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

    def result(self, position: int, settings: Settings, serial: int) -> Result:
        """Read a frame and estimate its depth.

        Parameters
        ----------
        position
            Number of the frame, from 0.
        settings
            Method and options.
        serial
            Number of the result.

        Raises
        ------
        InputError
            If the frame cannot be read, or does not fit the rig.
        """
        frame = self._frame(position)
        if isinstance(frame, Refused):
            raise InputError(f"{frame.name}: {frame.reason}")
        found = compute(frame, self._rig, settings, serial=serial, grabbed_s=time.monotonic())
        return replace(found, position=position)


def open_reel(path: str | os.PathLike[str], rig: Rig | None = None) -> Reel:
    """Frames of a file or folder.

    Parameters
    ----------
    path
        Depth map (.npz) of `d3s depth`; a recording (.mcap); an image that holds both views; or a
        folder of depth maps or of images.
    rig
        Camera, for images and for recordings that do not have theirs.

    Raises
    ------
    InputError
        If there is nothing to show, or the rig is missing.
    """
    place = Path(path)
    suffix = place.suffix.lower()
    if not place.exists():
        raise InputError(f"{path_text(place)}: there is no such file or folder.")
    if suffix == DEPTH_SUFFIX:
        return DepthMapReel([place])
    if suffix == RECORDING_SUFFIX:
        return _recording_reel(place, rig)
    if place.is_dir():
        maps = sorted(one for one in place.iterdir() if one.suffix.lower() == DEPTH_SUFFIX)
        if maps:
            return DepthMapReel(maps)
    elif suffix not in IMAGE_SUFFIXES:
        raise InputError(
            f"{path_text(place)}: it must be a depth map ({DEPTH_SUFFIX}), a recording "
            f"({RECORDING_SUFFIX}), an image, or a folder of depth maps or images."
        )
    return _image_reel(place, rig)


def _recording_reel(path: Path, rig: Rig | None) -> FrameReel:
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

    return FrameReel(frame, recording.frame_count, camera, recording.close)


def _image_reel(path: Path, rig: Rig | None) -> FrameReel:
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

    return FrameReel(frame, len(frames), rig)


def _no_rig(path: Path) -> InputError:
    return InputError(f"which camera took {path_text(path)}? Give its rig file with --rig.")


class SavedShow:
    """Saved frames as a page shows them; a thread reads and estimates the one that is asked for.

    Parameters
    ----------
    reel
        Frames.
    title
        Name for the top of the page.
    settings
        Method, options and filter at the start.
    folder
        Where snapshots go; None if there can be none.
    has_points
        Whether the server has a page of 3D points.
    """

    is_live = False

    def __init__(
        self,
        reel: Reel,
        *,
        title: str,
        settings: Settings | None = None,
        folder: Path | None = None,
        has_points: bool = False,
    ) -> None:
        self.title = title
        self.results: Newest[Result] = Newest()
        self.settings = settings or Settings()
        self.has_points = has_points
        self._reel = reel
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
        return self._reel.panels

    def __enter__(self) -> Self:
        """Start the thread, with the first frame."""
        self._thread.start()
        self._wanted.put(0)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the thread, and close the files."""
        self._wanted.close()
        self._thread.join(_CLOSE_S)
        self._reel.close()

    def abilities(self) -> dict[str, Any]:
        """Controls that the page offers."""
        return {
            "record": False,
            "snapshot": self._folder is not None,
            "positions": self._reel.count,
            "points": self.has_points,
            "estimate": self._reel.is_estimated,
            "camera": {},
        }

    def status(self) -> dict[str, Any]:
        """State in words."""
        return {"state": self._state, "stale": False, "recording": False}

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings; the frame is estimated again if the estimate is to change.

        Raises
        ------
        InputError
            If a name is unknown, or a value is out of its range.
        """
        with self._lock:
            before, self.settings = self.settings, self.settings.changed(changes)
            after = self.settings
        if (before.method, before.options) != (after.method, after.options):
            self._wanted.put(self._position)
        self.results.notify()

    def act(self, action: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Go to a position: the action "seek", with the value `position`.

        Raises
        ------
        InputError
            If it is another action, or there is no such position.
        """
        position = values.get("position")
        if action != "seek":
            raise InputError(f"{action} is for live cameras.")
        if type(position) is not int or not 0 <= position < self._reel.count:
            raise InputError(f"position={position!r} must be 0 to {self._reel.count - 1}.")
        self._position = position
        self._wanted.put(position)
        return {}

    def save(self, result: Result) -> dict[str, Any]:
        """Write the depth map that a page shows, filtered, as NPZ; return the name of the file."""
        return write_snapshot(result, self.settings, self._folder)

    def _work(self) -> None:
        while (position := self._wanted.take()) is not None:
            self._serial += 1
            try:
                self.results.put(self._reel.result(position, self.settings, self._serial))
                self._state = "saved"
            except D3SError as error:
                self._state = str(error)
                self.results.notify()
