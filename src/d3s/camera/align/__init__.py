"""Alignment of a camera while it is built: raw frames in, what to turn and which way out.

measure      `measure`: one raw frame and the design in, readings out
quantities   units, targets, limits and directions of all readings; steps of the work, with verdicts
light        exposure and clipping, shadow of the partition, both fields
matching     places that both halves show
geometry     rows, roll, scale and turn of the baseline; brightness of one half over the other
focus        sharpness over the field, and the focus difference
watch        `Watch`: readings averaged over frames, and the best sharpness
session      `Session`: a source that is measured in threads; calibration of what was filed
filing       captures that are checked and filed with distances.csv
feed         sessions of the page, whose files are in the folder `page`
"""

from d3s.camera.align.measure import Alignment, measure
from d3s.camera.align.quantities import Reading

__all__ = ["Alignment", "Reading", "measure"]
