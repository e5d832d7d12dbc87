"""Dense depth: holes of a depth map filled in, as far as they can be known.

fill         `densify`: measured depths stay, holes get a depth, a sigma and a flag
evidence     measured and weak depths, and the left view as a guide
sweeps       the nearest evidence on each of four sides
planes       planes through the evidence, in inverse depth
candidates   candidates of a pixel, and the group that agrees best
judge        chance of another surface, and error on the right one
model        fitted numbers, and sigma from them
"""

from d3s.dense.fill import densify

__all__ = ["densify"]
