"""EXIF orientation: how a camera was held, and the image turned upright.

Orientations are the values 1 to 8 of tag 274 (TIFF 6.0 and EXIF 2.32). Pillow's own reader warns
of damaged EXIF blocks through `warnings`, which is global; this one is silent.
"""

import struct
from dataclasses import replace

import numpy as np

from d3s.files.raw import Samples

TAG = 274
UPRIGHT = 1

WORDS = {
    2: "mirrored left to right",
    3: "turned by 180 degrees",
    4: "mirrored top to bottom",
    5: "mirrored and turned by 90 degrees",
    6: "turned by 90 degrees clockwise",
    7: "mirrored and turned by 90 degrees",
    8: "turned by 90 degrees counterclockwise",
}
"""What `upright` does, by orientation."""

_SHORT = 3  # the TIFF type of the tag


def orientation_in(exif: bytes) -> int:
    """Orientation that an EXIF block states; 1 (upright) if it states none that can be."""
    block = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None:
        return UPRIGHT
    try:
        start = struct.unpack_from(f"{order}I", block, 4)[0]
        count = struct.unpack_from(f"{order}H", block, start)[0]
        for entry in range(count):
            tag, kind, number, value = struct.unpack_from(
                f"{order}HHIH", block, start + 2 + 12 * entry
            )
            if (tag, kind, number) == (TAG, _SHORT, 1):
                return int(value) if value in WORDS else UPRIGHT
    except struct.error:  # the block ends early: a note, not the image
        pass
    return UPRIGHT


def upright(samples: Samples) -> Samples:
    """Samples turned by their orientation, so that the image stands as the camera was held."""
    values = samples.values
    if samples.orientation >= 5:
        values = values.swapaxes(0, 1)
    if samples.orientation in (3, 4, 7, 8):
        values = np.flip(values, axis=0)
    if samples.orientation in (2, 3, 6, 7):
        values = np.flip(values, axis=1)
    return replace(samples, values=values)
