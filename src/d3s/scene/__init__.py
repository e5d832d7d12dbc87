"""The digital twin: scenes and textures in, a pair or a raw sensor frame with its truth out.

scenes        what can be in front of the camera: planes, layers (masks), depth maps
random_scene  all of that by chance, from a seed
textures      what is painted on it: patterns of ours (patterns, lattice, hashing), photos
sensor        noise, mismatch, saturation, grey levels
geometry      views, mounts, planes, and the maps between them
surface       which part of a texture a view needs, at which resolution (grid)
sampling      from texels to pixels, through a perfect lens
layers        planes as each camera sees them; depth_map, filling, warp: the same for depth maps
blur          what the lens makes of a sharp layer
occlusion     light that passes beside an edge
render        layers to one picture
pair, raw     `simulate` and `simulate_raw`
sequence, recipe, folder   many frames, on disk, to be made again
"""
