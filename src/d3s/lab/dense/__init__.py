"""Dense depth: holes filled in as far as they can be known, frames fused, and meshes.

fill         `densify`: measured depths stay, holes get a depth, a sigma and a flag
surfaces     planes around each cell, by the evidence on its side of the edges of the left view
filters      frames of a still or slowly moving camera fused, and neighbours averaged
marigold     holes filled by Marigold-DC, a diffusion network with local weights
mesh         meshes of depth maps, as GLB and PLY files
"""

from d3s.lab.dense.fill import densify, estimate_dense
from d3s.lab.dense.filters import TemporalFilter, fuse, smooth
from d3s.lab.dense.mesh import write_mesh

__all__ = ["TemporalFilter", "densify", "estimate_dense", "fuse", "smooth", "write_mesh"]
