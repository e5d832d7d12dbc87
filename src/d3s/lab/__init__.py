"""Where the instrument is tried: simulators, methods of others, evaluation, and design.

The core of the package imports nothing of this.

twin        the digital twin: textures and scenes in; a pair or a raw frame, with its truth, out
rooms       path-traced rooms, a second twin
peers       methods of others behind the same call
dense       holes of a depth map filled in, frames fused, meshes
evaluate    metrics against the truth, sweeps over many pairs, stereo data sets
design      from optics to the precision that a camera reaches, and from a wish to cameras
reproduce   figures and tables of the paper, one item each
view        figures and HTML pages
demo        one simulated snapshot, three methods
"""
