"""Figures and HTML pages.

In come results of the other packages (depth maps, pairs, calibrations, sweeps); out come Matplotlib
figures, image files and HTML pages. Nothing is computed here except what a scale or a legend needs.

depth             depth map beside the ground truth of its pair
result            depth map alone: left view, depth, sigma, reasons of holes
dense             densified depth map: measured, filled and open parts
notebook          HTML of a depth map in a notebook
preview           depth map in colours, with a colour bar
demo              figure and page of `d3s demo`
optics            blur, disparity and smallest possible error over depth
design            errors over depth and the front of a search, of `d3s design`
design_page       page of a design, with sliders
scene             contact sheets of simulated pairs, textures and scenes
calibration       report of a calibration, with its plots in calibration_plots and field_plots
check             report of a check, with the trend of earlier ones
league, methods   charts of `d3s compare`, with one colour per method
stereo            chart of `d3s evaluate stereo`
reproduction, reproduction_accuracy, reproduction_consensus
                  figures of the paper, drawn again

panels            one image with title and colour bar: the parts of most figures
page              HTML blocks: the parts of all pages
save              figures written to files
"""
