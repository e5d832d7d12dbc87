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
    lens_errors    errors of one lens: distortion, focus over the field, wavefront, light
    typical_lenses a stock lens as traced, and the differences between two of a kind
    lens_file      errors of both lenses as a TOML file
    sensor         noise, mismatch, saturation, quantisation
    fixed_patterns gain, offset and hot pixels of one sensor
    typical_lens   errors of a stock lens, by ray trace
    colour         coloured textures, and light behind the filters of a colour sensor

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
    distortion     images as a lens with distortion draws them
    spots          transfer functions of a lens with aberrations
    field_blur     blur that varies over the field
    lens_view      a view and its depth through a lens with errors
    stray_light    transmission, falloff, glare and crosstalk
    render         blend of blurred layers, with the light at edges
    truth          true depth, sharp image and occlusion
"""
