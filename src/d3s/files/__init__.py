"""Images and arrays in and out, with suspicion.

A file is looked at before it is believed: its size is read from its header and refused before
anything large is allocated, and a file that is cut or damaged is refused, never half read.

images    grey images with full scale 1, from and to the common formats
pairs     two views from two files, from one with both, or from a raw frame
arrays    named arrays in one file
depth_files   depth, with what is known beside it, from and to the common formats
depth_image   what these hold, as arrays
raw       the bytes of a file, and what every format shares
png, jpeg, tiff, netpbm, npy    one format each, from bytes to samples
png_rows                        what the filters of a PNG left of its rows, undone
jpeg_check, jpeg_scan           whether a JPEG is whole
compiled                        the loops of both, compiled where it is worth it
tiff_codec                      how a TIFF packs its samples
depth_png, exr, ply, csv_points one format of depth or points each
note, camera_file               what such files say of the camera, within or beside them
"""

from d3s.files.arrays import read_npz, write_npz
from d3s.files.depth_files import read_depth, write_depth
from d3s.files.depth_image import DepthImage, Points
from d3s.files.images import IMAGE_SUFFIXES, list_images, read_image, write_image
from d3s.files.pairs import LoadedPair, load_pair

__all__ = [
    "IMAGE_SUFFIXES",
    "DepthImage",
    "LoadedPair",
    "Points",
    "list_images",
    "load_pair",
    "read_depth",
    "read_image",
    "read_npz",
    "write_depth",
    "write_image",
    "write_npz",
]
