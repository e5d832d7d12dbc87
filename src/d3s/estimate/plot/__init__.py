"""Pictures of one depth map. Figures need Matplotlib, previews do not.

preview       depth in colours, with a colour bar
depth_figure  left view, depth, sigma, reasons of holes: `DepthMap.plot`
notebook      HTML of a depth map in a notebook
flag_colours  colours and legend of flags
panels        one image with title and colour bar: the parts of most figures
save          figures written to files
"""
