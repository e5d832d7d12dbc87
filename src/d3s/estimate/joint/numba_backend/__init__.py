"""Compiled loops of the joint method, stage by stage: single precision, rows among the cores.

Each module holds a class of operations and the loops behind it. The loops are private: contiguous
float32, written into given arrays, with (start, stop) first for `threads.over_rows`. What comes out
does not depend on how the rows were shared out. `estimate.plain` has the same operations in NumPy.
"""
