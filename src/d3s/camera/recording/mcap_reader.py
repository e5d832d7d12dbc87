"""MCAP files read by the package `mcap`, as far as they go; images of their messages.

The summary at the end, which has a checksum, says where all is, so that a damaged byte costs what
it is part of. A file that was cut has none: it is read through, up to the first record that is not
whole.
"""

import importlib.util
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from numpy.typing import NDArray

from d3s.errors import InputError, MissingPackageError
from d3s.files import ros
from d3s.files.raw import cut_short, decoded_as, named, path_text

_MAGIC = b"\x89MCAP0\r\n"
_HEAD_BYTES, _FOOTER_BYTES = 9, 29  # of a record, and of the last one with its head
_MOST_BYTES = 2**31  # of a record, and of a chunk that was decompressed


class RawMessage(NamedTuple):
    """Message as bytes."""

    topic: str
    time_ns: int
    data: bytes


class McapReader:
    """MCAP file with its chunks, each with the times of its messages by topic."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if importlib.util.find_spec("mcap") is None:
            raise MissingPackageError("recordings need the package mcap", "record")
        self.path = Path(os.fsdecode(path))
        self.chunks: list[int] = []  # places
        self.places: list[tuple[str, int, int]] = []  # topic, time and chunk of the messages
        self.counts: Counter[str] = Counter()
        self.attachments: dict[str, tuple[int, int]] = {}  # places and lengths of their records
        self.notes: dict[str, dict[str, str]] = {}
        self.is_cut = False  # whether the summary at the end of the file is missing
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, Any] = {}
        try:
            self._file: BinaryIO = self.path.open("rb")
        except OSError as error:
            raise InputError(
                f"{path_text(path)}: cannot be read: {error.strerror}. Check the name."
            ) from error
        try:
            with named(path):
                if self._file.read(len(_MAGIC)) != _MAGIC:
                    raise InputError("does not begin like an MCAP file. Is it a recording?")
                self._read()
        except BaseException:
            self._file.close()
            raise

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

    def chunks_of(self, topic: str) -> list[tuple[int, int]]:
        """Time and chunk of each message of a topic, in the order of the file."""
        return [(time, chunk) for name, time, chunk in self.places if name == topic]

    def messages(self, chunk: int) -> list[RawMessage]:
        """Messages of the chunk at a place."""
        from mcap.records import Message

        return [
            RawMessage(self._channels[one.channel_id].topic, one.log_time, one.data)
            for one in self._records(chunk)
            if isinstance(one, Message) and one.channel_id in self._channels
        ]

    def attachment(self, name: str) -> bytes | None:
        """Content of an attached file; None if there is none of this name."""
        if name not in self.attachments:
            return None
        place, length = self.attachments[name]
        self._file.seek(place + _HEAD_BYTES)
        content = self._file.read(max(length - _HEAD_BYTES, 0))
        if zlib.crc32(content[:-4]).to_bytes(4, "little") != content[-4:] != bytes(4):
            raise cut_short(f"has a damaged {name}")
        found: bytes = self._record(place).data
        return found

    def _read(self) -> None:
        try:
            summary = self._summary()
        except InputError:
            summary = []
        if not self._learn(summary):
            self.places, self.chunks, self.is_cut = [], [], True
            with suppress(InputError):
                self._learn(self._walk())

    def _summary(self) -> list[tuple[int, Any]]:
        """Records of the summary, if it is there and whole."""
        end = self._file.seek(0, os.SEEK_END) - len(_MAGIC) - _FOOTER_BYTES
        footer = self._record(max(end, 0))
        self._file.seek(getattr(footer, "summary_start", end))
        content = self._file.read()
        if not content.endswith(_MAGIC) or zlib.crc32(content[:-12]) != footer.summary_crc:
            return []
        return list(self._walk(footer.summary_start))

    def _walk(self, place: int = len(_MAGIC)) -> Iterator[tuple[int, Any]]:
        """Records and their places, from a place to the last record of the file."""
        from mcap.stream_reader import StreamReader

        self._file.seek(place)
        reader = StreamReader(
            self._file, skip_magic=True, emit_chunks=True, record_size_limit=_MOST_BYTES
        )
        with decoded_as("records of MCAP"):
            try:
                for record in reader.records:
                    yield place, record
                    place = self._file.tell()
            except MemoryError as error:
                raise ValueError("one declares more than the memory") from error

    def _learn(self, records: Any) -> bool:
        """Take in records and what they tell of others; whether there is a chunk."""
        from mcap import records as kinds

        for place, one in records:
            if isinstance(one, kinds.Schema):
                self._schemas[one.id] = one
            elif isinstance(one, kinds.Channel):
                self._channels[one.id] = one
            elif isinstance(one, kinds.ChunkIndex):
                self._add_chunk(one.chunk_start_offset, one)
            elif isinstance(one, kinds.Chunk):
                end = self._file.tell()
                self._add_chunk(place)
                self._file.seek(end)
            elif isinstance(one, kinds.AttachmentIndex):
                self.attachments[one.name] = one.offset, one.length
            elif isinstance(one, kinds.Attachment):
                self.attachments[one.name] = place, self._file.tell() - place
            elif isinstance(one, kinds.MetadataIndex):
                end = self._file.tell()
                with suppress(InputError):
                    self._learn([(0, self._record(one.offset))])
                self._file.seek(end)
            elif isinstance(one, kinds.Metadata):
                self.notes[one.name] = dict(one.metadata)
            elif isinstance(one, kinds.Message):
                raise InputError("has messages outside of chunks. Write it with chunks.")
            elif isinstance(one, kinds.DataEnd):
                break
        return bool(self.chunks)

    def _add_chunk(self, place: int, index: Any = None) -> None:
        """Take in a chunk by its index if all its messages are of one time, else by its content."""
        from mcap.records import Channel, Message, Schema

        self.chunks.append(place)
        if index is not None and index.message_start_time == index.message_end_time:
            found = [(one, index.message_start_time) for one in index.message_index_offsets]
        else:
            records: list[Any] = []
            with suppress(InputError):
                records = self._records(place)
            self._learn((0, one) for one in records if isinstance(one, Schema | Channel))
            found = [(one.channel_id, one.log_time) for one in records if isinstance(one, Message)]
        for channel, time in found:
            if channel in self._channels:
                self.places.append((self._channels[channel].topic, time, place))
                self.counts[self._channels[channel].topic] += 1

    def _record(self, place: int) -> Any:
        try:
            return next(self._walk(place))[1]
        except StopIteration:
            raise cut_short(f"has no record at byte {place}") from None

    def _records(self, place: int) -> list[Any]:
        """Records in the chunk at a place."""
        from mcap.records import Chunk
        from mcap.stream_reader import breakup_chunk

        found = self._record(place)
        if not isinstance(found, Chunk) or found.uncompressed_size > _MOST_BYTES:
            raise cut_short(f"has no chunk at byte {place} that can be read")
        with decoded_as(f"the chunk at byte {place}"):
            try:
                return breakup_chunk(found, validate_crc=True)
            except MemoryError as error:  # it is as large as its head says, which has no checksum
                raise ValueError("it declares more than the memory") from error


def text_of(data: bytes) -> str:
    """Text of a `std_msgs/String`."""
    with decoded_as("a text of ROS 2"):
        found: str = ros.types().deserialize_cdr(data, "std_msgs/msg/String").data
        return found


class ImageMessage(NamedTuple):
    """Content of a `sensor_msgs/Image`."""

    pixels: NDArray[Any]  # (rows, cols), or (rows, cols, 3) in the order of the encoding
    encoding: str
    time_ns: int


def image_of(data: bytes) -> ImageMessage:
    """Content of a `sensor_msgs/Image`; the pixels are a view into `data`."""
    with decoded_as("an image of ROS 2"):
        found = ros.types().deserialize_cdr(data, ros.IMAGE)
    stamp = found.header.stamp
    return ImageMessage(ros.pixels_of(found), found.encoding, 10**9 * stamp.sec + stamp.nanosec)
