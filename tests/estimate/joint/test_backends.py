"""The two back-ends: the oracle stays out of production, and kernels are called by name."""

import ast
import inspect
from pathlib import Path

import pytest

import d3s
from d3s.estimate.joint import backend
from d3s.estimate.joint.numba_backend import numba_backend
from d3s.estimate.joint.numpy_backend import numpy_backend
from d3s.runtime.scratch import Scratch

SOURCE = Path(d3s.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
ORACLE = SOURCE / "estimate" / "joint" / "numpy_backend"
COMPILED = {"compiled", "part", "inlined"}
STAGES = {
    "prefilter": backend.PrefilterOperations,
    "search": backend.SearchOperations,
    "refine": backend.RefineOperations,
    "support": backend.SupportOperations,
    "confidence": backend.ConfidenceOperations,
    "field": backend.FieldOperations,
}


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_production_does_not_import_the_oracle(path):
    if ORACLE not in path.parents:
        assert not [name for name in _imports(path) if "numpy_backend" in name]


def _kernels(path: Path) -> list[ast.FunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and COMPILED & {ast.unparse(decorator) for decorator in node.decorator_list}
    ]


def test_no_kernel_has_more_than_12_parameters():
    kernels = [(path, kernel) for path in MODULES for kernel in _kernels(path)]
    assert len(kernels) > 80
    too_many = [
        f"{path.relative_to(SOURCE)}: {kernel.name}"
        for path, kernel in kernels
        if len(kernel.args.args) + len(kernel.args.kwonlyargs) > 12
    ]
    assert not too_many


def test_no_kernel_reads_numbers_by_their_place():
    """Such as `numbers[7]`: they are fields of named tuples."""
    wrong = []
    for path in MODULES:
        for kernel in _kernels(path):
            for node in ast.walk(kernel):
                is_place = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
                if is_place and isinstance(node.slice.value, int) and node.slice.value > 3:
                    wrong.append(f"{path.relative_to(SOURCE)}: {kernel.name}: {ast.unparse(node)}")
    assert not wrong


@pytest.mark.parametrize("stage", STAGES)
def test_both_have_every_operation_with_the_same_parameters(stage):
    protocol = STAGES[stage]
    names = [name for name in vars(protocol) if not name.startswith("_")]
    assert names
    for operations in (numba_backend(Scratch()), numpy_backend()):
        for name in names:
            ours = inspect.signature(getattr(getattr(operations, stage), name)).parameters
            theirs = list(inspect.signature(getattr(protocol, name)).parameters)[1:]
            assert list(ours) == theirs, f"{type(getattr(operations, stage)).__name__}.{name}"
