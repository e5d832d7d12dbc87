"""Sources of raw frames for the alignment: those of `capture`, and files of raw frames."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from d3s.errors import D3SError, InputError
from d3s.files import IMAGE_SUFFIXES, list_images
from d3s.files.light import read_light
from d3s.frames import Frame, Refused, Source, SourceOptions, open_source
from d3s.rig import Rig


class RawFiles:
    """Files of raw frames, each with both halves, as a source.

    `capture.FileSource` yields pairs, and the camera that is being built has no calibration to
    split its frames.

    Parameters
    ----------
    paths
        Files in their order.
    linear
        Whether integers are proportional to intensity; None: grey ones are.
    """

    def __init__(self, paths: list[Path], *, linear: bool | None = None) -> None:
        self._paths = paths
        self._linear = linear
        self._is_closed = False

    @property
    def frame_count(self) -> int:
        """Number of files."""
        return len(self._paths)

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Yield the frames of all files."""
        for number, path in enumerate(self._paths):
            if self._is_closed:
                return
            try:
                image = read_light(path, linear=self._linear).grey
            except D3SError as error:
                yield Refused(path.name, str(error))
                continue
            yield Frame(number=number, name=path.name, raw=image)

    def close(self) -> None:
        """End the iteration."""
        self._is_closed = True

    def __enter__(self) -> Self:
        """Return the source itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the source."""
        self.close()


def open_raw(text: str, rig: Rig, options: SourceOptions | None = None) -> Source:
    """Source of raw frames that a word of the command line names.

    Parameters
    ----------
    text
        A file or folder of raw frames, or any source of `d3s.frames.open_source`. `twin` stands for
        `twin:raw`.
    rig
        The camera.
    options
        Options of the source.

    Raises
    ------
    D3SError
        When there is no such file or camera.
    """
    path = Path(text)
    linear = None if options is None else options.linear
    if path.is_dir():
        return RawFiles(list_images(path), linear=linear)
    if path.is_file() and path.suffix.lower() in IMAGE_SUFFIXES:
        return RawFiles([path], linear=linear)
    if not path.exists() and text.startswith("twin") and not text.startswith("twin:raw"):
        text = "twin:raw" + text.removeprefix("twin")
    return open_source(text, rig, options)


def raw_of(frame: Frame) -> Frame:
    """Return the frame itself, if it is a raw one.

    Raises
    ------
    InputError
        If it is a pair of views.
    """
    if frame.views is not None:
        raise InputError(
            "this source gives rectified pairs, and an alignment needs raw frames with both halves "
            "of the sensor. Name a camera, or files of raw frames."
        )
    return frame
