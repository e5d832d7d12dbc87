"""`open_source`: a source by a word of the command line."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from d3s.capture.device import Device
from d3s.capture.files import FileSource
from d3s.capture.frames import Source
from d3s.capture.live_camera import LiveCamera
from d3s.capture.pairing import find_frames
from d3s.errors import InputError
from d3s.files import IMAGE_SUFFIXES
from d3s.files.raw import path_text
from d3s.rig import Rig
from d3s.types import Progress

VIDEO_SUFFIXES = (".avi", ".mkv", ".mp4", ".mov", ".webm")
RECORDING_SUFFIX = ".mcap"
WORDS = (
    "A source is a file or folder of images, a video, a recording (.mcap), uvc:0 for a camera on "
    "USB, basler, genicam, or either with :SERIAL, twin for a simulated scene, or fake:SCRIPT.toml."
)


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options of a source; what does not concern its kind is not looked at."""

    side_by_side: bool = False  # each image has both views, left and right half
    linear: bool | None = None  # whether integers are proportional to light; None as `load_pair`
    bayer: str | None = None  # order of the colours of raw files
    rate_hz: float | None = None  # of the twin, or asked of a camera
    exposure_s: float | None = None  # of a camera
    gain: float | None = None
    keep_raw: bool = False  # leave raw files as they are, though the rig could split them
    progress: Progress | None = None  # of rendering the twin


def open_source(text: str, rig: Rig | None = None, options: SourceOptions | None = None) -> Source:
    """Source that a word of the command line names.

    Parameters
    ----------
    text
        Path of a file or folder of images, of a video, or of a recording; `uvc:0`, `basler`,
        `basler:SERIAL`, `genicam`, `genicam:SERIAL`; `twin`, `twin:ROWSxCOLS`, `twin:raw`,
        `twin:raw:ROWSxCOLS`; `fake:SCRIPT.toml`.
    rig
        The camera: its calibration splits raw frames, and says their size.
    options
        Options of the source.

    Raises
    ------
    D3SError
        When there is no such file or camera, or the word is not known.
    """
    options = options or SourceOptions()
    kind, _, rest = text.partition(":")
    if kind in _CAMERAS and not Path(text).exists():
        camera = LiveCamera(_CAMERAS[kind](rest, rig, options), rig=rig)
        try:
            camera.configure(exposure_s=options.exposure_s, gain=options.gain)
        except BaseException:
            camera.close()
            raise
        return camera
    return _open_path(Path(text), rig, options)


def _open_path(path: Path, rig: Rig | None, options: SourceOptions) -> Source:
    if not path.exists():
        raise InputError(f"{path_text(path)}: there is no such file. {WORDS}")
    suffix = path.suffix.lower()
    if suffix == RECORDING_SUFFIX:
        reader: Any = import_module("d3s.recording.reader")
        source: Source = reader.Recording(path)
        return source
    if suffix in VIDEO_SUFFIXES:
        video: Any = import_module("d3s.capture.video")
        source = video.VideoSource(
            path, rig=rig, side_by_side=options.side_by_side, linear=options.linear
        )
        return source
    if path.is_file() and suffix not in IMAGE_SUFFIXES:
        raise InputError(f"{path_text(path)}: no source has files of this kind. {WORDS}")
    can_split = rig is not None and (rig.calibration is not None or rig.stereo is not None)
    found = find_frames([path], one_file_each=options.side_by_side or not _has_sides(path))
    return FileSource(
        found.frames,
        rig=rig if can_split and not options.keep_raw else None,
        side_by_side=options.side_by_side,
        linear=options.linear,
        bayer=options.bayer,
    )


def _has_sides(path: Path) -> bool:
    """Whether a folder has images whose names say left or right."""
    return path.is_dir() and any(
        re.search(r"(^|[-_. ])(left|right)([-_. ]|$)", one.stem, re.IGNORECASE)
        for one in path.iterdir()
        if one.suffix.lower() in IMAGE_SUFFIXES
    )


def _twin(rest: str, rig: Rig | None, options: SourceOptions) -> Device:
    from d3s.capture import twin

    found = re.fullmatch(r"(?P<raw>raw)?:?(?:(?P<rows>\d{2,5})x(?P<cols>\d{2,5}))?", rest)
    if found is None:
        raise InputError(
            f"twin:{rest} is not known: twin, twin:ROWSxCOLS such as twin:300x500, twin:raw or "
            "twin:raw:ROWSxCOLS."
        )
    camera = rig or Rig.paper_prototype()
    shape = (int(found["rows"]), int(found["cols"])) if found["rows"] else None
    if found["raw"]:
        layout = twin.scaled_layout(shape or (2160, 3840))
        frames = twin.twin_raw(camera, layout=layout, progress=options.progress)
    else:
        frames = twin.twin_pairs(camera, shape=shape, progress=options.progress)
    return twin.TwinDevice(frames, rate_hz=options.rate_hz or twin.DEFAULT_RATE_HZ)


def _fake(rest: str, rig: Rig | None, options: SourceOptions) -> Device:
    from d3s.capture.fake import FakeDevice, FakeScript

    script = FakeScript.load(rest)
    if options.rate_hz is not None:
        script = script.replace(rate_hz=options.rate_hz)
    return FakeDevice(script)


def _uvc(rest: str, rig: Rig | None, options: SourceOptions) -> Device:
    if not re.fullmatch(r"\d{1,3}", rest):
        raise InputError(f"uvc:{rest} must have the number of the camera, such as uvc:0.")
    video: Any = import_module("d3s.capture.uvc")
    device: Device = video.UvcDevice(
        int(rest),
        rig=rig,
        side_by_side=options.side_by_side,
        linear=options.linear,
        rate_hz=options.rate_hz,
    )
    return device


def _basler(rest: str, rig: Rig | None, options: SourceOptions) -> Device:
    basler: Any = import_module("d3s.capture.basler")
    device: Device = basler.BaslerDevice(rest, rate_hz=options.rate_hz)
    return device


def _genicam(rest: str, rig: Rig | None, options: SourceOptions) -> Device:
    genicam: Any = import_module("d3s.capture.genicam")
    device: Device = genicam.GenicamDevice(rest, rate_hz=options.rate_hz)
    return device


_CAMERAS: dict[str, Callable[[str, Rig | None, SourceOptions], Device]] = {
    "twin": _twin,
    "fake": _fake,
    "uvc": _uvc,
    "basler": _basler,
    "genicam": _genicam,
}
