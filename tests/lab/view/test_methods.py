"""How methods are drawn: who can be told from whom, and by what."""

from itertools import combinations

import matplotlib.colors
import numpy as np
import pytest

from d3s.estimate.methods import methods
from d3s.lab.view.methods import styles_of

# What eyes without one kind of cone make of linear light (Machado and others, 2009).
EYES = {
    "all cones": np.eye(3),
    "no long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no middle": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no short": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
# From linear light to the XYZ of a white of one, for CIE L*a*b*.
TO_XYZ = [[0.4339, 0.3762, 0.1899], [0.2127, 0.7152, 0.0722], [0.0178, 0.1095, 0.8728]]


def lab(colour, eye):
    """L*, a* and b* of a colour, as such eyes see it."""
    share = np.array(matplotlib.colors.to_rgb(colour))
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(eye @ light, 0, 1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", EYES.values(), ids=EYES)
def test_every_pair_differs_by_colour_or_by_line(eye):
    """A step of 10 is seen at once; lines of one kind must differ by two of them."""
    styles = styles_of(methods())
    seen = {name: lab(style.colour, np.array(eye)) for name, style in styles.items()}
    for one, other in combinations(styles, 2):
        alike = styles[one].line == styles[other].line
        assert np.linalg.norm(seen[one] - seen[other]) > (20 if alike else 10), (one, other)
