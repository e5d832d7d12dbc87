"""Several numbers at once, in compiled loops.

A loop over many arrays at once is more than the compiler makes vectors of by itself. So the loops
that count say what they want: a value of the type `Lanes` is a vector of the machine, whatever
machine it is, with the arithmetic of numbers. An array is given flat, and places in it are not
checked.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

EIGHT = 8  # floats of a vector of most machines


class Lanes(types.Type):
    """Several numbers of one type."""

    def __init__(self, element: Any, count: int) -> None:
        self.element, self.count = element, count
        super().__init__(name=f"Lanes({element}, {count})")


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        element = manager.lookup(lanes.element).get_data_type()
        vector = ir.VectorType(element, lanes.count)
        super().__init__(manager, lanes, vector)  # type: ignore[no-untyped-call]


register_model(Lanes)(_LanesModel)


# Arithmetic: lanes with lanes, and lanes with one number of their type.


class _Arithmetic(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2:
            return None
        lanes = next((kind for kind in args if isinstance(kind, Lanes)), None)
        if lanes is None or any(kind not in (lanes, lanes.element) for kind in args):
            return None
        return lanes(*args)


def _lower_arithmetic(sign: Any, of_floats: str, of_integers: str) -> None:
    infer_global(sign)(type(f"_{of_floats}", (_Arithmetic,), {}))

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = signature.return_type
        values = [
            value if isinstance(kind, Lanes) else _same(builder, value, lanes.count)
            for kind, value in zip(signature.args, args, strict=True)
        ]
        name = of_floats if isinstance(lanes.element, types.Float) else of_integers
        return getattr(builder, name)(*values)

    for kinds in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(sign, *kinds)(code)


_lower_arithmetic(operator.add, "fadd", "add")
_lower_arithmetic(operator.sub, "fsub", "sub")
_lower_arithmetic(operator.mul, "fmul", "mul")
_lower_arithmetic(operator.truediv, "fdiv", "sdiv")


def _same(builder: Any, number: Any, count: int) -> Any:
    none = ir.Constant(ir.VectorType(number.type, count), ir.Undefined)
    one = builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    return builder.shuffle_vector(one, none, order)


# Between arrays and lanes.


def _where(context: Any, builder: Any, kind: Any, count: int, array: Any, place: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    vector = ir.VectorType(context.get_data_type(kind.dtype), count)
    return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())


def _load(_: Any, array: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_where(context, builder, array, EIGHT, *args))
        value.align = array.dtype.bitwidth // 8
        return value

    return Lanes(array.dtype, EIGHT)(array, types.intp), code


def _store(_: Any, array: Any, place: Any, lanes: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = _where(context, builder, array, lanes.count, *args[:2])
        builder.store(args[2], where).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


def _spread(_: Any, number: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _same(builder, args[0], EIGHT)

    return Lanes(number, EIGHT)(number), code


# Choices.


def _compared(builder: Any, sign: str, lanes: Any, a: Any, b: Any) -> Any:
    is_float = isinstance(lanes.element, types.Float)
    return (builder.fcmp_ordered if is_float else builder.icmp_signed)(sign, a, b)


def _extreme(sign: str) -> Any:
    def typed(_: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compared(builder, sign, a, *args), *args)

        return a(a, b), code

    return intrinsic(typed)


def _chosen(sign: str) -> Any:
    def typed(_: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compared(builder, sign, a, *args[:2]), *args[2:])

        return then(a, b, then, otherwise), code

    return intrinsic(typed)


def _root(_: Any, lanes: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = args[0].type
        name = f"llvm.sqrt.v{lanes.count}f{lanes.element.bitwidth}"
        kind = ir.FunctionType(vector, [vector])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, args)

    return lanes(lanes), code


load = intrinsic(_load)  # (flat array, place)
store = intrinsic(_store)  # (flat array, place, lanes)
spread = intrinsic(_spread)  # one number, eight times
lower, higher = _extreme("<"), _extreme(">")  # of two; the second if one is no number
if_lower = _chosen("<")  # (a, b, then, otherwise); otherwise if one is no number
if_at_most = _chosen("<=")
if_equal = _chosen("==")
root = intrinsic(_root)
