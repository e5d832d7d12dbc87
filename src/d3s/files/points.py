"""Points in files: PLY, binary numbers below a short text, and CSV, a line of text each."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files import note
from d3s.files.depth_image import DepthImage, Points, for_screens, points_of
from d3s.files.raw import cut_short

_MAX_POINTS = 64_000_000

# Names that viewers have for the fields of `Points`.
_NAMES = {"x_m": "x", "y_m": "y", "z_m": "z", "intensity": "intensity"}
_NAMES |= {"confidence": "confidence", "sigma_m": "sigma"}
_COLOURS = ("red", "green", "blue")

# Types by either of their names in PLY, in NumPy's spelling.
_TYPES = ("char", "uchar", "short", "ushort", "int", "uint", "float", "double")
_SIZED = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")
_KINDS = {name: np.dtype(sized).str[1:] for name, sized in zip(_TYPES, _SIZED, strict=True)}
_KINDS |= {sized: np.dtype(sized).str[1:] for sized in _SIZED}
_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">"}
_HEADER_BYTES = 100_000
_CSV_ROWS = 50_000  # that become text at once
_NOTE = f"comment {note.KEY} "


def encode_ply(content: DepthImage | Points) -> bytes:
    """PLY file of points, little-endian; without colours, intensities are also written as grey."""
    points = points_of(content)
    columns: dict[str, NDArray[Any]] = {
        _NAMES[name]: values.astype("<f4", copy=False) for name, values in points.columns.items()
    }
    if points.colour is not None:
        columns |= {name: points.colour[:, i] for i, name in enumerate(_COLOURS)}
    elif points.intensity is not None:
        columns |= dict.fromkeys(_COLOURS, for_screens(points.intensity, white=None))
    record = np.empty(len(points.z_m), [(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        record[name] = values
    lines = [
        "ply",
        "format binary_little_endian 1.0",
        "comment metres; x right, y down, z forward, origin at the left lens",
        f"{_NOTE}{note.make_note(points)}",
        f"element vertex {len(record)}",
        *(
            f"property {'uchar' if name in _COLOURS else 'float'} {name}"
            for name in record.dtype.names or ()
        ),
        "end_header",
    ]
    return "\n".join(lines).encode("ascii") + b"\n" + record.tobytes()


def read_ply(raw: bytes) -> Points:
    """Points of a binary PLY file that holds points alone."""
    end = re.search(rb"\nend_header\r?\n", raw[:_HEADER_BYTES])
    if not re.match(rb"ply\r?\n", raw) or end is None or not raw[: end.start()].isascii():
        raise cut_short("has no proper PLY header")
    lines = raw[: end.start()].decode("ascii").splitlines()[1:]
    notes = [line.removeprefix(_NOTE) for line in lines if line.startswith(_NOTE)]
    points, kind = _layout(lines)
    entries = note.parse_depth_note(notes[0]) if notes else {}
    found = len(raw) - end.end()
    if found != points * kind.itemsize:
        raise cut_short(
            f"has {found} bytes of points, and its header says {points * kind.itemsize}"
        )
    record = np.frombuffer(raw, kind, offset=end.end())
    with np.errstate(over="ignore"):
        columns = {
            name: record[column].astype(np.float32)
            for name, column in _NAMES.items()
            if column in (record.dtype.names or ())
        }
    return Points(**columns, colour=_colours(record), notes=note.notes_for_people(entries))


def _colours(record: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Colours of points; None if there are none, or only greys."""
    names = record.dtype.names or ()
    if not all(name in names and record.dtype[name] == np.uint8 for name in _COLOURS):
        return None
    found = np.stack([record[name] for name in _COLOURS], axis=1)
    return found if (found != found[:, :1]).any() else None


def encode_csv(content: DepthImage | Points) -> bytes:
    """CSV file of points: a line of names with units, then seven digits of each number."""
    points = points_of(content)
    columns: dict[str, NDArray[Any]] = dict(points.columns)
    if points.colour is not None:
        columns |= dict(zip(_COLOURS, points.colour.T.astype(np.float32), strict=True))
    table = np.stack(list(columns.values()), axis=1)
    line = ",".join(["%.7g"] * len(columns)) + "\n"
    blocks = [
        line * len(block) % tuple(block.ravel().tolist())
        for block in (table[row : row + _CSV_ROWS] for row in range(0, len(table), _CSV_ROWS))
    ]
    return (",".join(columns) + "\n" + "".join(blocks)).encode("ascii")


def _layout(lines: list[str]) -> tuple[int, np.dtype[Any]]:
    """Number of points, and their record, of the lines of a header."""
    words = [line.split() for line in lines]
    orders, elements, properties = (
        [line[1:] for line in words if line[:1] == [name]]
        for name in ("format", "element", "property")
    )
    is_proper = len(orders) == 1 and all(len(one) == 2 for one in (*orders, *elements))
    if not is_proper or not all(re.fullmatch(r"\d{1,15}", count) for _, count in elements):
        raise cut_short("has no proper PLY header")
    if orders[0][0] not in _ORDERS:
        raise InputError(
            f"is a PLY file of format {orders[0][0]}, and binary ones are read. Save it as binary."
        )
    if [name for name, _ in elements] != ["vertex"]:
        found = ", ".join(name for name, _ in elements)[:80] or "nothing"
        raise InputError(
            f"is a PLY file of {found}, and one of vertices alone is read. Save its points alone."
        )
    points = int(elements[0][1])
    if points > _MAX_POINTS:
        raise InputError(f"declares {points} points, and at most {_MAX_POINTS} are read.")
    if any(len(one) != 2 or one[0] not in _KINDS for one in properties):
        raise InputError(
            "has vertices with properties that are no plain numbers. Save its points alone."
        )
    names = [name for _, name in properties]
    if len(set(names)) != len(names) or not {"x", "y", "z"} <= set(names):
        raise cut_short("has no proper PLY header: x, y and z are needed, each once")
    order = _ORDERS[orders[0][0]]
    return points, np.dtype([(name, order + _KINDS[kind]) for kind, name in properties])
