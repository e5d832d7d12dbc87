"""Design of a camera: optics in, limits of its depth out, before a single image is taken.

limits  blur, disparity and Cramér-Rao bound of the depth at each depth of a range
"""
