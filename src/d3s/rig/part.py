"""What every part of a rig is: a record whose failures are a `RigError`."""

from typing import ClassVar

from d3s.errors import RecordError, RigError
from d3s.record import Record


class RigPart(Record):
    """A frozen set of named values of a camera."""

    error: ClassVar[type[RecordError]] = RigError
