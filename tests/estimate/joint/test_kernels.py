"""Kernels: each operation has its oracle, and kernels are called by name."""

import ast
import inspect
from pathlib import Path

import d3s
from oracle import operations

SOURCE = Path(d3s.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
COMPILED = {"compiled", "part", "inlined"}
KERNELS = [
    (f"{path.relative_to(SOURCE)}: {node.name}", node)
    for path in MODULES
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.FunctionDef)
    and COMPILED & {ast.unparse(decorator) for decorator in node.decorator_list}
]


def test_every_operation_has_an_oracle_with_the_same_parameters():
    found = list(operations())
    assert len(found) > 25
    for module, name, ours, theirs in found:
        own = list(inspect.signature(ours).parameters)
        known = list(inspect.signature(theirs).parameters)
        assert own == ["memory", *known], f"{module.__name__}.{name}"


def test_no_kernel_has_more_than_12_parameters():
    assert len(KERNELS) > 80
    sizes = {name: len(node.args.args) + len(node.args.kwonlyargs) for name, node in KERNELS}
    assert not [name for name, size in sizes.items() if size > 12]


def test_no_kernel_reads_numbers_by_their_place():
    """Such as `numbers[7]`: they are fields of named tuples."""
    wrong = [
        f"{name}: {ast.unparse(node)}"
        for name, kernel in KERNELS
        for node in ast.walk(kernel)
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, int)
        and node.slice.value > 3
    ]
    assert not wrong
