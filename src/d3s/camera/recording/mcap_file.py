"""MCAP files as they are written: topics, attachments, and chunks that survive a crash.

Every call of `flush` ends a chunk and hands it to the operating system in one piece. What was
flushed is in the file even if the process is killed at once; a piece that does not fit on the disk
is cut off again. The library is `foxglove-sdk`: it compresses a frame in a fifth of the time of
the writer of `mcap`.
"""

import importlib.util
import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from d3s.camera.recording import topics
from d3s.errors import MissingPackageError, OutputError
from d3s.files import ros

_LEVEL = 1  # of zstd: level 3 takes four times as long for 3 % less
_INSTALL = "recordings need the packages foxglove-sdk, mcap and rosbags"


def check_installed() -> None:
    """Raise an `InputError` if the packages that write recordings are not installed."""
    for name in ("foxglove", "mcap", "rosbags"):
        if importlib.util.find_spec(name) is None:
            raise MissingPackageError(_INSTALL, "record")


class _Output(io.RawIOBase):
    """File that remembers the first error, which the library only logs."""

    def __init__(self, path: Path, overwrite: bool) -> None:
        super().__init__()
        self._file = path.open("wb" if overwrite else "xb", buffering=0)
        self.error: OSError | None = None
        self.good = 0  # bytes that were flushed without an error

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.error is not None:
            return len(data)
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
        except OSError as error:
            self.error = error
        return len(data)

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    def mark_good(self) -> None:
        """Note that everything until here is whole."""
        self.good = self._file.tell()

    def cut(self) -> None:
        """Cut off what was written in part."""
        with suppress(OSError):
            self._file.truncate(self.good)

    def close(self) -> None:
        self._file.close()
        super().close()


class Channels:
    """Topics with ROS 2 messages, which the SDK of Foxglove hands to a file or to its application.

    Types of messages are those of `topics.SCHEMAS`, unless they are given.
    """

    def __init__(self) -> None:
        check_installed()
        import foxglove

        self.context: Any = foxglove.Context()
        self._channels: dict[str, Any] = {}

    def add_topic(self, topic: str, schema: str, definition: bytes) -> None:
        """Declare a topic."""
        import foxglove

        self._channels[topic] = foxglove.Channel(
            topic,
            schema=foxglove.Schema(name=schema, encoding="ros2msg", data=definition),
            message_encoding="cdr",
            context=self.context,
        )

    def declare(self, topic: str) -> None:
        """Declare a topic of `topics.SCHEMAS`, unless it is."""
        if topic not in self._channels:
            schema = topics.SCHEMAS[topic]
            self.add_topic(topic, schema, ros.definition(schema))

    @property
    def is_watched(self) -> bool:
        """Whether anybody takes messages."""
        return any(one.has_sinks() for one in self._channels.values())

    def write(self, topic: str, data: bytes, time_ns: int) -> None:
        """Write a message."""
        self.declare(topic)
        self._channels[topic].log(data, log_time=time_ns)


class McapFile(Channels):
    """MCAP file with ROS 2 messages; `flush` ends a chunk."""

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        super().__init__()
        import foxglove
        from foxglove.mcap import MCAPWriteOptions

        self.path = Path(os.fsdecode(path))
        try:
            self._output = _Output(self.path, overwrite)
        except FileExistsError as error:
            raise OutputError(
                f"{path} exists. Choose another name, or allow it to be replaced: --force on the "
                "command line, overwrite=True in Python."
            ) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"{path} cannot be written: {reason}. Choose another place.") from (
                error
            )
        options = MCAPWriteOptions(
            profile="ros2",
            chunk_size=None,  # a chunk ends where it is flushed
            compression_level=_LEVEL,
            compression_threads=0,
            disable_seeking=True,  # a chunk is written in one piece, with its length before it
        )
        self._writer: Any = foxglove.open_mcap(
            self._output, context=self.context, writer_options=options
        )

    def attach(self, name: str, media_type: str, data: bytes, time_ns: int = 0) -> None:
        """Attach a file, such as the rig."""
        self._writer.attach(
            log_time=time_ns, create_time=time_ns, name=name, media_type=media_type, data=data
        )

    def note(self, name: str, values: dict[str, str]) -> None:
        """Write named texts."""
        self._writer.write_metadata(name, values)

    def flush(self) -> None:
        """End the chunk, and hand it to the operating system."""
        self._writer.flush()
        self._check()
        self._output.mark_good()

    def close(self) -> None:
        """Write the index, and close the file. Closing twice is fine."""
        if self._output.closed:
            return
        try:
            self._writer.close()
            self._check()
        finally:
            self._output.close()

    def __enter__(self) -> Self:
        """Return the file itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def _check(self) -> None:
        error = self._output.error
        if error is None:
            return
        self._output.cut()
        raise OutputError(
            f"{self.path} cannot be written further: {error.strerror or error}. What was written "
            "before stays, and d3s recover gives the file its index. Free some space."
        ) from error
