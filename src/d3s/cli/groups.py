"""Options that several commands share, as one parameter each: a named tuple of options."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Command whose parameters that are named tuples become one option for each of their fields.

    A field is an option as typer has it, an annotated type with a default:
    ``class Address(NamedTuple): port: Port = 0``.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command).parameters.values():
        kind = one.annotation
        if not (isinstance(kind, type) and issubclass(kind, tuple)):
            parameters.append(one)
            continue
        groups[one.name] = kind
        types = get_type_hints(kind, include_extras=True)
        defaults = kind._field_defaults  # type: ignore[attr-defined]
        parameters += [
            one.replace(name=name, default=defaults[name], annotation=types[name]) for name in types
        ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(*(values.pop(field) for field in kind._fields))
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
