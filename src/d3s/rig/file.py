"""The rig file."""

import os
from typing import Any

from d3s.document import DocumentKind
from d3s.errors import RigError

_HEADER = """\
# A D3S camera rig, to be read with d3s.Rig.load. All values are in SI units, and the unit is the
# end of each name: m metres, dpt dioptres (1/m), rad radians, px pixels of the sensor. A cubic has
# the coefficients of 1, x, x^2 and x^3, x being a virtual baseline in metres.

"""

RIG_FILE = DocumentKind(noun="rig file", schema_version=1, header=_HEADER, error=RigError)


def format_document(values: dict[str, Any]) -> str:
    """Text of a rig file that holds these values, every float to its last bit."""
    return RIG_FILE.format(values)


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Values in a rig file, not checked yet; `name` is None where the file has none."""
    # A rig in Python may go unnamed. A file lies among others, so there the name is asked for.
    return {"name": None, **RIG_FILE.read(path)}
