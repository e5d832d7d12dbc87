"""SIMD vectors in compiled loops.

LLVM does not vectorise loops over many arrays at once by itself. The loops that matter therefore
say which vectors they use: a value of the type `Vector` is a vector of 8 floats or 16 shorts
with the arithmetic of numbers, on any processor (LLVM splits it where registers are narrower).

Contract
--------
- Use these functions inside functions compiled by `d3s.runtime.compile` only.
- Arrays are one-dimensional and contiguous, of float32, int16 or uint8; views of the loops' own
  scratch memory or of arrays from `d3s.runtime.scratch`.
- Places are NOT checked. `load_8`, `load_16` and `store` touch 8 or 16 elements from the place on,
  up to 64 bytes: the caller allocates that much beyond the last element it means to use. Arrays
  of `d3s.runtime.scratch` have 64 readable bytes behind their end, which must not be written.
- Places need no alignment beyond that of one element.
- Arithmetic is between vectors of one type, or a vector and a number of its element type. Nothing
  is fused or reordered: results are those of the scalar loop, bit for bit.
- The module extends Numba by `numba.extending` and builds LLVM code by `llvmlite.ir`. Both
  packages are therefore bounded in pyproject.toml to the versions that `make test` and
  `make test-lowest` have passed with; raise a bound only after running them.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

FLOATS, SHORTS = 8, 16  # elements of a vector of float32 and of int16


class Vector(types.Type):
    """Numba type of a SIMD vector."""

    def __init__(self, element: Any, count: int) -> None:
        self.element, self.count = element, count
        super().__init__(name=f"Vector({element}, {count})")


class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        element = manager.lookup(vector.element).get_data_type()
        data_type = ir.VectorType(element, vector.count)
        super().__init__(manager, vector, data_type)  # type: ignore[no-untyped-call]


register_model(Vector)(_VectorModel)


def _intrinsic(typing_and_code: Any) -> Any:
    """Return a function of compiled code from its types and its LLVM code."""
    return intrinsic(typing_and_code)


# Arithmetic between vectors, and between a vector and a number of its element type.


class _Arithmetic(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2:
            return None
        vector = next((kind for kind in args if isinstance(kind, Vector)), None)
        if vector is None or any(kind not in (vector, vector.element) for kind in args):
            return None
        return vector(*args)


def _lower_arithmetic(sign: Any, of_floats: str, of_integers: str) -> None:
    register: Any = infer_global(sign)  # type: ignore[no-untyped-call]
    register(type(f"_{of_floats}", (_Arithmetic,), {}))

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = signature.return_type
        values = [
            value if isinstance(kind, Vector) else _splat(builder, value, vector.count)
            for kind, value in zip(signature.args, args, strict=True)
        ]
        name = of_floats if isinstance(vector.element, types.Float) else of_integers
        return getattr(builder, name)(*values)

    for kinds in ((Vector, Vector), (Vector, types.Number), (types.Number, Vector)):
        lowered: Any = lower_builtin(sign, *kinds)  # type: ignore[no-untyped-call]
        lowered(code)


_lower_arithmetic(operator.add, "fadd", "add")
_lower_arithmetic(operator.sub, "fsub", "sub")
_lower_arithmetic(operator.mul, "fmul", "mul")
_lower_arithmetic(operator.truediv, "fdiv", "sdiv")


def _splat(builder: Any, number: Any, count: int) -> Any:
    none = ir.Constant(ir.VectorType(number.type, count), ir.Undefined)
    one = builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    return builder.shuffle_vector(one, none, order)


# Loads and stores.


def _pointer(context: Any, builder: Any, kind: Any, count: int, array: Any, place: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    data_type = ir.VectorType(context.get_data_type(kind.dtype), count)
    return builder.bitcast(builder.gep(data, [place]), data_type.as_pointer())


def _load(count: int) -> Any:
    def typing_and_code(_: Any, array: Any, place: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_pointer(context, builder, array, count, *args))
            value.align = array.dtype.bitwidth // 8
            return value

        return Vector(array.dtype, count)(array, types.intp), code

    return _intrinsic(typing_and_code)


def _store(_: Any, array: Any, place: Any, vector: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, array, vector.count, *args[:2])
        builder.store(args[2], pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


def _splat_number(count: int) -> Any:
    def typing_and_code(_: Any, number: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _splat(builder, args[0], count)

        return Vector(number, count)(number), code

    return _intrinsic(typing_and_code)


def _splat_element(_: Any, array: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        return _splat(builder, builder.load(builder.gep(data, [args[1]])), FLOATS)

    return Vector(array.dtype, FLOATS)(array, types.intp), code


# Comparisons.


def _compared(builder: Any, sign: str, vector: Any, a: Any, b: Any) -> Any:
    is_float = isinstance(vector.element, types.Float)
    return (builder.fcmp_ordered if is_float else builder.icmp_signed)(sign, a, b)


def _extreme(sign: str) -> Any:
    def typing_and_code(_: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compared(builder, sign, a, *args), *args)

        return a(a, b), code

    return _intrinsic(typing_and_code)


def _select(sign: str) -> Any:
    def typing_and_code(_: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compared(builder, sign, a, *args[:2]), *args[2:])

        return then(a, b, then, otherwise), code

    return _intrinsic(typing_and_code)


def _sqrt(_: Any, vector: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data_type = args[0].type
        name = f"llvm.sqrt.v{vector.count}f{vector.element.bitwidth}"
        kind = ir.FunctionType(data_type, [data_type])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, args)

    return vector(vector), code


def _count_different_bits(_: Any, a: Any, b: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        different = builder.xor(*args)
        data_type = different.type
        name = f"llvm.ctpop.v{a.count}i{data_type.element.width}"
        kind = ir.FunctionType(data_type, [data_type])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, [different])

    return a(a, b), code


# Permutations, reductions and conversions.


def _indices(numbers: Any) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))


def _shift(first: int) -> Any:
    def typing_and_code(_: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.shuffle_vector(*args, _indices(range(first, first + SHORTS)))

        return a(a, b), code

    return _intrinsic(typing_and_code)


def _reverse(_: Any, vector: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.shuffle_vector(args[0], args[0], _indices(range(vector.count - 1, -1, -1)))

    return vector(vector), code


def _reduce_min(_: Any, vector: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data_type = args[0].type
        name = f"llvm.vector.reduce.smin.v{vector.count}i{data_type.element.width}"
        kind = ir.FunctionType(data_type.element, [data_type])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, args)

    return vector.element(vector), code


def _reduce_sum(_: Any, vector: Any) -> Any:
    """Add the upper half to the lower one until one element is left: a fixed order."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (value,) = args
        count = vector.count
        while count > 1:
            count //= 2
            near, far = range(count), range(count, 2 * count)
            halves = (builder.shuffle_vector(value, value, _indices(half)) for half in (near, far))
            value = builder.fadd(*halves)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return vector.element(vector), code


def _convert(kind: Any, operation: str) -> Any:
    def typing_and_code(_: Any, vector: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data_type = ir.VectorType(context.get_data_type(kind), vector.count)
            return getattr(builder, operation)(args[0], data_type)

        return Vector(kind, vector.count)(vector), code

    return _intrinsic(typing_and_code)


def _zero_tuple(_: Any, window: Any) -> Any:
    kind: Any = types.UniTuple
    several = kind(Vector(types.float32, FLOATS), window.count)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(several), None)

    return several(window), code


def _push(_: Any, several: Any, vector: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out = args[0]
        for place in range(1, several.count):
            out = builder.insert_value(out, builder.extract_value(args[0], place), place - 1)
        return builder.insert_value(out, args[1], several.count - 1)

    return several(several, vector), code


def _sum_tuple(_: Any, several: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total = builder.extract_value(args[0], 0)
        for place in range(1, several.count):
            total = builder.fadd(total, builder.extract_value(args[0], place))
        return total

    return several.dtype(several), code


def _transpose(_: Any, source: Any, place: Any, stride: Any, out: Any, out_place: Any) -> Any:
    """Transpose 16 x 16 shorts: 8 x 8 in each half of the vectors, then the halves."""
    low = [0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27]
    high = [number + 4 for number in low]
    halves = [[*range(8), *range(16, 24)], [*range(8, 16), *range(24, 32)]]

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def mixed(a: Any, b: Any, order: list[int]) -> Any:
            return builder.shuffle_vector(a, b, _indices(order))

        def place_of(kind: Any, array: Any, first: Any, step: Any, count: int) -> Any:
            further = builder.mul(step, ir.Constant(step.type, count))
            return _pointer(context, builder, kind, SHORTS, array, builder.add(first, further))

        rows = []
        for row in range(SHORTS):
            rows.append(builder.load(place_of(source, args[0], args[1], args[2], row)))
            rows[-1].align = 2
        sixteen = ir.Constant(args[4].type, SHORTS)
        eights = [rows[:8], rows[8:]]
        for _ in range(3):
            eights = [
                [mixed(v[i // 2], v[i // 2 + 4], high if i % 2 else low) for i in range(8)]
                for v in eights
            ]
        for col in range(SHORTS):
            value = mixed(eights[0][col % 8], eights[1][col % 8], halves[col // 8])
            builder.store(value, place_of(out, args[3], args[4], sixteen, col)).align = 2
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, out, types.intp), code


load_8, load_16 = _load(FLOATS), _load(SHORTS)
"""(array, place): the elements from a place on."""
store = _intrinsic(_store)
"""(array, place, vector): write the elements from a place on."""
splat_8, splat_16 = _splat_number(FLOATS), _splat_number(SHORTS)
"""(number): a vector of equal elements."""
splat_from = _intrinsic(_splat_element)
"""(array, place): a vector of 8 times the element at a place."""
minimum, maximum = _extreme("<"), _extreme(">")
"""(a, b): per element; b where either is NaN."""
select_less, select_at_most, select_equal = _select("<"), _select("<="), _select("==")
"""(a, b, then, otherwise): per element, by the comparison of a with b; otherwise if NaN."""
sqrt = _intrinsic(_sqrt)
count_different_bits = _intrinsic(_count_different_bits)
"""(a, b), vectors of integers: how many bits differ, per element."""
shift_up = _shift(SHORTS - 1)
"""(before, here): the last element of `before`, then all but the last of `here`."""
shift_down = _shift(1)
"""(here, after): all but the first element of `here`, then the first of `after`."""
reverse = _intrinsic(_reverse)
transpose_16 = _intrinsic(_transpose)
"""(source, place, stride, out, place): 16 rows of 16 shorts to 16 columns."""
reduce_min = _intrinsic(_reduce_min)
"""(vector of integers): its smallest element."""
reduce_sum = _intrinsic(_reduce_sum)
"""(vector of floats): the sum of its elements."""
as_int16 = _convert(types.int16, "zext")
"""(vector of uint8)."""
as_float32 = _convert(types.float32, "sitofp")
"""(vector of int16)."""
truncate = _convert(types.int16, "fptosi")
"""(vector of float32): int16, rounded towards zero."""
as_uint8 = _convert(types.uint8, "trunc")
"""(vector of int16): the low byte."""
zero_tuple = _intrinsic(_zero_tuple)
"""(tuple): as many vectors of 8 zeros as the tuple is long."""
push = _intrinsic(_push)
"""(tuple of vectors, vector): the tuple without its first vector, and with a new last one."""
sum_tuple = _intrinsic(_sum_tuple)
"""(tuple of vectors): their sum."""
