"""Dense depth: holes filled in as far as they can be known, frames fused, and meshes.

fill         `densify`: measured depths stay, holes get a depth, a sigma and a flag
evidence     measured and weak depths, and the left view as a guide
sweeps       the nearest evidence on each of four sides
planes       planes through the evidence, in inverse depth
candidates   candidates of a pixel, and the group that agrees best
judge        chance of another surface, and error on the right one
network      small networks over features of a cell
model        fitted numbers, and sigma from them
average      mean of filled disparities along surfaces
temporal     fusion of frames of a still or slowly moving camera
spatial      depths averaged with neighbours on the same surface
marigold     holes filled by Marigold-DC, a diffusion network with local weights
mesh         meshes of depth maps, as GLB and PLY files
"""

from d3s.lab.dense.fill import densify, estimate_dense
from d3s.lab.dense.mesh import write_mesh
from d3s.lab.dense.spatial import smooth
from d3s.lab.dense.temporal import TemporalFilter, fuse

__all__ = ["TemporalFilter", "densify", "estimate_dense", "fuse", "smooth", "write_mesh"]
