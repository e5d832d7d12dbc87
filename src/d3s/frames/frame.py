"""One frame, and the protocols of everything that yields frames."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.rig import Rig
from d3s.types import Image

Counts = NDArray[np.uint8 | np.uint16]
"""Image of a sensor as it sends it, (rows, cols)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """One capture: a rectified pair, or a raw frame that holds both views, as floats or as counts.

    Floats are float32, (rows, columns), linear in intensity with full scale 1. Counts are the
    integers of the sensor, (rows, columns), linear too, with their full scale beside them.
    """

    number: int  # position in the source, from 0; a frame that was lost leaves a gap
    name: str = ""  # for results and messages; empty if the source has none
    views: tuple[Image, Image] | None = None  # left and right, rectified, of one shape
    raw: Image | None = None  # image of the sensor, which a calibrated rig splits
    counts: Counts | None = None  # the same as integers
    full_scale: int = 0  # largest value that counts can have, such as 4095
    time_s: float | None = None  # of the arrival, by `time.monotonic`; of a recording, as recorded
    camera_time_s: float | None = None  # of the exposure, on the clock of the camera
    lost_before: int = 0  # frames that were lost between the frame before and this one
    whole: bool = True  # False: parts of the image did not arrive, and no pixel is to be used
    remarks: tuple[str, ...] = ()  # changes to the images that a person might not expect
    warnings: tuple[str, ...] = ()  # what is likely wrong with the images
    colour: NDArray[np.uint8] | None = None  # of the left view, (rows, columns, 3), for screens

    def __post_init__(self) -> None:
        """Check that there is one capture."""
        if [self.views is None, self.raw is None, self.counts is None].count(False) != 1:
            raise InputError("a frame has views, raw or counts, one of the three.")
        if self.counts is None:
            return
        if self.counts.ndim != 2 or self.counts.dtype.newbyteorder("=") not in (
            np.dtype(np.uint8),
            np.dtype(np.uint16),
        ):
            raise InputError(
                f"counts has dtype {self.counts.dtype} and shape {self.counts.shape}: it must be "
                "uint8 or uint16, (rows, columns)."
            )
        largest = np.iinfo(self.counts.dtype).max
        if not 1 <= self.full_scale <= largest:
            raise InputError(
                f"full_scale={self.full_scale} must be 1 to {largest}: the largest value that the "
                f"sensor can give in {self.counts.dtype}, such as 4095 for 12 bits."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the raw frame, or of each view."""
        images = (self.counts, self.raw, *(self.views or ()))
        rows, cols = next(image.shape for image in images if image is not None)
        return rows, cols

    def pair(self, rig: Rig) -> tuple[Image, Image]:
        """Left and right view; of a raw frame, which must be whole, as the rig splits it."""
        if not self.whole:
            raise InputError(
                f"frame {self.number} is not whole: part of its image did not arrive. Use another; "
                "if many are like it, check the cable and lower the frame rate."
            )
        if self.views is not None:
            return self.views
        if self.counts is None:
            return rig.split(self.raw)
        return rig.split(self.counts, full_scale=self.full_scale)

    def light(self) -> Image:
        """Raw frame as float32 with full scale 1."""
        if self.raw is not None:
            return self.raw
        if self.counts is None:
            raise InputError(f"frame {self.number} is a rectified pair, and no raw frame.")
        return np.divide(self.counts, np.float32(self.full_scale), dtype=np.float32)

    def levels(self) -> NDArray[np.uint16]:
        """Raw frame with the full scale of 16 bits, as files have it."""
        if self.counts is not None and self.full_scale == np.iinfo(np.uint16).max:
            return self.counts.astype(np.uint16, copy=False)
        scaled = np.clip(self.light(), 0, 1) * np.float32(np.iinfo(np.uint16).max)
        return np.asarray(np.rint(np.nan_to_num(scaled)), dtype=np.uint16)


class Refused(NamedTuple):
    """A frame or a file that could not be used, and the reason."""

    name: str
    reason: str


class Source(Protocol):
    """Something that yields frames: files, a recording, a camera, the simulator; or a base of it.

    It is iterated once, and closed afterwards: `with source: for outcome in source: ...`. A frame
    that cannot be read is yielded as `Refused`; an exception ends the iteration, and means that
    the source as a whole has failed.
    """

    @property
    def frame_count(self) -> int | None:
        """Number of outcomes in all; None if that is not known, as of a camera."""

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Frames in the order of their numbers."""

    def close(self) -> None:
        """Release what the source holds open: nothing, if it does not say so. Twice is fine."""
        return None  # without a body it would be abstract

    def __enter__(self) -> Self:
        """Return the source itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the source."""
        self.close()


def halves(image: Image, name: str) -> tuple[Image, Image]:
    """Left and right half of an image with both views; `name` begins the words of an error."""
    cols = image.shape[1]
    if cols % 2:
        raise InputError(
            f"{name} has {size_words(image)}: two views side by side have an even number of "
            "columns. Cut it to one, or give each view as a file."
        )
    return np.ascontiguousarray(image[:, : cols // 2]), np.ascontiguousarray(image[:, cols // 2 :])


def size_words(image: Image) -> str:
    """Size of an image in words."""
    return f"{image.shape[0]} x {image.shape[1]} px (rows x columns)"


class Setting(NamedTuple):
    """Value of a setting of a camera, and the range it can have; None if that is not known."""

    value: float
    range: tuple[float, float] | None = None


class CameraSettings(NamedTuple):
    """Settings of a camera; None where it has none, or does not tell."""

    exposure_s: Setting | None = None
    gain: Setting | None = None  # in the unit of the camera, most often dB
