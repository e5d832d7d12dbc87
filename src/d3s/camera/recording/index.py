"""Index of a recording: by the summary at its end, or, of a file that was cut, without one.

The summary has a checksum, and says where all is: a damaged record costs what is in it. A file that
was cut has none, and the libraries refuse it. There each record tells where the next one begins,
and the first that is not whole is the end. Images are not read for it.
"""

import importlib.util
import io
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from d3s.errors import InputError, MissingPackageError
from d3s.files.raw import cut_short, decoded_as, named, path_text

_MAGIC = b"\x89MCAP0\r\n"
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX = range(3, 8)
_ATTACHMENT, _METADATA, _DATA_END = 0x09, 0x0C, 0x0F
_RECORD = struct.Struct("<BQ")
_FOOTER = struct.Struct("<9xQQI")  # start of the summary, of its offsets, and its checksum
_INDEX_BYTES, _ENTRY_BYTES = 15, 16  # of the index of a channel, and of each message in it
_MOST_BYTES = 2**31
"""Of a record in memory, and of a chunk that was decompressed."""


class Span(NamedTuple):
    """Place of the content of a record."""

    opcode: int
    start: int
    length: int


class Topic(NamedTuple):
    """Topic with the type of its messages."""

    name: str
    schema: str
    definition: str
    encoding: str


class RawMessage(NamedTuple):
    """Message as bytes."""

    topic: str
    time_ns: int
    data: bytes


@dataclass
class Index:
    """Places of messages, and what is attached."""

    topics: dict[int, Topic] = field(default_factory=dict)  # by number of the channel
    chunks: list[Span] = field(default_factory=list)
    places: list[tuple[str, int, int]] = field(default_factory=list)  # topic, time, chunk
    attachments: dict[str, Span] = field(default_factory=dict)
    notes: dict[str, dict[str, str]] = field(default_factory=dict)
    is_cut: bool = False  # whether the end of the file is missing

    def chunks_of(self, topic: str) -> list[tuple[int, Span]]:
        """Time and chunk of each message of a topic, in the order of the file."""
        return [(time, self.chunks[chunk]) for name, time, chunk in self.places if name == topic]


class McapReader:
    """MCAP file, read as far as it goes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not _has_library():
            raise MissingPackageError("recordings need the package mcap", "record")
        self.path = Path(os.fsdecode(path))
        self._schemas: dict[int, Any] = {}
        try:
            self._file: BinaryIO = self.path.open("rb")
        except OSError as error:
            raise InputError(
                f"{path_text(path)}: cannot be read: {error.strerror}. Check the name."
            ) from error
        self._size = self._file.seek(0, os.SEEK_END)
        self.index = Index()
        with named(path):
            try:
                self._read_index()
            except BaseException:
                self._file.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def messages(self, chunk: Span) -> list[RawMessage]:
        """Messages of a chunk."""
        from mcap.records import Message

        return [
            RawMessage(self.index.topics[one.channel_id].name, one.log_time, one.data)
            for one in self._records(chunk)
            if isinstance(one, Message) and one.channel_id in self.index.topics
        ]

    def attachment(self, name: str) -> bytes | None:
        """Content of an attached file; None if there is none of this name."""
        span = self.index.attachments.get(name)
        if span is None:
            return None
        content = self._bytes(span.start, span.length)
        if zlib.crc32(content[:-4]).to_bytes(4, "little") != content[-4:] != bytes(4):
            raise cut_short(f"has a damaged {name}")
        found: bytes = self._record(span).data
        return found

    def _read_index(self) -> None:
        if self._bytes(0, len(_MAGIC)) != _MAGIC:
            raise InputError("does not begin like an MCAP file. Is it a recording?")
        end = max(self._size - len(_MAGIC), len(_MAGIC))
        self.index.is_cut = self._bytes(end, len(_MAGIC)) != _MAGIC
        if not self._read_summary(end - _FOOTER.size):
            self._walk()

    def _read_summary(self, end: int) -> bool:
        """Take in the summary that ends at a byte; whether it is there, and whole."""
        from mcap.records import AttachmentIndex, ChunkIndex, MetadataIndex

        if self.index.is_cut or end < len(_MAGIC):
            return False
        start, _, checksum = _FOOTER.unpack(self._bytes(end, _FOOTER.size))
        if not len(_MAGIC) <= start < end:
            return False
        content = self._bytes(start, end - start)
        if checksum and zlib.crc32(content + self._bytes(end, _FOOTER.size - 4)) != checksum:
            return False
        try:
            records = _parsed(content)
        except InputError:
            return False
        self._learn(records)
        for one in records:
            if isinstance(one, ChunkIndex):
                self._add_chunk(
                    _inside(_CHUNK, one.chunk_start_offset, one.chunk_length),
                    one.message_index_length,
                    one,
                )
            elif isinstance(one, AttachmentIndex):
                self.index.attachments[one.name] = _inside(_ATTACHMENT, one.offset, one.length)
            elif isinstance(one, MetadataIndex):
                self._note(_inside(_METADATA, one.offset, one.length))
        return bool(self.index.chunks)

    def _walk(self) -> None:
        """Take in the records one after the other, up to the first that is not whole."""
        chunks: list[tuple[Span, int]] = []  # each with the bytes of its index, which follows it
        for span in self._spans():
            if span.opcode == _DATA_END:
                break
            if span.opcode == _CHUNK:
                chunks.append((span, 0))
            elif span.opcode == _MESSAGE_INDEX and chunks:
                chunk, size = chunks[-1]
                chunks[-1] = chunk, size + _RECORD.size + span.length
            elif span.opcode == _METADATA:
                self._note(span)
            elif span.opcode in (_SCHEMA, _CHANNEL, _ATTACHMENT):
                with suppress(InputError):
                    found = self._record(span)
                    self._learn([found])
                    if span.opcode == _ATTACHMENT:
                        self.index.attachments[found.name] = span
            elif span.opcode == _MESSAGE:
                raise InputError("has messages outside of chunks. Write it with chunks.")
        for chunk, size in chunks:
            self._add_chunk(chunk, size)

    def _spans(self) -> Iterator[Span]:
        """Records up to the first that is not whole."""
        place = len(_MAGIC)
        while place + _RECORD.size <= self._size:
            opcode, length = _RECORD.unpack(self._bytes(place, _RECORD.size))
            start = place + _RECORD.size
            place = start + length
            if not opcode or place > self._size:
                return
            yield Span(opcode, start, length)

    def _add_chunk(self, chunk: Span, index_bytes: int, listed: Any = None) -> None:
        """Take in a chunk by the index behind it; if that is damaged or missing, by its content."""
        from mcap.records import Message

        index = self.index
        number = len(index.chunks)
        index.chunks.append(chunk)
        places: list[tuple[int, int]] = []
        with suppress(InputError):
            content = self._bytes(chunk.start + chunk.length, index_bytes)
            places = _indexed(content, listed)
        if not places or any(channel not in index.topics for channel, _ in places):
            with suppress(InputError):
                records = self._records(chunk)
                self._learn(records)
                places = [
                    (one.channel_id, one.log_time) for one in records if isinstance(one, Message)
                ]
        index.places += [
            (index.topics[channel].name, time, number)
            for channel, time in places
            if channel in index.topics
        ]

    def _note(self, span: Span) -> None:
        with suppress(InputError):
            found = self._record(span)
            self.index.notes[found.name] = dict(found.metadata)

    def _learn(self, records: list[Any]) -> None:
        """Take in schemas and channels."""
        from mcap.records import Channel, Schema

        schemas = self._schemas
        for one in records:
            if isinstance(one, Schema):
                schemas[one.id] = one
            elif isinstance(one, Channel):
                schema = schemas.get(one.schema_id)
                self.index.topics[one.id] = Topic(
                    one.topic,
                    "" if schema is None else schema.name,
                    "" if schema is None else schema.data.decode("utf-8", "replace"),
                    one.message_encoding,
                )

    def _bytes(self, start: int, length: int) -> bytes:
        if length > _MOST_BYTES:
            raise cut_short(f"has a record of {length} bytes")
        self._file.seek(start)
        return self._file.read(length)

    def _record(self, span: Span) -> Any:
        head = _RECORD.pack(span.opcode, span.length)
        (found,) = _parsed(head + self._bytes(span.start, span.length))
        return found

    def _records(self, chunk: Span) -> list[Any]:
        from mcap.stream_reader import breakup_chunk

        found = self._record(chunk)
        if found.uncompressed_size > _MOST_BYTES:
            raise cut_short(f"has a chunk of {found.uncompressed_size} bytes")
        with decoded_as(f"the chunk at byte {chunk.start}"):
            try:
                return breakup_chunk(found, validate_crc=True)
            except MemoryError as error:  # it is as large as its head says, which has no checksum
                raise ValueError("it declares more than the memory") from error


def _inside(opcode: int, start: int, length: int) -> Span:
    """Content of a record with its head."""
    return Span(opcode, start + _RECORD.size, length - _RECORD.size)


def _parsed(content: bytes) -> list[Any]:
    """Records with their heads."""
    from mcap.stream_reader import StreamReader

    stream = io.BytesIO(content)
    reader = iter(StreamReader(stream, skip_magic=True, emit_chunks=True).records)
    found = []
    with decoded_as("records of MCAP"):
        while stream.tell() < len(content):
            found.append(next(reader))
    return found


def _indexed(content: bytes, listed: Any) -> list[tuple[int, int]]:
    """Channel and time of each message by the index of a chunk; none if the summary differs."""
    records = _parsed(content)
    with decoded_as("the index of a chunk"):  # a damaged head makes it another record
        places = [(one.channel_id, time) for one in records for time, _ in one.records]
        is_same = listed is None or (
            {one.channel_id for one in records} == set(listed.message_index_offsets)
            and len(records) * _INDEX_BYTES + len(places) * _ENTRY_BYTES == len(content)
            and all(
                listed.message_start_time <= time <= listed.message_end_time for _, time in places
            )
        )
    return places if is_same else []


def _has_library() -> bool:
    return importlib.util.find_spec("mcap") is not None
