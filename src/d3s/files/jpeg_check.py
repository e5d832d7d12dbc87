"""Whether the scans of a JPEG file are whole: each with its tables, all that the frame needs."""

import re
from dataclasses import dataclass, field
from functools import partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from d3s.files import jpeg_scan
from d3s.files.compiled import COMPILE_ABOVE_BYTES
from d3s.files.raw import cut_short

_SOS, _DHT, _DRI = 0xDA, 0xC4, 0xDD
_RESTART = re.compile(rb"\xff+([\xd0-\xd7])")
_STRAY = re.compile(rb"\xff(?!\0)")
_CODES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One marker, its content, and for a scan the packed pixels that follow it."""

    marker: int
    body: bytes
    pixels: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Component:
    """One channel: how often it is sampled, relative to the others, across and down."""

    across: int
    down: int


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What the header of a JPEG file says; the components by their identifiers."""

    width: int
    height: int
    progressive: bool
    components: dict[int, Component]

    def units(self) -> int:
        """Number of units of a scan of several components."""
        across = 8 * max(component.across for component in self.components.values())
        down = 8 * max(component.down for component in self.components.values())
        return ceil(self.width / across) * ceil(self.height / down)

    def blocks(self, component: Component) -> int:
        """Number of blocks of a scan of one component."""
        across = max(other.across for other in self.components.values())
        down = max(other.down for other in self.components.values())
        columns = ceil(ceil(self.width * component.across / across) / 8)
        return columns * ceil(ceil(self.height * component.down / down) / 8)


@dataclass(frozen=True, kw_only=True)
class _Scan:
    identifiers: list[int]
    dc_tables: list[int]
    ac_tables: list[int]
    low: int
    last: int
    before: int  # bits still missing before and after this scan
    after: int


@dataclass(kw_only=True)
class _State:
    """What the scans so far have left behind."""

    frame: Frame
    fast: bool  # whether there is enough to follow that compiling is worth it
    tables: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    interval: int = 0
    known: dict[int, bytearray] = field(default_factory=dict)
    # Bits still missing of each coefficient of each component; -1 before its first scan.
    missing: dict[int, list[int]] = field(default_factory=dict)


def check_scans(frame: Frame, segments: list[Segment]) -> None:
    """Refuse a file whose scans do not hold exactly the coefficients of the frame."""
    size = sum(len(segment.pixels) for segment in segments)
    state = _State(frame=frame, fast=size > COMPILE_ABOVE_BYTES)
    for identifier in frame.components:
        state.missing[identifier] = [-1] * 64
    for segment in segments:
        if segment.marker == _DHT:
            _add_tables(state.tables, segment.body)
        elif segment.marker == _DRI and len(segment.body) == 2:
            state.interval = int.from_bytes(segment.body, "big")
        elif segment.marker == _SOS:
            _check_scan(state, _scan(frame, segment.body), segment.pixels)
    if any(any(missing) for missing in state.missing.values()):
        raise cut_short("lacks a part of its JPEG scans")


def _add_tables(tables: dict[int, NDArray[np.int32]], body: bytes) -> None:
    """Code tables of a segment, by class (0 DC, 16 AC) and number, as `jpeg_scan` reads them."""
    at = 0
    while at < len(body):
        counts = np.frombuffer(body[at + 1 : at + 17], np.uint8).astype(np.int64)
        symbols = np.frombuffer(body[at + 17 : at + 17 + counts.sum()], np.uint8)
        lengths = np.repeat(np.arange(1, len(counts) + 1), counts)
        spans = _CODES >> lengths
        wrong = len(counts) < 16 or len(symbols) != len(lengths) or spans.sum() > _CODES
        if wrong or (body[at] < 16 and symbols.max(initial=0) > 15):
            raise cut_short("has a JPEG code table that cannot be")
        table = np.zeros(_CODES, np.int32)
        table[: spans.sum()] = np.repeat(lengths << 8 | symbols, spans)
        tables[body[at]] = table
        at += 17 + len(symbols)


def _scan(frame: Frame, body: bytes) -> _Scan:
    count = body[0] if body else 0
    if not 1 <= count <= len(frame.components) or len(body) != 4 + 2 * count:
        raise cut_short("has no proper JPEG scan header")
    numbers = body[2 : 1 + 2 * count : 2]
    low, last, steps = body[-3:]
    scan = _Scan(
        identifiers=list(body[1 : 1 + 2 * count : 2]),
        dc_tables=[number >> 4 for number in numbers],
        ac_tables=[16 | number & 15 for number in numbers],
        low=low,
        last=last,
        before=steps >> 4 or -1,
        after=steps & 15,
    )
    distinct = set(scan.identifiers)
    if len(distinct) != count or not distinct <= set(frame.components):
        raise cut_short("has a JPEG scan of components that are not there")
    if frame.progressive:  # DC alone, or the AC of one component
        proper = low == last == 0 or (1 <= low <= last <= 63 and count == 1)
    else:
        proper = (low, last, steps) == (0, 63, 0)
    if not proper:
        raise cut_short("has no proper JPEG scan header")
    return scan


def _check_scan(state: _State, scan: _Scan, pixels: bytes) -> None:
    for identifier in scan.identifiers:
        part = state.missing[identifier][scan.low : scan.last + 1]
        if set(part) != {scan.before} or (scan.before > 0 and scan.after != scan.before - 1):
            raise cut_short("has JPEG scans that do not follow on each other")
        state.missing[identifier][scan.low : scan.last + 1] = [scan.after] * len(part)
    single = len(scan.identifiers) == 1
    component = state.frame.components[scan.identifiers[0]]
    units = state.frame.blocks(component) if single else state.frame.units()
    intervals, spans = _intervals(pixels, units, state.interval)
    if not _is_whole(state, scan, intervals, spans, units):
        raise cut_short("has damaged JPEG pixels: they do not fill the image exactly")


def _intervals(
    pixels: bytes, units: int, interval: int
) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Bytes between restart markers, and the first and the number of the units in them."""
    parts = _RESTART.split(pixels.rstrip(b"\xff"))  # trailing 0xff only fill up to the next marker
    restarts = [marker[0] & 7 for marker in parts[1::2]]
    step = interval or units
    spans = [(first, min(step, units - first)) for first in range(0, units, step)]
    in_turn = restarts == [i % 8 for i in range(len(restarts))]
    if len(restarts) + 1 != len(spans) or not in_turn or any(map(_STRAY.search, parts[::2])):
        raise cut_short("has damaged JPEG pixels: markers are missing, or too many")
    return [part.replace(b"\xff\0", b"\xff") for part in parts[::2]], spans


def _is_whole(
    state: _State,
    scan: _Scan,
    intervals: list[bytes],
    spans: list[tuple[int, int]],
    units: int,
) -> bool:
    components = [state.frame.components[identifier] for identifier in scan.identifiers]
    single = len(components) == 1
    repeats = [1 if single else part.across * part.down for part in components]
    refines = scan.before > 0
    uses_dc, uses_ac = scan.low == 0 and not refines, scan.last > 0
    names = (scan.dc_tables if uses_dc else []) + (scan.ac_tables if uses_ac else [])
    if not set(names) <= set(state.tables):
        raise cut_short("lacks a JPEG code table")
    tables = np.concatenate([state.tables[name] for name in names] or [np.zeros(1, np.int32)])
    uses_up = partial(jpeg_scan.uses_up, fast=state.fast)
    if scan.low == 0 and refines:
        return uses_up(jpeg_scan.dc_refined, intervals, spans, tables, sum(repeats))
    if scan.low > 0:
        known = state.known.setdefault(scan.identifiers[0], bytearray(64 * units))
        kernel = jpeg_scan.ac_refined if refines else jpeg_scan.ac_first
        return uses_up(kernel, intervals, spans, tables, scan.low, scan.last, known)
    order = [i for i, repeat in enumerate(repeats) for _ in range(repeat)]
    dc_tables = [_CODES * i for i in order]
    ac_tables = [_CODES * (len(components) + i) for i in order]
    return uses_up(
        jpeg_scan.coefficients, intervals, spans, tables, dc_tables, ac_tables, scan.last
    )
