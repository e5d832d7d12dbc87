"""Frames of video files, and of cameras that OpenCV reads: both views side by side, or raw."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.images import light_of, samples_of
from d3s.files.raw import path_text
from d3s.frames.frame import Frame, Refused, Source, halves
from d3s.rig import Rig

_GREY_FORMATS = (b"Y800", b"Y1\x00\x10")  # as ffmpeg calls 8 and 16 bits of grey
_LOSSLESS = ("FFV1", "FFVH", "HFYU", "HUFF", "MAGY", "ULRG", "ULY0", "ULY2", "Y800", "DIB ", "RAW ")


class ImageMaker:
    """Frames of images as OpenCV gives them.

    Grey images are proportional to the light, and of colour images the curve of sRGB is undone, as
    `load_pair` does. A stereo camera that is to be rectified gets whole images, which it splits;
    `side_by_side` says that each image has both rectified views, left and right half.
    """

    def __init__(self, rig: Rig | None, side_by_side: bool, linear: bool | None) -> None:
        splits = rig is not None and rig.stereo is not None and rig.stereo.raw_cameras is not None
        self._into_views = side_by_side and not splits
        self._linear = linear

    def frame(self, image: NDArray[Any], **known: Any) -> Frame:
        """Frame of an image: grey, or blue, green and red."""
        if image.ndim == 3 and all(np.array_equal(image[..., 0], image[..., i]) for i in (1, 2)):
            image = np.ascontiguousarray(image[..., 0])
        is_grey = image.ndim == 2
        if is_grey and self._linear is not False and not self._into_views:
            return Frame(counts=image, full_scale=int(np.iinfo(image.dtype).max), **known)
        rgb = image if is_grey else np.ascontiguousarray(image[..., ::-1])
        found = light_of(samples_of(rgb), linear=self._linear)
        remarks = (*known.pop("remarks", ()), *([f"It is {found.words}"] if found.words else []))
        if self._into_views:
            return Frame(views=halves(found.grey, "an image"), remarks=remarks, **known)
        return Frame(raw=found.grey, remarks=remarks, **known)


class VideoSource(Source):
    """Frames of a video file: a `Source`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rig: Rig | None = None,
        side_by_side: bool = False,
        linear: bool | None = None,
    ) -> None:
        import cv2

        self.path = Path(os.fsdecode(path))
        self._maker = ImageMaker(rig, side_by_side, linear)
        self._capture = cv2.VideoCapture(str(self.path), cv2.CAP_FFMPEG)
        if not self._capture.isOpened():
            raise InputError(
                f"{path_text(path)}: cannot be read as a video. Is it whole, and of a usual codec?"
            )
        if _letters(self._capture.get(cv2.CAP_PROP_CODEC_PIXEL_FORMAT)) in _GREY_FORMATS:
            self._capture.set(cv2.CAP_PROP_CONVERT_RGB, 0)  # else 16 bits become 8
        self._codec = _letters(self._capture.get(cv2.CAP_PROP_FOURCC)).decode("latin-1")

    @property
    def frame_count(self) -> int | None:
        """Number of frames, as the file says it; None if it does not."""
        import cv2

        count = int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT))
        return count if count > 0 else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remark on a codec that loses detail; empty for others."""
        if self._codec.upper() in _LOSSLESS or not self._codec.strip("\0 "):
            return ()
        return (
            f"{path_text(self.path)} is compressed with loss ({self._codec}): its grey levels are "
            "not those of the camera, and sigma is too small. Record without loss: d3s record, or "
            "the codec FFV1.",
        )

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Frames in their order."""
        import cv2

        number = 0
        while True:
            is_there, image = self._capture.read()
            if not is_there:
                return
            time_s = self._capture.get(cv2.CAP_PROP_POS_MSEC) / 1e3
            name = f"{number:06d}"
            outcome: Frame | Refused
            try:
                outcome = self._maker.frame(
                    image, number=number, name=name, time_s=time_s, remarks=self.remarks
                )
            except InputError as error:
                outcome = Refused(f"{path_text(self.path)} frame {number}", str(error))
            yield outcome
            number += 1

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        self._capture.release()


def _letters(code: float) -> bytes:
    """Four letters of a code of OpenCV."""
    return (int(code) & 0xFFFFFFFF).to_bytes(4, "little")
