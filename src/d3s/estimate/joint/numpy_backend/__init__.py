"""The operations of the joint method in plain NumPy and double precision: its oracle.

Slow and short. `estimate.kernels` has the same operations compiled, and is held against these.
"""
