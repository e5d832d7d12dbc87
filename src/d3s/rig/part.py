"""Base class of the records of a rig."""

from typing import ClassVar

from d3s.errors import RecordError, RigError
from d3s.record import Record


class RigPart(Record):
    """Record of a camera; wrong values raise `RigError`."""

    error: ClassVar[type[RecordError]] = RigError
