"""Alignment of a camera while it is built: raw frames in, what to turn and which way out.

measure      `measure`: one raw frame and the design in, readings out
quantities   units, targets, limits and directions of all readings; steps of the work, with verdicts
light        exposure and clipping, shadow of the partition, both fields
geometry     places that both halves show; rows, roll, scale and turn; brightness of both halves
focus        sharpness over the field, and the focus difference
session      `Session`: a source that is measured in threads, and calibrated; `Watch`: averages
filing       captures that are checked and filed with distances.csv
feed         sessions of the page, whose files are in the folder `page`
"""

from d3s.camera.align.measure import Alignment, measure
from d3s.camera.align.quantities import Reading

__all__ = ["Alignment", "Reading", "measure"]
