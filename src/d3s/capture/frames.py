"""One frame, and the protocol of everything that yields frames."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.types import Image


class Splitter(Protocol):
    """Anything that makes rectified pairs of raw frames, or of raw pictures: a `Rig`."""

    def split(self, raw: Any, /) -> tuple[Image, Image]:
        """Left and right view."""

    def rectify(self, left: Any, right: Any, /) -> tuple[Image, Image]:
        """Left and right view, of the pictures of both cameras; as they are if rectified."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """One capture: a rectified pair, or a raw frame that holds both views.

    Images are float32, (rows, columns), linear in intensity with full scale 1.

    Raises
    ------
    InputError
        When it has neither a pair nor a raw frame, or both.
    """

    number: int  # position in the source, from 0; a frame that was lost leaves a gap
    name: str = ""  # for results and messages; empty if the source has none
    views: tuple[Image, Image] | None = None  # left and right, rectified, of one shape
    raw: Image | None = None  # image of the sensor, which a calibrated rig splits
    time_s: float | None = None  # of the exposure, on a monotonic clock of the source
    remarks: tuple[str, ...] = ()  # changes to the images that a person might not expect
    warnings: tuple[str, ...] = ()  # what is likely wrong with the images
    colour: NDArray[np.uint8] | None = None  # of the left view, (rows, columns, 3), for screens

    def __post_init__(self) -> None:
        """Check that there is one capture."""
        if (self.views is None) == (self.raw is None):
            raise InputError("a frame has views or raw, one of the two.")

    def pair(self, rig: Splitter) -> tuple[Image, Image]:
        """Left and right view; of a raw frame, as the rig splits it.

        Raises
        ------
        InputError
            When the rig is not calibrated, or for frames of another size.
        """
        if self.views is not None:
            return self.views
        return rig.split(self.raw)


class Refused(NamedTuple):
    """A frame or a file that could not be used, and the reason."""

    name: str
    reason: str


class Source(Protocol):
    """Something that yields frames: files, a recording, a camera, the simulator.

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
        """Release what the source holds open. Closing twice is fine."""

    def __enter__(self) -> Self:
        """Return the source itself."""

    def __exit__(self, *error: object) -> None:
        """Close the source."""
