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

EIGHT, SIXTEEN = 8, 16  # floats and shorts of a vector of most machines


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


def _machine(typed: Any) -> Any:
    """A function of compiled code that says itself what the machine is to do."""
    return intrinsic(typed)


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
    register: Any = infer_global(sign)  # type: ignore[no-untyped-call]
    register(type(f"_{of_floats}", (_Arithmetic,), {}))

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = signature.return_type
        values = [
            value if isinstance(kind, Lanes) else _same(builder, value, lanes.count)
            for kind, value in zip(signature.args, args, strict=True)
        ]
        name = of_floats if isinstance(lanes.element, types.Float) else of_integers
        return getattr(builder, name)(*values)

    for kinds in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lowered: Any = lower_builtin(sign, *kinds)  # type: ignore[no-untyped-call]
        lowered(code)


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


def _loading(count: int) -> Any:
    def typed(_: Any, array: Any, place: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_where(context, builder, array, count, *args))
            value.align = array.dtype.bitwidth // 8
            return value

        return Lanes(array.dtype, count)(array, types.intp), code

    return _machine(typed)


def _store(_: Any, array: Any, place: Any, lanes: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = _where(context, builder, array, lanes.count, *args[:2])
        builder.store(args[2], where).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


def _spreading(count: int) -> Any:
    def typed(_: Any, number: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _same(builder, args[0], count)

        return Lanes(number, count)(number), code

    return _machine(typed)


def _spread_from(_: Any, array: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        return _same(builder, builder.load(builder.gep(data, [args[1]])), EIGHT)

    return Lanes(array.dtype, EIGHT)(array, types.intp), code


# Choices.


def _compared(builder: Any, sign: str, lanes: Any, a: Any, b: Any) -> Any:
    is_float = isinstance(lanes.element, types.Float)
    return (builder.fcmp_ordered if is_float else builder.icmp_signed)(sign, a, b)


def _extreme(sign: str) -> Any:
    def typed(_: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compared(builder, sign, a, *args), *args)

        return a(a, b), code

    return _machine(typed)


def _chosen(sign: str) -> Any:
    def typed(_: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compared(builder, sign, a, *args[:2]), *args[2:])

        return then(a, b, then, otherwise), code

    return _machine(typed)


def _root(_: Any, lanes: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = args[0].type
        name = f"llvm.sqrt.v{lanes.count}f{lanes.element.bitwidth}"
        kind = ir.FunctionType(vector, [vector])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, args)

    return lanes(lanes), code


# Order, and other kinds of numbers.


def _order(numbers: Any) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))


def _moved(first: int) -> Any:
    def typed(_: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.shuffle_vector(*args, _order(range(first, first + SIXTEEN)))

        return a(a, b), code

    return _machine(typed)


def _turned_round(_: Any, lanes: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.shuffle_vector(args[0], args[0], _order(range(lanes.count - 1, -1, -1)))

    return lanes(lanes), code


def _least(_: Any, lanes: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = args[0].type
        name = f"llvm.vector.reduce.smin.v{lanes.count}i{vector.element.width}"
        kind = ir.FunctionType(vector.element, [vector])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, args)

    return lanes.element(lanes), code


def _sum(_: Any, lanes: Any) -> Any:
    """The far half onto the near one, until one is left: always in the same order."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (value,) = args
        count = lanes.count
        while count > 1:
            count //= 2
            near, far = range(count), range(count, 2 * count)
            halves = (builder.shuffle_vector(value, value, _order(half)) for half in (near, far))
            value = builder.fadd(*halves)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return lanes.element(lanes), code


def _converted(kind: Any, operation: str) -> Any:
    def typed(_: Any, lanes: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(context.get_data_type(kind), lanes.count)
            return getattr(builder, operation)(args[0], vector)

        return Lanes(kind, lanes.count)(lanes), code

    return _machine(typed)


def _none(_: Any, window: Any) -> Any:
    kind: Any = types.UniTuple
    several = kind(Lanes(types.float32, EIGHT), window.count)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(several), None)

    return several(window), code


def _pushed(_: Any, several: Any, lanes: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out = args[0]
        for place in range(1, several.count):
            out = builder.insert_value(out, builder.extract_value(args[0], place), place - 1)
        return builder.insert_value(out, args[1], several.count - 1)

    return several(several, lanes), code


def _added(_: Any, several: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total = builder.extract_value(args[0], 0)
        for place in range(1, several.count):
            total = builder.fadd(total, builder.extract_value(args[0], place))
        return total

    return several.dtype(several), code


def _turn(_: Any, source: Any, place: Any, stride: Any, out: Any, out_place: Any) -> Any:
    """Sixteen by sixteen shorts: eight by eight in each half of the vectors, then the halves."""
    low = [0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27]
    high = [number + 4 for number in low]
    halves = [[*range(8), *range(16, 24)], [*range(8, 16), *range(24, 32)]]

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def mixed(a: Any, b: Any, order: list[int]) -> Any:
            return builder.shuffle_vector(a, b, _order(order))

        def place_of(kind: Any, array: Any, first: Any, step: Any, count: int) -> Any:
            further = builder.mul(step, ir.Constant(step.type, count))
            return _where(context, builder, kind, SIXTEEN, array, builder.add(first, further))

        rows = []
        for row in range(SIXTEEN):
            rows.append(builder.load(place_of(source, args[0], args[1], args[2], row)))
            rows[-1].align = 2
        sixteen = ir.Constant(args[4].type, SIXTEEN)
        eights = [rows[:8], rows[8:]]
        for _ in range(3):
            eights = [
                [mixed(v[i // 2], v[i // 2 + 4], high if i % 2 else low) for i in range(8)]
                for v in eights
            ]
        for col in range(SIXTEEN):
            value = mixed(eights[0][col % 8], eights[1][col % 8], halves[col // 8])
            builder.store(value, place_of(out, args[3], args[4], sixteen, col)).align = 2
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, out, types.intp), code


load_8, load_16 = _loading(EIGHT), _loading(SIXTEEN)  # (flat array, place)
store = _machine(_store)  # (flat array, place, lanes)
spread_8, spread_16 = _spreading(EIGHT), _spreading(SIXTEEN)  # one number several times
spread_from = _machine(_spread_from)  # (flat array, place): that number eight times
lower, higher = _extreme("<"), _extreme(">")  # of two; the second if one is no number
# (a, b, then, otherwise), by how a compares with b; otherwise if one is no number.
if_lower, if_at_most, if_equal = _chosen("<"), _chosen("<="), _chosen("==")
root = _machine(_root)
one_back = _moved(SIXTEEN - 1)  # (before, here): the last before, then all but the last here
one_on = _moved(1)  # (here, after): all but the first here, then the first after
turned_round = _machine(_turned_round)  # the last first
turn = _machine(_turn)  # (source, place, stride, out, place): sixteen rows to sixteen columns
least = _machine(_least)  # the lowest of sixteen integers
total = _machine(_sum)  # of all floats of a vector
shorts = _converted(types.int16, "zext")  # of bytes
floats = _converted(types.float32, "sitofp")  # of shorts
whole = _converted(types.int16, "fptosi")  # of floats
low_bytes = _converted(types.uint8, "trunc")  # of whole numbers
none_of = _machine(_none)  # tuple of eight zeros each, as long as another tuple
pushed = _machine(_pushed)  # (tuple of lanes, lanes): the first is lost, the last is new
added = _machine(_added)  # all lanes of a tuple
