"""What the joint method does to images, twice over: compiled in single precision, and plain.

The method itself (`joint`, `search`, `refine`, `judge`) is written once, over these operations. The
plain ones are what the compiled ones are held against.
"""

from typing import TYPE_CHECKING, NamedTuple

from d3s.memory import Memory

if TYPE_CHECKING:
    from d3s.estimate.kernels.judge import CompiledJudge
    from d3s.estimate.kernels.prefilter import CompiledPrefilter
    from d3s.estimate.kernels.refine import CompiledRefine
    from d3s.estimate.kernels.search import CompiledSearch
    from d3s.estimate.plain.judge import PlainJudge
    from d3s.estimate.plain.prefilter import PlainPrefilter
    from d3s.estimate.plain.refine import PlainRefine
    from d3s.estimate.plain.search import PlainSearch


class Operations(NamedTuple):
    """Those of each stage."""

    prefilter: "CompiledPrefilter | PlainPrefilter"
    search: "CompiledSearch | PlainSearch"
    refine: "CompiledRefine | PlainRefine"
    judge: "CompiledJudge | PlainJudge"


def compiled_operations(memory: Memory) -> Operations:
    """Single precision, machine code, rows shared out among the cores, arrays out of a memory."""
    from d3s.estimate.kernels.judge import CompiledJudge
    from d3s.estimate.kernels.prefilter import CompiledPrefilter
    from d3s.estimate.kernels.refine import CompiledRefine
    from d3s.estimate.kernels.search import CompiledSearch

    return Operations(
        CompiledPrefilter(memory),
        CompiledSearch(memory),
        CompiledRefine(memory),
        CompiledJudge(memory),
    )


def plain_operations() -> Operations:
    """Double precision, NumPy."""
    from d3s.estimate.plain.judge import PlainJudge
    from d3s.estimate.plain.prefilter import PlainPrefilter
    from d3s.estimate.plain.refine import PlainRefine
    from d3s.estimate.plain.search import PlainSearch

    return Operations(PlainPrefilter(), PlainSearch(), PlainRefine(), PlainJudge())
