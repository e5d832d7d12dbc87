"""Dense depth: holes filled in as far as they can be known, frames fused, and meshes.

fill         `densify`: measured depths stay, holes get a depth, a sigma and a flag
evidence     measured and weak depths, and the left view as a guide
propagation  evidence along paths, along planes in inverse depth, and as a mean over surfaces
candidates   candidates of a pixel, and the group that agrees best
judge        chance of another surface, and error on the right one, by small networks
model        fitted numbers, and sigma from them
filters      frames of a still or slowly moving camera fused, and neighbours averaged
marigold     holes filled by Marigold-DC, a diffusion network with local weights
mesh         meshes of depth maps, as GLB and PLY files
"""

from d3s.lab.dense.fill import densify, estimate_dense
from d3s.lab.dense.filters import TemporalFilter, fuse, smooth
from d3s.lab.dense.mesh import write_mesh

__all__ = ["TemporalFilter", "densify", "estimate_dense", "fuse", "smooth", "write_mesh"]
