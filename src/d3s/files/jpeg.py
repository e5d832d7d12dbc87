"""JPEG: every segment and scan is checked before OpenCV, which fills what is missing with grey."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.jpeg_check import Component, Frame, Segment, check_scans
from d3s.files.raw import Samples, check_size, cut_short

MAGIC = b"\xff\xd8\xff"

_SOI, _EOI, _SOS, _DHT, _DQT, _DRI, _APP0, _APP14 = 0xD8, 0xD9, 0xDA, 0xC4, 0xDB, 0xDD, 0xE0, 0xEE
_FRAMES = {*range(0xC0, 0xD0)} - {_DHT, 0xC8, 0xCC}
_JFIF = b"JFIF\0\1\1\0\0\1\0\1\0\0"


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a JPEG file: 8 bit, grey or colour."""
    segments = _segments(raw)
    frame = _frame(segments)
    check_size(frame.width, frame.height, max_pixels)
    check_scans(frame, segments)
    values = _decode(_essential(segments))
    if values is None or values.shape[:2] != (frame.height, frame.width):
        raise cut_short("cannot be decoded")
    return Samples(values=values if values.ndim == 2 else values[:, :, ::-1], full_scale=255)


def _segments(raw: bytes) -> list[Segment]:
    """All segments from the beginning to the end-of-image marker, which must be there."""
    segments = []
    at = 2
    while at + 4 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # a filling byte
            at += 1
            continue
        end = at + 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
        if end < at + 4 or end > len(raw):
            break
        start = end
        if marker == _SOS:
            end = _end_of_scan(raw, end)
        segments.append(Segment(marker=marker, body=raw[at + 4 : start], pixels=raw[start:end]))
        at = end
        if raw[at : at + 2] == bytes((0xFF, _EOI)):
            return segments
    raise cut_short(f"ends, or is no longer a JPEG, at byte {at}")


def _end_of_scan(raw: bytes, at: int) -> int:
    """Where the packed pixels of a scan end: at the next marker that is no restart."""
    while True:
        at = raw.find(b"\xff", at)
        if at < 0 or at + 1 >= len(raw):
            return len(raw)
        following = raw[at + 1]
        if following == 0 or 0xD0 <= following <= 0xD7:
            at += 2
        elif following == 0xFF:
            at += 1
        else:
            return at


def _frame(segments: list[Segment]) -> Frame:
    frames = [segment for segment in segments if segment.marker in _FRAMES]
    if len(frames) != 1:
        raise cut_short(f"has {len(frames)} JPEG frame headers")
    body, marker = frames[0].body, frames[0].marker
    if len(body) < 6 or len(body) != 6 + 3 * body[5]:
        raise cut_short("has no proper JPEG frame header")
    if marker not in (0xC0, 0xC1, 0xC2) or body[0] != 8 or body[5] not in (1, 3):
        raise InputError(
            "is a JPEG of an uncommon kind (arithmetic, lossless, 12-bit or CMYK), which is not "
            "read. Save it as an ordinary JPEG, or as PNG."
        )
    sampled = {body[i]: (body[i + 1] >> 4, body[i + 1] & 15) for i in range(6, len(body), 3)}
    if len(sampled) != body[5] or not all(1 <= n <= 4 for pair in sampled.values() for n in pair):
        raise cut_short("has no proper JPEG frame header")
    return Frame(
        width=int.from_bytes(body[3:5], "big"),
        height=int.from_bytes(body[1:3], "big"),
        progressive=marker == 0xC2,
        components={
            name: Component(across=across, down=down) for name, (across, down) in sampled.items()
        },
    )


def _essential(segments: list[Segment]) -> bytes:
    """The same file without what does not concern the samples: previews, profiles, notes.

    That libjpeg prints no warnings about them, and that nobody turns the image.
    """
    kept = [kept for segment in segments if (kept := _kept(segment)) is not None]
    parts = [
        bytes((0xFF, segment.marker))
        + (len(segment.body) + 2).to_bytes(2, "big")
        + segment.body
        + segment.pixels
        for segment in kept
    ]
    return b"".join((bytes((0xFF, _SOI)), *parts, bytes((0xFF, _EOI))))


def _kept(segment: Segment) -> Segment | None:
    if segment.marker in {*_FRAMES, _SOS, _DHT, _DQT, _DRI}:
        return segment
    # These two say how the colours are meant.
    if segment.marker == _APP0 and segment.body.startswith(b"JFIF\0"):
        return Segment(marker=_APP0, body=_JFIF)
    adobe = segment.marker == _APP14 and segment.body.startswith(b"Adobe")
    return segment if adobe and segment.body[11:12] in (b"\0", b"\1") else None


def _decode(file: bytes) -> NDArray[Any] | None:
    import cv2

    try:
        return cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        return None
