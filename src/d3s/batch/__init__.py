"""Depth maps of many frames, from files to files.

Files of frames and a rig come in; files of depth, a summary of each, and the refused frames with
their reasons go out. All that can be done is done.

inputs        `find_inputs`: frames of files, folders, recordings, videos and arrays
reading       one frame of any of these, read
depth         `estimate_files`: depth maps of frames, written to a folder
job           `DepthJob`: rig, method, options and formats
frame         one frame, read, estimated and written, here or in a worker
results       `Batch` and `Done`: the outcomes
manifest      a line of JSON for each frame, and a table
done_before   results that are there before: what may be replaced, and what is whole
ahead         frames read one ahead
writing       files of one frame, in all formats that can hold it
zarr_store    all frames as one Zarr group
calibrations  `calibrate_folders`: the rigs of many cameras
"""

from d3s.batch.depth import estimate_files
from d3s.batch.inputs import find_inputs
from d3s.batch.job import DepthJob
from d3s.batch.results import Batch, Done

__all__ = ["Batch", "DepthJob", "Done", "estimate_files", "find_inputs"]
