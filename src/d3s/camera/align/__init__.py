"""Alignment of a camera while it is built: raw frames in, what to turn and which way out.

measure      `measure`: one raw frame and the design in, readings out
quantities   units, targets, limits and directions of all readings
light        exposure and clipping, shadow of the partition, both fields
matching     places that both halves show
geometry     rows, roll, scale and turn of the baseline
focus        sharpness over the field, and the focus difference
gain         brightness of one half over the other
steps        steps in the order of the work, and their verdicts
watch        `Watch`: readings averaged over frames, and the best sharpness
sources      sources of raw frames
session      `Session`: a source that is measured in threads
filing       captures that are checked and filed with distances.csv
calibrating  calibration of the filed captures
values       readings and state as JSON
feed         sessions of the page, whose files are in the folder `page`
"""

from d3s.camera.align.measure import Alignment, measure
from d3s.camera.align.quantities import Reading

__all__ = ["Alignment", "Reading", "measure"]
