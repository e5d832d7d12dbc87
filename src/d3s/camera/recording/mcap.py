"""MCAP files of ROS 2 messages, written by `foxglove-sdk` and read by `mcap`.

Every `flush` ends a chunk and hands it to the operating system in one piece. What was flushed is in
the file even if the process is killed at once; a piece that does not fit on the disk is cut off
again. The summary at the end, which has a checksum, says where all is, so that a damaged byte costs
what it is part of. A file that was cut has none: it is read through, up to the first record that is
not whole.
"""

import importlib.util
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from d3s.errors import InputError, MissingPackageError, OutputError
from d3s.files import ros
from d3s.files.raw import cut_short, decoded_as, named, open_file

STRING = "std_msgs/msg/String"
RAW, RAW_CAMERA = "/camera/image_raw", "/camera/camera_info"
LEFT, RIGHT = "/left/image_rect", "/right/image_rect"
LEFT_CAMERA, RIGHT_CAMERA = "/left/camera_info", "/right/camera_info"
FRAME = "/d3s/frame"
"""Facts of each frame, as JSON: number, times, losses, full scale. One message for each frame."""
NOTE = "/d3s/note"
"""Messages beside the frames, as JSON: the frames that were refused."""
DEPTH, SIGMA, DEPTH_CAMERA = "/depth/image", "/depth/sigma", "/depth/camera_info"
DISPARITIES = "/depth/disparity"
SCHEMAS = {
    **dict.fromkeys((RAW, LEFT, RIGHT, DEPTH, SIGMA), ros.IMAGE),
    **dict.fromkeys((RAW_CAMERA, LEFT_CAMERA, RIGHT_CAMERA, DEPTH_CAMERA), ros.CAMERA_INFO),
    DISPARITIES: ros.DISPARITY,
    **dict.fromkeys((FRAME, NOTE), STRING),
}
"""Type of the messages of each topic."""
RIG_NAME, NOTES_NAME, END_NAME = "rig.toml", "d3s", "d3s_end"
"""Names of the attached rig, of the texts on a recording, and of the sums at its end."""

_LEVEL = 1  # of zstd: level 3 takes four times as long for 3 % less
_MAGIC = b"\x89MCAP0\r\n"
_HEAD_BYTES, _FOOTER_BYTES = 9, 29  # of a record, and of the last one with its head
_MOST_BYTES = 2**31  # of a record, and of a chunk that was decompressed


def check_installed(*names: str) -> None:
    """Raise an `InputError` if the packages that recordings need are not installed."""
    names = names or ("foxglove", "mcap", "rosbags")
    if not all(map(importlib.util.find_spec, names)):
        words = "recordings need the packages foxglove-sdk, mcap and rosbags"
        raise MissingPackageError(words, "record")


class Channels:
    """Topics with ROS 2 messages, which the SDK of Foxglove hands to a file or to its application.

    Types of messages are those of `SCHEMAS`, unless they are given.
    """

    def __init__(self) -> None:
        check_installed()
        import foxglove

        self.context: Any = foxglove.Context()
        self._channels: dict[str, Any] = {}

    def declare(self, topic: str, schema: str = "", definition: bytes = b"") -> None:
        """Declare a topic, unless it is."""
        import foxglove

        if topic in self._channels:
            return
        schema = schema or SCHEMAS[topic]
        data = definition or ros.definition(schema)
        self._channels[topic] = foxglove.Channel(
            topic,
            schema=foxglove.Schema(name=schema, encoding="ros2msg", data=data),
            message_encoding="cdr",
            context=self.context,
        )

    @property
    def is_watched(self) -> bool:
        """Whether anybody takes messages."""
        return any(one.has_sinks() for one in self._channels.values())

    def log(self, topic: str, data: bytes, time_ns: int) -> None:
        """Write a message that is bytes already."""
        self.declare(topic)
        self._channels[topic].log(data, log_time=time_ns)

    def send(self, topic: str, message: ros.Message, time_ns: int) -> None:
        """Write a message of a topic of `SCHEMAS`."""
        self.log(topic, ros.cdr(SCHEMAS[topic], message), time_ns)


class _Output(io.FileIO):
    """File that remembers the first error, which the library only logs."""

    error: OSError | None = None
    good = 0  # bytes that were flushed without an error

    def write(self, data: Any) -> int:
        left = memoryview(data)
        try:
            while left and self.error is None:
                left = left[super().write(left) or 0 :]
        except OSError as error:
            self.error = error
        return len(data)


class McapFile(Channels):
    """MCAP file with ROS 2 messages that is written; `flush` ends a chunk."""

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        super().__init__()
        import foxglove
        from foxglove.mcap import MCAPWriteOptions

        self.path = Path(os.fsdecode(path))
        try:
            self._output = _Output(self.path, "wb" if overwrite else "xb")
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

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be written."""
        return self._output.closed

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
        self._output.good = self._output.tell()

    def close(self) -> None:
        """Write the index, and close the file. Closing twice is fine."""
        if self.is_closed:
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
        with suppress(OSError):
            self._output.truncate(self._output.good)
        raise OutputError(
            f"{self.path} cannot be written further: {error.strerror or error}. What was written "
            "before stays, and d3s recover gives the file its index. Free some space."
        ) from error


class RawMessage(NamedTuple):
    """Message as bytes."""

    topic: str
    time_ns: int
    data: bytes


class McapReader:
    """MCAP file with its chunks, attachments and texts."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_installed("mcap")
        self.path = Path(os.fsdecode(path))
        self.chunks: dict[int, list[tuple[str, int]]] = {}  # by place: topics and times
        self.attachments: dict[str, tuple[int, int]] = {}  # places and lengths of their records
        self.notes: dict[str, dict[str, str]] = {}
        self.is_cut = False  # whether the summary at the end of the file is missing
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, Any] = {}
        with named(path):
            self._file = open_file(path)
            if self._file.read(len(_MAGIC)) != _MAGIC:
                self._file.close()
                raise InputError("does not begin like an MCAP file. Is it a recording?")
        self._read()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def topics(self) -> dict[str, tuple[str, bytes]]:
        """Type of the messages of each topic, and its definition."""
        found = {one.topic: self._schemas.get(one.schema_id) for one in self._channels.values()}
        return {
            topic: ("", b"") if schema is None else (schema.name, schema.data)
            for topic, schema in found.items()
        }

    @property
    def counts(self) -> Counter[str]:
        """Number of messages of each topic."""
        return Counter(topic for found in self.chunks.values() for topic, _ in found)

    def chunks_of(self, topic: str) -> list[tuple[int, int]]:
        """Time and chunk of each message of a topic, in the order of the file."""
        return [
            (time, place)
            for place, found in self.chunks.items()
            for name, time in found
            if name == topic
        ]

    def messages(self, place: int) -> list[RawMessage]:
        """Messages of the chunk at a place. An `InputError` if it is damaged."""
        from mcap.records import Message

        with named(self.path):
            return [
                RawMessage(self._channels[one.channel_id].topic, one.log_time, one.data)
                for one in _opened(self._record(place), place)
                if isinstance(one, Message) and one.channel_id in self._channels
            ]

    def attachment(self, name: str) -> bytes | None:
        """Content of an attached file; None if there is none of this name."""
        from mcap.data_stream import ReadDataStream
        from mcap.records import Attachment

        if name not in self.attachments:
            return None
        place, length = self.attachments[name]
        with named(self.path), _decoded(name):
            self._file.seek(place + _HEAD_BYTES)
            content = self._file.read(length - _HEAD_BYTES)
            if int.from_bytes(content[-4:], "little") not in (0, zlib.crc32(content[:-4])):
                raise cut_short(f"has a damaged {name}")
            found: bytes = Attachment.read(ReadDataStream(io.BytesIO(content))).data
            return found

    def _read(self) -> None:
        """Read the summary; the whole file if it is missing or damaged."""
        summary = None
        with suppress(InputError):
            summary = self._summary()
        self.is_cut = summary is None
        if summary is None:
            with suppress(InputError):
                self._read_through()
            return
        self._schemas, self._channels = summary.schemas, summary.channels
        for one in summary.attachment_indexes:
            self.attachments[one.name] = one.offset, one.length
        for one in summary.metadata_indexes:
            with suppress(InputError):
                self.notes[one.name] = dict(self._record(one.offset).metadata)
        for one in summary.chunk_indexes:
            place, time = one.chunk_start_offset, one.message_start_time
            self.chunks[place] = [
                (self._channels[number].topic, time)
                for number in one.message_index_offsets
                if number in self._channels
            ]
            if one.message_end_time != time:  # not by d3s, which writes a chunk at one time
                with suppress(InputError):
                    self._learn(place, self._record(place))

    def _summary(self) -> Any:
        """Summary at the end; None if it is not whole."""
        from mcap.reader import SeekingReader

        end = self._file.seek(0, os.SEEK_END) - len(_MAGIC) - _FOOTER_BYTES
        footer = self._record(max(end, 0))
        with _decoded("a summary"):
            self._file.seek(footer.summary_start)
            crc = zlib.crc32(self._file.read()[: -len(_MAGIC) - 4])
            if not footer.summary_start or footer.summary_crc not in (0, crc):
                return None
            self._file.seek(0)
            return SeekingReader(self._file, record_size_limit=_MOST_BYTES).get_summary()

    def _read_through(self) -> None:
        """Take in all records up to the first one that is not whole."""
        from mcap.records import Attachment, Chunk, DataEnd, Metadata

        for place, one in self._records(len(_MAGIC)):
            if isinstance(one, Chunk):
                self.chunks[place] = []
                with suppress(InputError):
                    self._learn(place, one)
            elif isinstance(one, Attachment):
                self.attachments[one.name] = place, self._file.tell() - place
            elif isinstance(one, Metadata):
                self.notes[one.name] = dict(one.metadata)
            elif isinstance(one, DataEnd):
                return

    def _learn(self, place: int, chunk: Any) -> None:
        """Take in what a chunk tells of topics and messages."""
        from mcap.records import Channel, Message, Schema

        records = _opened(chunk, place)
        self._schemas |= {one.id: one for one in records if isinstance(one, Schema)}
        self._channels |= {one.id: one for one in records if isinstance(one, Channel)}
        self.chunks[place] = [
            (self._channels[one.channel_id].topic, one.log_time)
            for one in records
            if isinstance(one, Message) and one.channel_id in self._channels
        ]

    def _records(self, place: int) -> Iterator[tuple[int, Any]]:
        """Records and their places, from a place to the last record of the file."""
        from mcap.stream_reader import StreamReader

        self._file.seek(place)
        reader = StreamReader(
            self._file, skip_magic=True, emit_chunks=True, record_size_limit=_MOST_BYTES
        )
        with _decoded("records of MCAP"):
            for record in reader.records:
                yield place, record
                place = self._file.tell()

    def _record(self, place: int) -> Any:
        for _, record in self._records(place):
            return record
        raise cut_short(f"has no record at byte {place}")


def _opened(chunk: Any, place: int) -> list[Any]:
    """Records in a chunk."""
    from mcap.records import Chunk
    from mcap.stream_reader import breakup_chunk

    if not isinstance(chunk, Chunk) or chunk.uncompressed_size > _MOST_BYTES:
        raise cut_short(f"has no chunk at byte {place} that can be read")
    with _decoded(f"the chunk at byte {place}"):
        return breakup_chunk(chunk, validate_crc=True)


@contextmanager
def _decoded(kind: str) -> Iterator[None]:
    """Let every error of the library in the block be an `InputError`."""
    with decoded_as(kind):
        try:
            yield
        except MemoryError as error:  # a size in the file, which has no checksum
            raise ValueError("it declares more than the memory") from error
