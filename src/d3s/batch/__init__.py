"""Many frames: all that can be done is done, and what cannot is named with its reason.

pairing     which files belong together
depth       `estimate_files`: depth maps of files, written to a folder
swapped     whether left and right were confused
"""

from d3s.batch.depth import Batch, Done, estimate_files
from d3s.batch.pairing import Found, Frame, Refused, find_frames

__all__ = ["Batch", "Done", "Found", "Frame", "Refused", "estimate_files", "find_frames"]
