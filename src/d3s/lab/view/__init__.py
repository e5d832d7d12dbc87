"""Figures and HTML pages.

In come results of the other packages (depth maps, pairs, calibrations, sweeps); out come Matplotlib
figures, image files and HTML pages. Nothing is computed here except what a scale or a legend needs.

truth               depth map beside the ground truth of its pair, as estimated and densified
demo                figure and page of `d3s demo`
optics              blur, disparity and smallest possible error over depth
design              errors over depth and the front of a search, of `d3s design`
design_page         page of a design
scene               contact sheets of simulated pairs, textures and scenes
calibration         report of a calibration
calibration_plots   its figures
check               report of a check, with the trend of earlier ones
methods             one style per method; charts of `d3s compare` and `d3s evaluate stereo`
reproduction, reproduction_accuracy
                    figures of the paper, drawn again
plots               parts of figures that several of them have
page                HTML blocks: the parts of all pages
"""
