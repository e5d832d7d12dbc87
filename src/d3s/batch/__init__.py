"""Depth maps of many frames, from files to files.

Files of frames and a rig come in; files of depth, a summary of each, and the refused frames with
their reasons go out. All that can be done is done.

inputs        `find_inputs`: frames of files, folders, recordings, videos and arrays
depth_files   `estimate_files`: depth maps of frames, written to a folder
job           `DepthJob`: rig, method, options and formats
frame_maker   one frame, read, estimated and written, here or in a worker
table         `Batch` and `Done`: the outcomes; a row for each frame in frames.csv
zarr_store    all frames as one Zarr group
calibrations  `calibrate_folders`: the rigs of many cameras
running       `run`: a function over many jobs, in processes or on a cluster
cluster       a Dask cluster, and questions to its workers
"""

from d3s.batch.depth_files import estimate_files
from d3s.batch.inputs import find_inputs
from d3s.batch.job import DepthJob
from d3s.batch.table import Batch, Done

__all__ = ["Batch", "DepthJob", "Done", "estimate_files", "find_inputs"]
