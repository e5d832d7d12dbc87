"""Figures and HTML pages.

In come results of the other packages (depth maps, pairs, calibrations, sweeps); out come Matplotlib
figures, image files and HTML pages. Nothing is computed here except what a scale or a legend needs.

truth               pairs with their truth, depth maps beside it, contact sheets
demo                figure and page of `d3s demo`
design              page of a design, and its figures
calibration         report of a calibration
calibration_plots   its figures
check               report of a check, with the trend of earlier ones
methods             one style per method; charts of `d3s compare` and `d3s evaluate stereo`
reproduction, reproduction_accuracy
                    figures of the paper, drawn again
plots               parts of figures that several of them have, and the figure of the optics
page                shell of all pages, page.html, and templates with their words
"""
