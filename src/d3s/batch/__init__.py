"""Depth maps of many frames, from files to files.

Files of frames and a rig come in; files of depth, a summary of each, and the refused frames with
their reasons go out. All that can be done is done.

depth     `estimate_files`: depth maps of frames, written to a folder
ahead     frames read one ahead
writing   files of one frame, in all formats that can hold it
replay    `replay`: depth of a recording again, compared with the recorded one
"""

from d3s.batch.depth import Batch, DepthJob, Done, estimate_files

__all__ = ["Batch", "DepthJob", "Done", "estimate_files"]
