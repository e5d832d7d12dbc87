"""Index of a recording, found by going from record to record: it needs no end of the file.

A file that was cut has no summary, and the libraries refuse it. Here each record tells where the
next one begins, and the first that is not whole is the end. Images are not read for it.
"""

import importlib.util
import io
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from d3s.errors import InputError
from d3s.files.raw import named, path_text

_MAGIC = b"\x89MCAP0\r\n"
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX = range(1, 8)
_ATTACHMENT, _METADATA, _DATA_END = 0x09, 0x0C, 0x0F
_RECORD = struct.Struct("<BQ")
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
    attachments: dict[str, bytes] = field(default_factory=dict)
    notes: dict[str, dict[str, str]] = field(default_factory=dict)
    is_cut: bool = False  # whether the end of the file is missing

    def chunks_of(self, topic: str) -> list[tuple[int, Span]]:
        """Time and chunk of each message of a topic, in the order of the file."""
        return [(time, self.chunks[chunk]) for name, time, chunk in self.places if name == topic]


class McapReader:
    """MCAP file, read as far as it goes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not _has_library():
            raise InputError("recordings need the package mcap: pip install 'd3s[record]'.")
        self.path = Path(os.fsdecode(path))
        self._schemas: dict[int, Any] = {}
        try:
            self._file: BinaryIO = self.path.open("rb")
        except OSError as error:
            raise InputError(
                f"{path_text(path)}: cannot be read: {error.strerror}. Check the name."
            ) from error
        with named(path):
            try:
                self.index = self._scan()
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

    def _scan(self) -> Index:
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise InputError("does not begin like an MCAP file. Is it a recording?")
        self.index = index = Index()
        for span in self._spans(size):
            if span.opcode == _DATA_END:
                break
            self._take(span, index)
        self._file.seek(max(size - len(_MAGIC), len(_MAGIC)))
        index.is_cut = self._file.read() != _MAGIC
        self._take_without_index(index)
        return index

    def _take_without_index(self, index: Index) -> None:
        """Find the messages of chunks that have no index, as the last one of a file may not."""
        from mcap.records import Message

        indexed = {chunk for _, _, chunk in index.places}
        for number in sorted(set(range(len(index.chunks))) - indexed):
            try:
                records = self._records(index.chunks[number])
            except InputError:
                continue
            self._learn(records, index)
            index.places += [
                (index.topics[one.channel_id].name, one.log_time, number)
                for one in records
                if isinstance(one, Message) and one.channel_id in index.topics
            ]
        index.places.sort(key=lambda place: place[2])

    def _spans(self, size: int) -> Iterator[Span]:
        """Records up to the first that is not whole."""
        place = len(_MAGIC)
        while place + _RECORD.size <= size:
            self._file.seek(place)
            opcode, length = _RECORD.unpack(self._file.read(_RECORD.size))
            start = place + _RECORD.size
            place = start + length
            if not opcode or place > size:
                return
            yield Span(opcode, start, length)

    def _take(self, span: Span, index: Index) -> None:
        if span.opcode == _CHUNK:
            index.chunks.append(span)
        elif span.opcode == _MESSAGE_INDEX:
            self._take_places(span, index)
        elif span.opcode in (_SCHEMA, _CHANNEL):
            self._learn([self._record(span)], index)
        elif span.opcode == _ATTACHMENT:
            found = self._record(span)
            index.attachments[found.name] = found.data
        elif span.opcode == _METADATA:
            found = self._record(span)
            index.notes[found.name] = dict(found.metadata)
        elif span.opcode == _MESSAGE:
            raise InputError("has messages outside of chunks. Write it with chunks.")

    def _take_places(self, span: Span, index: Index) -> None:
        found = self._record(span)
        if not index.chunks:
            raise InputError("has an index before the first chunk: it is damaged.")
        if found.channel_id not in index.topics:
            self._learn(self._records(index.chunks[-1]), index)
        topic = index.topics.get(found.channel_id)
        if topic is None:
            raise InputError(f"has no channel {found.channel_id}: it is damaged.")
        number = len(index.chunks) - 1
        index.places += [(topic.name, time, number) for time, _ in found.records]

    def _learn(self, records: list[Any], index: Index) -> None:
        """Take in schemas and channels."""
        from mcap.records import Channel, Schema

        schemas = self._schemas
        for one in records:
            if isinstance(one, Schema):
                schemas[one.id] = one
            elif isinstance(one, Channel):
                schema = schemas.get(one.schema_id)
                index.topics[one.id] = Topic(
                    one.topic,
                    "" if schema is None else schema.name,
                    "" if schema is None else schema.data.decode("utf-8", "replace"),
                    one.message_encoding,
                )

    def _record(self, span: Span) -> Any:
        from mcap.stream_reader import StreamReader

        if span.length > _MOST_BYTES:
            raise InputError(f"has a record of {span.length} bytes: it is damaged.")
        self._file.seek(span.start)
        content = self._file.read(span.length)
        head = _RECORD.pack(span.opcode, span.length)
        reader = StreamReader(io.BytesIO(head + content), skip_magic=True, emit_chunks=True)
        try:
            return next(iter(reader.records))
        except (ValueError, struct.error, EOFError, StopIteration, KeyError) as error:
            raise InputError(f"has a damaged record at byte {span.start}.") from error

    def _records(self, chunk: Span) -> list[Any]:
        from mcap.stream_reader import breakup_chunk

        found = self._record(chunk)
        if found.uncompressed_size > _MOST_BYTES:
            raise InputError(f"has a chunk of {found.uncompressed_size} bytes: it is damaged.")
        try:
            return list(breakup_chunk(found, validate_crc=True))
        except Exception as error:  # of several compression libraries
            raise InputError(f"has a damaged chunk at byte {chunk.start}: {error}") from error


def _has_library() -> bool:
    return importlib.util.find_spec("mcap") is not None
