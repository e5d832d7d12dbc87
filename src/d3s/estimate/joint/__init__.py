"""The `joint` method: rectified views in; depth, sigma, confidence and flags per pixel out.

method       `estimate_joint`: the order of the stages
plan         parameters that follow from options, camera and frame size
search       best whole shift of each pixel, by semi-global matching
repetition   texture that fits at several shifts
balance      contrast of the right view, made equal to that of the left one
refine       least-squares disparity of each cell, from coarse to fine
trust        probability of each cell that its disparity is wrong
confidence   depth, sigma, confidence and flags of each pixel
correction   disparity of fits of shrunk views, measured for one camera
model        depth and defocus as functions of the disparity
field        blur and disparity of lenses over the field
rows         rows by which the right view lies lower
holes        missing and clipped pixels
smoothing    Gaussian taps and their effect on noise
types        records that the stages exchange
backend      operations on images that each back-end implements
numba_backend   the operations compiled, in single precision: production
numpy_backend   the operations in NumPy and double precision: the oracle of the tests
"""
