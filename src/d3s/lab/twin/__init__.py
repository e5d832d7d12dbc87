"""The digital twin: a scene and a rig in, a pair or a raw sensor frame with its truth out.

Entry points::

    pair           `simulate`: a rectified pair with its truth
    raw            `simulate_raw`: one frame of the whole sensor
    recipe         a simulation as a TOML file
    folder         `render_folder`: files of a recipe
    sequence       distances of a series of planes

Scenes, as data::

    scenes         planes, layers, images with depth maps
    random_scene   random layered scenes from a seed, and masks of random objects
    textures       patterns and photos with a physical size
    patterns       procedural patterns
    lens_errors    errors of one lens, of both as a TOML file, and of typical lenses as traced
    sensor         noise, mismatch, fixed patterns, saturation, quantisation

Rendering, in the order of the light::

    geometry       views, mounting errors, planes and bent planes, and the maps between them
    sampling       rasters of a texture that a view needs, to pixels, through a perfect lens
    layers         sharp images of layers in each view, from front to back
    depth_map      slices of a depth-map scene, filled behind edges
    warp           slices moved to each view, and images as a lens with distortion draws them
    point_spread   point-spread functions, also of a lens with aberrations
    blur           defocus blur in the frequency domain
    lens_view      a view, its light and its depth through a lens with errors
    render         blend of blurred layers, with the light at edges; true depth and occlusion
"""
