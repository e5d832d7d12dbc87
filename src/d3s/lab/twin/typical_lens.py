"""Errors of a typical lens: a stock achromat of 12 mm at f/6, by ray trace.

`benchmarks/ray_trace.py` traces the cemented achromat AC064-013-A of Thorlabs, scaled to the focal
length of the paper's prototype, with a stop of 2 mm at its front; `benchmarks/results/
lens_trace.json` holds all figures and is the origin of these. Light has 550 nm. Places r are
distances from the axis of the lens in an upright view, as a vector of unit `FIELD_RADIUS_PX`;
points u of the opening are in units of its radius, with X to the right and Y down as in the scene.

The cat-eye pupil is that of the same lens with 2 mm of glass, cut to 2 mm across: small lenses
clip oblique light at their rear face. It takes 4 % of the light at the field radius, which is not
in `FALLOFF`.
"""

FIELD_RADIUS_PX = 902.0
"""Distance from the axis of the side of a view of 902 x 1802, in pixels of 2 um (8.5 degrees)."""

FOCUS_SAGITTAL_M = 0.0002093
"""Field curvature: the image across the radius is nearer to the lens by this times |r|², in m."""

FOCUS_TANGENTIAL_M = 0.000438
"""Field curvature: the image along the radius is nearer to the lens by this times |r|², in m."""

DISTORTION_3 = -0.001743
"""Distortion of 3rd order: places are r (1 + this |r|² + ...), with r that of a perfect lens."""

DISTORTION_5 = 1.016e-05
"""Distortion of 5th order, the factor of |r|⁴."""

FALLOFF = 0.03553
"""Loss of light without clipping: illumination is 1 - this |r|²."""

COMA_WAVES = 0.3998
"""Coma: the path is longer by this times |u|² (u . r), in waves; light lies nearer to the axis."""

SPHERICAL_WAVES = -0.08796
"""Spherical aberration: the path is longer by this times |u|⁴, in waves, everywhere."""

CAT_EYE_RADIUS = 1.109
"""Radius of a second opening, that of the rear face seen through the lens, in opening radii."""

CAT_EYE_SHIFT = 0.206
"""Middle of the second opening: u = this times r. Light passes where both openings are free."""
