"""Results as plain tables that JSON can hold, and back."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

_Kind = TypeVar("_Kind")


def as_table(result: Any) -> dict[str, Any]:
    """A dataclass as a table; what is not a finite number stays so."""
    return dataclasses.asdict(result)


def from_table(kind: type[_Kind], table: Mapping[str, Any]) -> _Kind:
    """The very dataclass that `as_table` was given, also after JSON, which has no tuples."""
    hints = typing.get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in table.items()})


def _value(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_table(hint, value)
    if isinstance(value, list):
        inner = typing.get_args(hint)[0]
        return tuple(_value(inner, one) for one in value)
    return value
