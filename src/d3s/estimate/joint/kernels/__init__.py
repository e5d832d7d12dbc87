"""Compiled loops of the joint method: single precision, rows shared among threads.

Each module has functions over whole images, which allocate their results in scratch memory, and
below them the loops that these run. `tests/oracle` has the same functions in NumPy and double
precision.

prefilter    centring, smoothing, noise
filters      means, median, and images of half and twice the size
costs        matching costs of whole shifts
paths        semi-global paths and the best shift
cells        sums over cells
windows      least squares over windows of cells
window_sums  sums over the windows of a row of cells
surfaces     windows on one surface; slopes and bends of surfaces
grids        cells of one size from cells of another
lenses       blur and disparity of lenses over the field
support      texture around cells, and the probability of being wrong
confidence   depth, sigma, confidence and flags
"""
