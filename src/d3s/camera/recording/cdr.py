"""ROS 2 messages as bytes (CDR, little-endian): images and texts.

Frames are large and many: an image is written with one copy of its pixels, and read with none.
"""

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.ros import Message

IMAGE = "sensor_msgs/msg/Image"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
STRING = "std_msgs/msg/String"

_HEAD = b"\x00\x01\x00\x00"  # CDR, little-endian
_LITTLE_ENDIAN = 1
_DTYPES = {"mono8": "u1", "8UC1": "u1", "mono16": "u2", "16UC1": "u2", "32FC1": "f4"}


class ImageMessage(NamedTuple):
    """Content of a `sensor_msgs/Image`."""

    pixels: NDArray[Any]  # (rows, cols), or (rows, cols, 3) in the order of the encoding
    encoding: str
    time_ns: int
    frame_id: str


def encode_image(message: Message) -> bytes:
    """Bytes of a `sensor_msgs/Image`."""
    out = _Writer(message["header"])
    out.numbers("I", message["height"], message["width"])
    out.text(message["encoding"])
    out.numbers("B", message["is_bigendian"])
    out.numbers("I", message["step"], len(message["data"]))
    return out.joined(message["data"])


def encode_camera_info(message: Message) -> bytes:
    """Bytes of a `sensor_msgs/CameraInfo`."""
    out = _Writer(message["header"])
    out.numbers("I", message["height"], message["width"])
    out.text(message["distortion_model"])
    out.numbers("I", len(message["d"]))
    for name in "dkrp":
        out.numbers("d", *message[name])
    roi = message["roi"]
    out.numbers("I", message["binning_x"], message["binning_y"])
    out.numbers("I", *(roi[name] for name in ("x_offset", "y_offset", "height", "width")))
    out.numbers("B", roi["do_rectify"])
    return out.joined()


class _Writer:
    """Writer of CDR, which aligns numbers to their size; begins with a `std_msgs/Header`."""

    def __init__(self, header: Message) -> None:
        self._data = bytearray()
        stamp = header["stamp"]
        self.numbers("i", stamp["sec"])
        self.numbers("I", stamp["nanosec"])
        self.text(header["frame_id"])

    def numbers(self, code: str, *values: Any) -> None:
        self._data += b"\0" * (-len(self._data) % struct.calcsize(code))
        self._data += struct.pack(f"<{len(values)}{code}", *values)

    def text(self, text: str) -> None:
        encoded = text.encode() + b"\0"
        self.numbers("I", len(encoded))
        self._data += encoded

    def joined(self, content: bytes = b"") -> bytes:
        return b"".join((_HEAD, self._data, content))


def encode_text(text: str) -> bytes:
    """Bytes of a `std_msgs/String`."""
    encoded = text.encode() + b"\0"
    return _HEAD + struct.pack("<I", len(encoded)) + encoded


def decode_text(data: bytes) -> str:
    """Text of a `std_msgs/String`."""
    return _Bytes(data).text()


def decode_image(data: bytes) -> ImageMessage:
    """Content of a `sensor_msgs/Image`; the pixels are a view into `data`."""
    source = _Bytes(data)
    seconds, nanoseconds = source.numbers("<iI")
    frame_id = source.text()
    rows, cols = source.numbers("<II")
    encoding = source.text()
    (is_big,) = source.numbers("<B")
    step, size = source.numbers("<II")
    channels = 3 if encoding in ("rgb8", "bgr8") else 1
    kind = _DTYPES.get(encoding, "u1" if channels == 3 else "")
    if encoding.startswith("bayer_") and encoding[-1:] in "68":
        kind = "u2" if encoding.endswith("16") else "u1"
    if not kind:
        raise InputError(
            f"an image has the encoding {encoding!r}: it must be mono8, mono16, bayer, rgb8, bgr8 "
            "or 32FC1."
        )
    dtype = np.dtype(("<", ">")[bool(is_big)] + kind)
    if not (rows and cols and cols * channels * dtype.itemsize <= step and size == rows * step):
        raise InputError(f"an image of {rows} x {cols} px has {size} bytes, {step} each row.")
    lines = np.frombuffer(source.rest(size), np.uint8).reshape(rows, step)
    pixels = lines[:, : cols * channels * dtype.itemsize].view(dtype)
    if channels == 3:
        pixels = pixels.reshape(rows, cols, 3)
    return ImageMessage(pixels, encoding, 10**9 * seconds + nanoseconds, frame_id)


class _Bytes:
    """Reader of CDR, which aligns numbers to their size."""

    def __init__(self, data: bytes) -> None:
        if len(data) < len(_HEAD) or data[1] != _LITTLE_ENDIAN:
            raise InputError("a message is not CDR of little-endian numbers.")
        self._data = memoryview(data)[len(_HEAD) :]
        self._place = 0

    def numbers(self, code: str) -> tuple[Any, ...]:
        size = 4 if any(letter in code for letter in "iI") else 1
        self._place += -self._place % size
        try:
            found = struct.unpack_from(code, self._data, self._place)
        except struct.error as error:
            raise InputError("a message is cut.") from error
        self._place += struct.calcsize(code)
        return found

    def rest(self, size: int) -> memoryview:
        if self._place + size > len(self._data):
            raise InputError("a message is cut.")
        found = self._data[self._place : self._place + size]
        self._place += size
        return found

    def text(self) -> str:
        (size,) = self.numbers("<I")
        return bytes(self.rest(size)).rstrip(b"\0").decode("utf-8", "replace")
