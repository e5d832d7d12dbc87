"""Sources of this floor by the words that name them: cameras, the twin, and recordings."""

import re
from collections.abc import Iterable

from d3s.camera.capture.device import Device
from d3s.camera.capture.live_camera import LiveCamera
from d3s.errors import InputError
from d3s.frames import Frame, Source, SourceOptions
from d3s.rig import Rig


def _watched(device: Device, rig: Rig | None, options: SourceOptions) -> LiveCamera:
    """Device as a source, set to the exposure and the gain of the options."""
    camera = LiveCamera(device, rig=rig)
    try:
        camera.configure(exposure_s=options.exposure_s, gain=options.gain)
    except BaseException:
        camera.close()
        raise
    return camera


def _recording(path: str, rig: Rig | None, options: SourceOptions) -> Source:
    from d3s.camera.recording.reader import Recording

    return Recording(path)


def _twin(rest: str, rig: Rig | None, options: SourceOptions) -> Source:
    from d3s.camera.capture import twin

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
        rendered = twin.twin_raw(camera, layout=layout)
    else:
        rendered = twin.twin_pairs(camera, shape=shape)
    frames: Iterable[Frame] = rendered
    if options.progress is not None:  # all of them before the first is shown
        frames = []
        for frame in rendered:
            frames.append(frame)
            options.progress(len(frames), twin.DEFAULT_STEPS)
    device = twin.TwinDevice(frames, rate_hz=options.rate_hz or twin.DEFAULT_RATE_HZ)
    return _watched(device, rig, options)


def _uvc(rest: str, rig: Rig | None, options: SourceOptions) -> Source:
    if not re.fullmatch(r"\d{1,3}", rest):
        raise InputError(f"uvc:{rest} must have the number of the camera, such as uvc:0.")
    from d3s.camera.capture.uvc import UvcDevice

    device = UvcDevice(
        int(rest),
        rig=rig,
        side_by_side=options.side_by_side,
        linear=options.linear,
        rate_hz=options.rate_hz,
    )
    return _watched(device, rig, options)


def _basler(rest: str, rig: Rig | None, options: SourceOptions) -> Source:
    from d3s.camera.capture.basler import BaslerDevice

    return _watched(BaslerDevice(rest, rate_hz=options.rate_hz), rig, options)


def _genicam(rest: str, rig: Rig | None, options: SourceOptions) -> Source:
    from d3s.camera.capture.genicam import GenicamDevice

    return _watched(GenicamDevice(rest, rate_hz=options.rate_hz), rig, options)


SOURCES = {
    "twin": _twin,
    "uvc": _uvc,
    "basler": _basler,
    "genicam": _genicam,
    ".mcap": _recording,
}
"""Functions that open a source, by the word or the suffix that names it: `d3s.registry`."""
