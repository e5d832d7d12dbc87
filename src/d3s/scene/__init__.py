"""The digital twin: a scene and a rig in, a pair or a raw sensor frame with its truth out.

Entry points::

    pair           `simulate`: a rectified pair with its truth
    raw            `simulate_raw`: one frame of the whole sensor
    recipe         a simulation as a TOML file
    folder         `render_folder`: files of a recipe
    sequence       distances of a series of planes

Scenes, as data::

    scenes         planes, layers, images with depth maps
    random_scene   random layered scenes from a seed
    masks          outlines of random objects
    textures       patterns and photos with a physical size
    photos         image files as textures
    patterns       procedural patterns
    sensor         noise, mismatch, saturation, quantisation
    typical_lens   errors of a stock lens, by ray trace

Rendering, in the order of the light::

    geometry       views, mounting errors, planes, and the maps between them
    bend           bent planes: the pixel of the flat plane that each pixel sees
    surface        choice of the rasters of a texture that a view needs
    shading        slow variation of the light on a surface
    sampling       texels to pixels, through a perfect lens
    depth_order    order of layers from front to back
    layers         sharp images of layers in each view
    depth_map      slices of a depth-map scene (inpaint: behind edges; warp: to each view)
    blur           defocus blur in the frequency domain
    render         blend of blurred layers, with the light at edges
    truth          true depth, sharp image and occlusion
"""
