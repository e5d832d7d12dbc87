"""Kernels: each operation has its oracle, with the same parameters."""

import inspect

from oracle import operations


def test_every_operation_has_an_oracle_with_the_same_parameters():
    found = list(operations())
    assert len(found) > 25
    for module, name, ours, theirs in found:
        own = list(inspect.signature(ours).parameters)
        known = list(inspect.signature(theirs).parameters)
        assert own == ["memory", *known], f"{module.__name__}.{name}"
