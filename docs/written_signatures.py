"""Signatures for the API page, with types as they are written in the source.

Python evaluates annotations: `Image` becomes `ndarray[tuple[Any, ...], dtype[float32]]`, and
`ArrayLike` fills five lines. So the text of the annotations is read from the source instead. Names
of our own classes are qualified (`~d3s.rig.rig.Rig`): Sphinx shows the last part, and links it.
"""

import ast
import inspect
import re
import sys
from dataclasses import MISSING
from textwrap import dedent
from typing import Any

from pydantic import BaseModel

_FIRST = ("self", "cls")
Signature = tuple[str | None, str | None]


def written_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> Signature | None:
    """Handler of Sphinx's `autodoc-process-signature`: the signature as written, or None."""
    if what == "class":
        return _of_class(obj, signature)
    if what in ("function", "method"):
        return _of_function(obj)
    return None


def _of_function(function: Any) -> Signature | None:
    node = _node(inspect.unwrap(function))
    if not isinstance(node, ast.FunctionDef):
        return None
    arguments = node.args
    for group in (arguments.posonlyargs, arguments.args):
        if group and group[0].arg in _FIRST:
            del group[0]
    module = function.__module__
    returns = None if node.returns is None else _text(node.returns, module)
    return f"({_text(arguments, module)})", returns


def _of_class(cls: type, shown: str | None) -> Signature | None:
    """Constructor of a record, a data class or a named tuple; others keep what Sphinx shows."""
    is_record = issubclass(cls, BaseModel)
    if not shown or not (is_record or hasattr(cls, "__dataclass_fields__") or _is_named_tuple(cls)):
        return None
    types = _field_types(cls)
    factories = {
        field.name: _Written(f"{field.default_factory.__name__}()")
        for field in getattr(cls, "__dataclass_fields__", {}).values()
        if field.default_factory is not MISSING
    }
    parameters = [
        one.replace(
            annotation=_Written(_type_text(one, types, is_record=is_record)),
            default=factories.get(one.name, _named(one.default)),
        )
        for one in inspect.signature(cls).parameters.values()
    ]
    return str(inspect.Signature(parameters)), None


def _type_text(one: inspect.Parameter, types: dict[str, str], *, is_record: bool) -> str:
    """Type of a field: of a record without its constraints, of others as written."""
    formatted = _formatted(one.annotation)
    if is_record and "Annotated" not in formatted:
        return formatted
    return types.get(one.name, formatted)


def _named(default: Any) -> Any:
    """Default value; a function prints as its name."""
    return _Written(default.__name__) if inspect.isfunction(default) else default


class _Written:
    """Annotation that prints as its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _field_types(cls: type) -> dict[str, str]:
    """Text of the annotation of each field, those of base classes included."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        node = _node(base) if base.__module__.startswith("d3s") else None
        if isinstance(node, ast.ClassDef):
            found |= {
                line.target.id: _text(line.annotation, base.__module__)
                for line in node.body
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
            }
    return found


def _formatted(annotation: Any) -> str:
    """Type as Python prints it; of our own classes only the last part is shown."""
    return re.sub(r"\bd3s\.", "~d3s.", inspect.formatannotation(annotation))


def _node(obj: Any) -> ast.stmt | None:
    try:
        return ast.parse(dedent(inspect.getsource(obj))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None


class _Plain(ast.NodeTransformer):
    """Annotations without quotes, and without constraints: Annotated[float, ...] is float."""

    def __init__(self, module: str) -> None:
        self._names = vars(sys.modules[module])

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Qualify our own classes."""
        named = self._names.get(node.id)
        if isinstance(named, type) and named.__module__.startswith("d3s."):
            path = ast.parse(f"{named.__module__}.{named.__qualname__}", mode="eval").body
            return ast.UnaryOp(ast.Invert(), path)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        """All parameters; defaults stay as they are."""
        for group in (node.posonlyargs, node.args, node.kwonlyargs, [node.vararg, node.kwarg]):
            for one in group:
                if one is not None:
                    self.visit(one)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Annotation of a parameter."""
        if node.annotation is not None:
            node.annotation = self.visit(_unquoted(node.annotation))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Type behind its constraints."""
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return self.visit(first)
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return node
        return self.generic_visit(node)


def _unquoted(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ast.parse(node.value, mode="eval").body
    return node


def _text(node: ast.AST, module: str) -> str:
    return ast.unparse(_Plain(module).visit(_unquoted(node)))
