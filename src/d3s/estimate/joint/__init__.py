"""The `joint` method: rectified views in; depth, sigma, confidence and flags per pixel out.

method      `estimate_joint`: the order of the stages, and the first and the last of them
plan        parameters that follow from options, camera and frame size
search      best whole shift of each pixel, by semi-global matching
balance     contrast of the right view, made equal to that of the left one
rows        rows by which the right view lies lower
refine      least-squares disparity of each cell, from coarse to fine
trust       probability of each cell that its disparity is wrong
correction  disparity of fits of shrunk views, measured for one camera
smoothing   Gaussian taps and their effect on noise
types       records that stages and loops exchange
kernels     the compiled loops, as functions over images
"""
